"""A stand-in for the Hub's HTTP API on the loopback: enough for whoami, create, tree, preupload, LFS and commit.

It keeps what arrives: `repos[(type, id)]` maps paths to bytes as they are after the last commit, `commits` lists them,
`asked` names every request. Files over `LARGE` bytes or with a binary ending go to large storage, as on the real Hub.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

LARGE = 1_000_000
BINARY = (".gz", ".zip", ".whl")
TOKEN = "hf_stub"


@dataclass
class Commit:
    """One commit as it arrived."""

    repo: tuple[str, str]
    message: str
    added: dict[str, bytes] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)


class Hub(ThreadingHTTPServer):
    """Start it with serve_forever in a thread; `forbidden` namespaces answer 403."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos: dict[tuple[str, str], dict[str, bytes]] = {}
        self.sdk: dict[tuple[str, str], str] = {}
        self.storage: dict[str, bytes] = {}
        self.commits: list[Commit] = []
        self.asked: list[str] = []
        self.forbidden = {"somebody-else"}
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self.route("GET")

    def do_POST(self) -> None:
        self.route("POST")

    def do_PUT(self) -> None:
        self.route("PUT")

    def reply(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def route(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(self.path).path)
        with self.server.lock:
            self.server.asked.append(f"{method} {path}")
            if path.startswith("/storage/"):
                self.server.storage[path.rsplit("/", 1)[1]] = body
                return self.reply(200, {})
            if self.headers.get("Authorization") not in (f"Bearer {TOKEN}", f"Basic {TOKEN}"):
                return self.reply(401, {"error": "Invalid username or password."})
            return self.authorised(path, body)

    def authorised(self, path: str, body: bytes) -> None:
        if path == "/api/whoami-v2":
            return self.reply(200, {"type": "user", "name": "tester", "auth": {"accessToken": {"role": "write"}}})
        if path == "/api/validate-yaml":
            return self.reply(200, {"errors": [], "warnings": []})
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        if path.endswith("/info/lfs/objects/batch"):
            return self.batch(json.loads(body))
        parts = path.strip("/").split("/")
        if len(parts) < 4:
            return self.reply(404, {"error": f"no route {path}"})
        repo, action = (parts[1], f"{parts[2]}/{parts[3]}"), parts[4] if len(parts) > 4 else ""
        if repo not in self.server.repos:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        if action == "tree":
            return self.reply(200, [self.entry(name, data) for name, data in self.server.repos[repo].items()])
        if action == "preupload":
            return self.reply(200, {"files": [self.mode(repo, f) for f in json.loads(body)["files"]]})
        if action == "commit":
            return self.commit(repo, [json.loads(line) for line in body.splitlines()])
        return self.reply(200, {"id": repo[1], "sha": "0" * 40, "private": False, "tags": [], "siblings": []})

    def create(self, wanted: dict[str, Any]) -> None:
        owner = wanted.get("organization") or "tester"
        if owner in self.server.forbidden:
            return self.reply(403, {"error": f"You don't have the rights to create a repo under {owner}"})
        repo = (f"{wanted['type']}s", f"{owner}/{wanted['name']}")
        status = 409 if repo in self.server.repos else 200
        self.server.repos.setdefault(repo, {".gitattributes": b"*.gz filter=lfs\n"})
        self.server.sdk[repo] = wanted.get("sdk", "")
        return self.reply(status, {"url": f"{self.server.url}/{'/'.join(repo)}", "name": repo[1]})

    def mode(self, repo: tuple[str, str], file: dict[str, Any]) -> dict[str, Any]:
        large = file["size"] > LARGE or file["path"].endswith(BINARY)
        known = self.server.repos[repo].get(file["path"])
        oid = None if known is None else sha256(known) if large else blob(known)
        return {"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": oid}

    def batch(self, wanted: dict[str, Any]) -> None:
        objects = []
        for item in wanted["objects"]:
            known = item["oid"] in self.server.storage
            actions = {} if known else {"actions": {"upload": {"href": f"{self.server.url}/storage/{item['oid']}"}}}
            objects.append({"oid": item["oid"], "size": item["size"], **actions})
        self.reply(200, {"transfer": "basic", "objects": objects})

    def commit(self, repo: tuple[str, str], lines: list[dict[str, Any]]) -> None:
        made = Commit(repo, lines[0]["value"]["summary"])
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                made.added[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                made.added[value["path"]] = self.server.storage[value["oid"]]
            elif line["key"] == "deletedFile":
                made.deleted.append(value["path"])
            else:
                raise AssertionError(line["key"])
        for name in made.deleted:
            del self.server.repos[repo][name]
        self.server.repos[repo] |= made.added
        self.server.commits.append(made)
        oid = hashlib.sha1(str(len(self.server.commits)).encode()).hexdigest()
        self.reply(
            200, {"commitUrl": f"{self.server.url}/{'/'.join(repo)}/commit/{oid}", "commitOid": oid, "success": True}
        )

    def entry(self, name: str, data: bytes) -> dict[str, Any]:
        large = len(data) > LARGE or name.endswith(BINARY)
        lfs = {"lfs": {"oid": sha256(data), "size": len(data), "pointerSize": 130}} if large else {}
        return {"type": "file", "path": name, "size": len(data), "oid": blob(data), **lfs}


def blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
