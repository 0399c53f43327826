"""The local server, asked by http.client as a browser would."""

from __future__ import annotations

import gzip
import http.client
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from servelab.build import serve
from servelab.build.project import BuildError

ROOT = Path(__file__).parents[2]
HASHED = "assets/shell-0123456789ab/app.mjs"
SCRIPT = b"export const words = 'the same words again and again and again';\n" * 50


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    files = {
        "index.html": b"<!doctype html>",
        "kv-desk/index.html": b"desk",
        "sw.js": b"//",
        HASHED: SCRIPT,
        "a.wasm": b"\0asm",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (tmp_path / "secret.txt").write_text("not for anybody")
    return root


@pytest.fixture
def running(site: Path) -> Iterator[serve.Server]:
    server = serve.start(site, 0, log=[])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def client(running: serve.Server) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", running.server_address[1], timeout=5)
    yield connection
    connection.close()


def get(client: http.client.HTTPConnection, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    client.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    reply = client.getresponse()
    return reply, reply.read()


@pytest.mark.parametrize(
    ("path", "kind", "kept"),
    [
        ("/", "text/html; charset=utf-8", "no-cache"),
        ("/kv-desk/", "text/html; charset=utf-8", "no-cache"),
        ("/sw.js", "text/javascript; charset=utf-8", "no-cache"),
        ("/a.wasm", "application/wasm", "no-cache"),
        (f"/{HASHED}", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
        (f"/{HASHED}?x=1", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
    ],
)
def test_types_and_how_long_a_browser_may_keep_a_file(
    path: str, kind: str, kept: str, client: http.client.HTTPConnection
) -> None:
    reply, _ = get(client, path)
    assert (reply.status, reply.headers["Content-Type"], reply.headers["Cache-Control"]) == (200, kind, kept)


def test_text_is_compressed_for_those_who_can_read_it(client: http.client.HTTPConnection) -> None:
    plain, body = get(client, f"/{HASHED}")
    zipped, small = get(client, f"/{HASHED}", Accept_Encoding="gzip, br")
    assert body == SCRIPT and plain.headers["Content-Encoding"] is None
    assert zipped.headers["Content-Encoding"] == "gzip" and gzip.decompress(small) == SCRIPT
    assert len(small) == int(zipped.headers["Content-Length"]) < len(SCRIPT) / 10


def test_an_unchanged_file_is_not_sent_again(client: http.client.HTTPConnection, site: Path) -> None:
    first, _ = get(client, "/")
    again, body = get(client, "/", If_None_Match=first.headers["ETag"])
    assert (again.status, body) == (304, b"")
    (site / "index.html").write_bytes(b"<!doctype html><p>new")
    changed, body = get(client, "/", If_None_Match=first.headers["ETag"])
    assert (changed.status, body) == (200, b"<!doctype html><p>new")


def test_one_connection_serves_many_requests(client: http.client.HTTPConnection, running: serve.Server) -> None:
    for path in ("/", "/nothing", "/kv-desk/", "/sw.js"):
        reply, _ = get(client, path)
        assert reply.version == 11 and reply.headers["Connection"] != "close"
    client.request("HEAD", "/")
    assert client.getresponse().read() == b""
    assert [(method, path, status) for method, path, status, _ in running.log or []] == [
        ("GET", "/", 200),
        ("GET", "/nothing", 404),
        ("GET", "/kv-desk/", 200),
        ("GET", "/sw.js", 200),
        ("HEAD", "/", 200),
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/kv-desk/../../secret.txt",
        "/%00",
        "//etc/passwd",
        "../secret.txt",
    ],
)
def test_nothing_outside_the_site_is_served(path: str, client: http.client.HTTPConnection) -> None:
    reply, body = get(client, path)
    assert reply.status == 404 and b"not for anybody" not in body


def test_a_folder_without_a_slash_is_sent_to_the_one_with_it(client: http.client.HTTPConnection) -> None:
    reply, _ = get(client, "/kv-desk?bs=32")
    assert (reply.status, reply.headers["Location"]) == (301, "/kv-desk/?bs=32")


def test_a_visitor_who_leaves_in_the_middle_is_no_error(
    running: serve.Server, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "large.bin").write_bytes(bytes(20_000_000))
    with socket.create_connection(running.server_address[:2]) as leaving:
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        leaving.sendall(b"GET /large.bin HTTP/1.1\r\nHost: here\r\n\r\n")
        leaving.recv(1000)
    deadline = time.monotonic() + 5
    while threading.active_count() > 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert capsys.readouterr().err == ""


def test_it_listens_on_the_loopback_only(running: serve.Server) -> None:
    assert running.server_address[0] == "127.0.0.1"


def test_a_port_in_use_is_an_error_with_a_fix(site: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(BuildError, match=rf"port {port} is in use.*make serve PORT={port + 1}"):
            serve.start(site, port)
        with pytest.raises(BuildError, match=rf"port {port} is in use"):
            serve.check_port(port)
    serve.check_port(port)
    with serve.start(site, port):
        pass


def test_make_serve_looks_at_the_port_before_it_builds() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        command = [sys.executable, str(ROOT / "build.py"), "serve", "--port", str(port), "--check"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"port {port} is in use" in done.stderr
    recipe = (ROOT / "Makefile").read_text().split("\nserve:", 1)[1].split("\n\n", 1)[0]
    assert 0 < recipe.index("--check") < recipe.index(" build\n")


def test_nothing_built_and_a_port_that_is_none(tmp_path: Path, site: Path) -> None:
    with pytest.raises(BuildError, match=r"no index\.html; run make build first"):
        serve.start(tmp_path / "nowhere", 0)
    with pytest.raises(BuildError, match="port 70000 is outside 0 to 65535"):
        serve.start(site, 70_000)
