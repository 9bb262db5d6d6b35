"""`make serve`: a free port, the site's files, and what it says."""

from __future__ import annotations

import socket
import threading
import urllib.request

import pytest

from book._make import serve

pytestmark = pytest.mark.no_arrays


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text("the course")
    (tmp_path / "python.wasm").write_bytes(b"x")
    return tmp_path


def test_a_port_in_use_gives_way_to_the_next(site):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        serving, used = serve.server(site, port)
    serving.server_close()
    assert used[0] == port
    assert serving.server_port > port


def test_it_serves_the_folder_with_the_types_that_browsers_ask_for(site):
    serving, _ = serve.server(site, 0)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    try:
        for name, kind in (("index.html", "text/html"), ("python.wasm", "application/wasm")):
            with urllib.request.urlopen(f"http://127.0.0.1:{serving.server_port}/{name}") as answer:
                assert answer.headers["Content-Type"] == kind
                assert answer.headers["Cache-Control"] == "no-cache"
    finally:
        serving.shutdown()
        serving.server_close()


def test_it_says_where_the_course_is_and_ends_with_ctrl_c(site, monkeypatch, capsys):
    opened = []

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(serve.webbrowser, "open", opened.append)
    monkeypatch.setattr(serve.ThreadingHTTPServer, "serve_forever", interrupted)
    assert serve.main([str(site), "0"]) == 0
    said = capsys.readouterr().out
    assert opened
    assert said.startswith(f"the course is at {opened[0]} (Ctrl-C ends it)")


def test_no_site_is_named(tmp_path, capsys):
    assert serve.main([str(tmp_path)]) == 1
    assert "make site builds it" in capsys.readouterr().err
