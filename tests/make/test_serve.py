"""`make serve`: a free port, the site's files, and what it says."""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
import urllib.error
import urllib.request

import pytest

from book.make import serve

pytestmark = pytest.mark.no_arrays


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text("the course")
    (tmp_path / "python.wasm").write_bytes(b"x")
    return tmp_path


@pytest.fixture
def served(site):
    """Where it is served."""
    serving, _ = serve.server(site, 0)
    threading.Thread(target=serving.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


def test_a_port_in_use_gives_way_to_the_next(site):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        serving, used = serve.server(site, port)
    serving.server_close()
    assert used[0] == port
    assert serving.server_port > port


def test_it_serves_the_folder_with_the_types_that_browsers_ask_for(served):
    for name, kind in (("index.html", "text/html"), ("python.wasm", "application/wasm")):
        with urllib.request.urlopen(f"{served}/{name}") as answer:
            assert answer.headers["Content-Type"] == kind
            assert answer.headers["Cache-Control"] == "no-cache"


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


@pytest.mark.parametrize("port", ["65536", "-1", "8000.5", "", " 80", "٣", "1" * 20])
def test_what_is_no_port_is_refused_with_the_numbers_that_are(site, capsys, port):
    with pytest.raises(SystemExit) as ended:
        serve.main([str(site), port])
    assert ended.value.code == 2
    assert "from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.EADDRINUSE, errno.EACCES])
def test_no_port_that_can_be_used_is_said_in_one_line(site, monkeypatch, capsys, number):
    tried = []

    def refused(self):
        tried.append(self.server_address[1])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(serve.ThreadingHTTPServer, "server_bind", refused)
    assert serve.main([str(site), "65530"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert os.strerror(number) in said.err
    assert said.err.count("\n") == 1
    assert len(tried) == (6 if number == errno.EADDRINUSE else 1)


def test_what_is_no_files_name_is_not_found_in_silence(served, capfd):
    for path in ("/a%00b.html", "/" + "x" * 5000, "/%ff%fe", "/nothing"):
        for method in ("GET", "HEAD"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(f"{served}{path}", method=method))
            refused.value.close()
            assert refused.value.code == 404, path
    assert capfd.readouterr() == ("", "")


def test_a_browser_that_goes_away_is_no_news(site, capfd):
    (site / "large").write_bytes(bytes(20_000_000))
    serving, _ = serve.server(site, 0)
    serving.daemon_threads = False  # server_close waits for them
    thread = threading.Thread(target=serving.handle_request)
    thread.start()
    with socket.create_connection(serving.server_address) as browser:
        browser.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        browser.recv(100)
        reset = struct.pack("ii", 1, 0)
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    thread.join()
    serving.server_close()
    assert capfd.readouterr() == ("", "")
