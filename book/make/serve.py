"""What `make serve` does once the site is built: serves it on this machine, and opens the browser.

    python -m book.make.serve FOLDER [PORT]

A port that is in use gives way to the next one. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
import webbrowser
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PORT, TRIES = 8000, 50


class Handler(SimpleHTTPRequestHandler):
    """Serves files, and does not tell of each."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".wasm": "application/wasm",
        ".mjs": "text/javascript",
        ".js": "text/javascript",  # the registry of Windows may have another one for these
        ".css": "text/css",
        ".svg": "image/svg+xml",
        ".json": "application/json",
    }

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""

    def send_head(self) -> Any:
        """Answer that there is no such file also for what cannot be a file's name, such as one with a NUL."""
        try:
            return super().send_head()
        except ValueError:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None

    def end_headers(self) -> None:
        """Let the browser ask whether a file is still the same: the site may be built again."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


class Server(ThreadingHTTPServer):
    """Says nothing where a browser does not wait for an answer to its end."""

    allow_reuse_address = os.name != "nt"  # where two could then have one port

    def handle_error(self, request: Any, address: Any) -> None:
        """Tell of an error while a request was answered."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, address)


def server(folder: Path, port: int) -> tuple[Server, list[int]]:
    """A server of this folder at the first free port from `port` on, and the ports that were in use.

    Raises OSError if none of TRIES ports is free, or if this user may not have them.
    """
    used: list[int] = []
    while True:
        try:
            return Server(("127.0.0.1", port), partial(Handler, directory=str(folder))), used
        except OSError as error:
            used.append(port)
            port += 1
            if error.errno != errno.EADDRINUSE or len(used) == TRIES or port > 65535:
                raise


def port_number(text: str) -> int:
    """A port as it is typed. Raises argparse's ArgumentTypeError for what is none."""
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, got {text!r}")
    return int(text)


def no_site(folder: Path, how: str = "make site") -> str:
    """What to say where a folder holds no built site; "" if it holds one. how: what builds it."""
    return "" if (folder / "index.html").is_file() else f"there is no site in {folder}: {how} builds it"


def main(arguments: Any = None) -> int:
    """Serve until Ctrl-C; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the built site")
    parser.add_argument("port", type=port_number, nargs="?", default=PORT, help=f"{PORT} without it")
    options = parser.parse_args(arguments)
    if why := no_site(options.folder):
        print(why, file=sys.stderr)
        return 1
    try:
        serving, used = server(options.folder, options.port)
    except OSError as error:
        print(f"no port from {options.port} on can be used: {error.strerror}", file=sys.stderr)
        return 1
    address = f"http://localhost:{serving.server_port}/"
    for port in used:
        print(f"port {port} is in use")
    print(f"the course is at {address} (Ctrl-C ends it)", flush=True)
    webbrowser.open(address)
    try:
        serving.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        serving.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
