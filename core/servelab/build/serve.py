"""A small static server for one's own machine, as a good host would be: gzip, right types, long life for hashed files.

assets/<name>-<hash>/…   public, max-age=31536000, immutable
everything else          no-cache (asked again each time, answered 304 when unchanged)
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import posixpath
import re
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from servelab.build.project import BuildError

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".py": "text/x-python; charset=utf-8",
    ".pub": "text/plain; charset=utf-8",
    ".gz": "application/gzip",
    ".zip": "application/zip",
}
COMPRESSED = {".html", ".css", ".js", ".mjs", ".json", ".wasm", ".svg", ".txt", ".md", ".py"}
HASHED = re.compile(r"/assets/[^/]+-[0-9a-f]{8,}[./]")


class Server(ThreadingHTTPServer):
    """Serves `root`; `log`, if set, takes (method, path, status, bytes sent) of every answer."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, root: Path, port: int, log: list[tuple[str, str, int, int]] | None = None) -> None:
        self.root = root.resolve()
        self.log = log
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that left in the middle of a file is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def address(self) -> str:
        return f"http://localhost:{self.server_address[1]}/"


def start(root: Path, port: int, log: list[tuple[str, str, int, int]] | None = None) -> Server:
    """A server on 127.0.0.1:port (0: any free one). BuildError when there is nothing to serve or the port is taken."""
    if not (root / "index.html").is_file():
        raise BuildError(f"{root} has no index.html; run make build first")
    with _port(port):
        return Server(root, port, log)


def check_port(port: int) -> None:
    """BuildError when nothing could be served on 127.0.0.1:port now."""
    with _port(port):
        Server(Path(), port).server_close()


@contextmanager
def _port(port: int) -> Iterator[None]:
    """A port that is none, is taken or is not allowed becomes a BuildError with a fix."""
    if not 0 <= port <= 65535:
        raise BuildError(f"port {port} is outside 0 to 65535; try PORT=8001")
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            why = "in use by another program" if error.errno == errno.EADDRINUSE else "not allowed for this user"
            raise BuildError(
                f"port {port} is {why}; pick another one: make serve PORT={port + 1 if port < 65535 else 8001}"
            ) from error
        raise


class Handler(BaseHTTPRequestHandler):
    """GET and HEAD of files; HTTP/1.1 with keep-alive, 304 by entity tag."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the page says what it loads."""

    def _answer(self, *, body: bool) -> None:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        file = self._file(path)
        if file is None:
            return self._send(HTTPStatus.NOT_FOUND, b"404: no such file\n", {"Content-Type": TYPES[".txt"]}, body)
        if file.is_dir():
            return self._send(HTTPStatus.MOVED_PERMANENTLY, b"", {"Location": self._with_slash()}, body)
        zipped = file.suffix in COMPRESSED and "gzip" in self.headers.get("Accept-Encoding", "")
        tag, content = _content(file, file.stat().st_mtime_ns, zipped)
        headers = {
            "Content-Type": TYPES.get(file.suffix, "application/octet-stream"),
            "Cache-Control": "public, max-age=31536000, immutable" if HASHED.search(path) else "no-cache",
            "ETag": tag,
            "Vary": "Accept-Encoding",
        }
        if self.headers.get("If-None-Match") == tag:
            return self._send(HTTPStatus.NOT_MODIFIED, b"", headers, body=False)
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return self._send(HTTPStatus.OK, content, headers, body)

    def _file(self, path: str) -> Path | None:
        """The file or folder for a URL path; None when there is none inside the root."""
        root = self.server.root
        if "\0" in path:
            return None
        found = (root / posixpath.normpath(path).lstrip("/")).resolve()
        if not found.is_relative_to(root):
            return None
        if path.endswith("/"):
            found /= "index.html"
        return found if found.exists() else None

    def _with_slash(self) -> str:
        url = urllib.parse.urlsplit(self.path)
        return urllib.parse.urlunsplit(("", "", "/" + url.path.strip("/") + "/", url.query, ""))

    def _send(self, status: HTTPStatus, content: bytes, headers: dict[str, str], body: bool) -> None:
        if self.server.log is not None:
            self.server.log.append((self.command, self.path, int(status), len(content) if body else 0))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)


@lru_cache(maxsize=512)
def _content(file: Path, modified: int, zipped: bool) -> tuple[str, bytes]:
    """(entity tag, bytes) of a file, compressed once."""
    raw = file.read_bytes()
    tag = hashlib.sha256(raw).hexdigest()[:20]
    return (f'"{tag}-gz"', gzip.compress(raw, 9, mtime=0)) if zipped else (f'"{tag}"', raw)
