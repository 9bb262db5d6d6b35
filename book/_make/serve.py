"""What `make serve` does once the site is built: serves it on this machine, and opens the browser.

    python -m book._make.serve FOLDER [PORT]

A port that is in use gives way to the next one. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PORT, TRIES = 8000, 50


class Handler(SimpleHTTPRequestHandler):
    """Serves files, and does not tell of each."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".wasm": "application/wasm",
        ".mjs": "text/javascript",
    }

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""

    def end_headers(self) -> None:
        """Let the browser ask whether a file is still the same: the site may be built again."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


def server(folder: Path, port: int) -> tuple[ThreadingHTTPServer, list[int]]:
    """A server of this folder at the first free port from `port` on, and the ports that were in use.

    Raises OSError if none of TRIES ports is free.
    """
    used: list[int] = []
    while True:
        try:
            return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(folder))), used
        except OSError:
            used.append(port)
            port += 1
            if len(used) == TRIES or port > 65535:
                raise


def main(arguments: Any = None) -> int:
    """Serve until Ctrl-C; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the built site")
    parser.add_argument("port", type=int, nargs="?", default=PORT, help=f"{PORT} without it")
    parser.add_argument("--no-browser", action="store_true", help="do not open one")
    options = parser.parse_args(arguments)
    if not (options.folder / "index.html").exists():
        print(f"there is no site in {options.folder}: make site builds it", file=sys.stderr)
        return 1
    serving, used = server(options.folder, options.port)
    address = f"http://localhost:{serving.server_port}/"
    for port in used:
        print(f"port {port} is in use")
    print(f"the course is at {address} (Ctrl-C ends it)", flush=True)
    if not options.no_browser:
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
