"""A server of a folder's files on this machine, for tests of pages that work over http alone."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that logs nothing, and may be slow: all answers together have so many bytes a second."""

    bytes_a_second: int | None = None
    line = threading.Lock()

    def copyfile(self, source: Any, target: Any) -> None:
        """Send a file, in pieces of a tenth of a second."""
        if self.bytes_a_second is None:
            return super().copyfile(source, target)
        while piece := source.read(self.bytes_a_second // 10):
            with self.line:
                target.write(piece)
                time.sleep(len(piece) / self.bytes_a_second)
        return None

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


@contextlib.contextmanager
def served(folder: Path, bytes_a_second: int | None = None) -> Iterator[str]:
    """Serve a folder over http on this machine; gives the address, with its last slash."""
    handler = type("Handler", (Quiet,), {"bytes_a_second": bytes_a_second, "line": threading.Lock()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
