"""What is in a built site: pictures before Python, claims that hold, addresses that exist, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest

from servelab.build import assemble, card, check, evidence, pages
from servelab.build.project import BuildError, Project
from servelab.view.frame import Clock, Frame, f32, i32


class Page(HTMLParser):
    """Addresses and embedded JSON of a page, read by another parser than the one that wrote it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.embedded: dict[str, Any] = {}
        self.ids: list[str] = []
        self._open = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"]] if found.get("id") else []
        self.addresses += [value for name in ("src", "href") if (value := found.get(name))]
        self._open = found.get("id") or "" if found.get("type") == "application/json" else ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.embedded[self._open] = json.loads(data)
            self._open = ""


def sites(built: Path) -> list[Path]:
    return [built / "site", *sorted((built / "spaces").iterdir())]


def exists(site: Path, page: Path, address: str) -> bool:
    url = urlsplit(urljoin(f"http://here/{page.relative_to(site).as_posix()}", address))
    path = site / url.path.lstrip("/")
    return (path / "index.html").is_file() or "/assets/" in url.path if url.path.endswith("/") else path.is_file()


def addresses_in(config: Any) -> list[str]:
    if isinstance(config, dict):
        return [url for value in config.values() for url in addresses_in(value)]
    if isinstance(config, list):
        return [url for value in config for url in addresses_in(value)]
    return [config] if isinstance(config, str) and re.match(r"(\.\./|assets/|sw\.js|code/)", config) else []


def test_every_address_leads_to_a_file(built: Path) -> None:
    for site in sites(built):
        for path in site.rglob("*.html"):
            page = Page(path)
            inside = [url for url in page.addresses if not re.match(r"[a-z]+:|#", url)]
            assert inside and not [url for url in inside if url.startswith("/")], "addresses are relative"
            assert not [url for url in [*inside, *addresses_in(page.embedded)] if not exists(site, path, url)], path
            assert len(page.ids) == len(set(page.ids)), path


def test_the_offline_list_names_files_that_exist(built: Path) -> None:
    for site in sites(built):
        listing = re.search(r'"(assets/precache-[0-9a-f]+\.json)"', (site / "sw.js").read_text())
        assert listing and "__PRECACHE__" not in (site / "sw.js").read_text()
        precache = json.loads((site / listing[1]).read_text())
        urls = precache["core"] + precache["rest"]
        assert len(urls) == len(set(urls)) and "./" in precache["core"]
        assert not [url for url in urls if not exists(site, site / "sw.js", url)]
        assert any("snapshot.bin.gz" in url for url in precache["rest"])


def test_folders_are_named_by_their_content(built: Path) -> None:
    for site in sites(built):
        for folder in (path for path in (site / "assets").iterdir() if path.is_dir()):
            total = hashlib.sha256()
            files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
            for part in (part for name in sorted(files) for part in (name.encode(), files[name].read_bytes())):
                total.update(len(part).to_bytes(8, "little") + part)
            assert folder.name.rpartition("-")[2] == total.hexdigest()[:12]


def test_receipts_are_shipped_as_committed(built: Path, project: Project) -> None:
    for site in sites(built):
        shipped = next((site / "assets").glob("receipts-*"))
        index = json.loads((shipped / "index.json").read_text())
        assert [entry["kind"] for entry in index] == sorted(
            {path.parent.name for path in project.receipts.glob("*/*-*.json") if path.parent.name != "schema"}
        )
        for entry in index:
            data = (shipped / entry["url"]).read_bytes()
            assert data == (project.receipts / entry["file"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == entry["sha256"]
        assert (shipped / "attestation.json").read_bytes() == (project.receipts / "attestation.json").read_bytes()


def test_the_picture_is_in_the_page(built: Path) -> None:
    page = Page(built / "site/kv-desk/index.html")
    frame, config = page.embedded["frame"], page.embedded["config"]
    assert {panel["kind"] for panel in frame["panels"]} >= {"metric", "blocks"}
    for column in re.findall(
        r'\{"\$b64":"([^"]*)","n":(\d+),"type":"(i32|f32)"\}', json.dumps(frame, separators=(",", ":"))
    ):
        assert len(base64.b64decode(column[0])) == 4 * int(column[1])
    first = next(iter(config["presets"].values()))
    assert json.loads((built / "site/kv-desk" / first["frame"]).resolve().read_text()) == frame


def test_a_space_stands_alone(built: Path) -> None:
    space = built / "spaces/kv-desk"
    assert "KV desk" in (space / "index.html").read_text()
    assert not list(space.rglob("numpy-*.whl")), "a studio without numpy does not carry it"
    assert list((built / "site").rglob("numpy-*.whl"))
    assert not card.check((space / "README.md").read_text())
    assert sum(path.is_file() for path in space.rglob("*")) < 250
    assert (space / "NOTICE.txt").read_text().count("Mozilla Public License") > 0


def test_two_builds_are_the_same_bytes(built: Path, project: Project, tmp_path: Path) -> None:
    again = Project.at(project.root, tmp_path / "again")
    assemble.build(again)
    names = [
        sorted(path.relative_to(d).as_posix() for path in d.rglob("*") if path.is_file()) for d in (built, again.dist)
    ]
    assert names[0] == names[1]
    assert not [name for name in names[0] if (built / name).read_bytes() != (again.dist / name).read_bytes()]


def test_baked_columns_are_the_frame_s_bytes() -> None:
    frame = Frame("three ticks", Clock(3, "steps", i32([1, 2, 3])), ())
    baked = pages.bake(frame)
    assert baked["clock"]["marks"] == {
        "$b64": base64.b64encode(struct.pack("<3i", 1, 2, 3)).decode(),
        "n": 3,
        "type": "i32",
    }
    assert pages.plain(baked)["clock"]["marks"] == {"n": 3, "type": "i32"}
    assert f32([0.5]).little_endian() == struct.pack("<f", 0.5)


def test_text_cannot_close_the_json_that_it_is_in(project: Project) -> None:
    made = pages.environment(project)
    html = made.from_string('<script type="application/json">{{ config|tojson }}</script>').render(
        config={"title": "</script><script>alert(1)</script>"}
    )
    assert html.count("</script>") == 1
    assert json.loads(html.split(">", 1)[1].rsplit("<", 1)[0]) == {"title": "</script><script>alert(1)</script>"}


def test_a_claim_shows_value_evidence_and_receipt(project: Project) -> None:
    claim = evidence.claims(evidence.gather(project), "../receipts/")
    html = str(claim("kv_pages.shared_blocks"))
    for part in (
        'data-claim="kv_pages.shared_blocks"',
        'data-evidence="derived"',
        'href="../receipts/#kv_pages"',
        'value="204"',
        ">204 ",
    ):
        assert part in html


@pytest.mark.parametrize("name", ["kv_pages.unheard_of", "nothing.at_all", "204"])
def test_an_unbound_claim_fails_the_build(name: str, project: Project) -> None:
    made = pages.environment(project)
    template = made.from_string("{{ claim(name) }}")
    with pytest.raises(BuildError, match=re.escape(repr(name))):
        template.render(claim=evidence.claims(evidence.gather(project), ""), name=name)


def test_an_undefined_name_in_a_template_names_the_template(elsewhere: Callable[..., Project]) -> None:
    spoiled = elsewhere("site/templates")
    (spoiled.site / "templates/receipts.html.j2").write_text("{{ nobody_gave_this }}")
    with pytest.raises(BuildError, match=r"receipts\.html\.j2.*nobody_gave_this"):
        pages.render(pages.environment(spoiled), "receipts.html.j2", {})


@pytest.mark.parametrize(
    ("file", "fix"), [("page.html.j2", "extend studio.html.j2"), ("README.md", "copy studios/kv_desk/README.md")]
)
def test_a_studio_without_a_file_is_told_before_anything_is_baked(
    file: str, fix: str, elsewhere: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled = elsewhere("studios")
    (spoiled.root / "studios/kv_desk" / file).unlink()
    monkeypatch.setattr(pages, "rooms", lambda *_: pytest.fail("baked already"))
    with pytest.raises(BuildError, match=rf"^studios/kv_desk/{re.escape(file)} is missing; .*{re.escape(fix)}"):
        assemble.build(spoiled)


def change_a_digit(project: Project) -> str:
    path = next((project.receipts / "kv_pages").glob("*.json"))
    text = path.read_text()
    assert '"value":204' in text
    path.write_text(text.replace('"value":204', '"value":205', 1))
    return f"kv_pages/{path.name}"


def test_one_digit_changed_in_a_receipt_stops_build_and_check(elsewhere: Callable[..., Project]) -> None:
    spoiled = elsewhere("receipts")
    name = change_a_digit(spoiled)
    with pytest.raises(BuildError, match=rf"receipts/{re.escape(name)}.*restore it from git"):
        assemble.build(spoiled)
    assert not spoiled.dist.exists()
    problems = check.check(spoiled).problems
    assert any(name in problem and "changed since it was attested" in problem for problem in problems)


def test_the_checks_pass(project: Project) -> None:
    outcome = check.check(project)
    assert outcome.problems == []
    assert any("until the first live picture" in note for note in outcome.notes)


def test_what_a_page_must_not_load_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="https://fine.example/">go</a><script src="https://cdn.example/x.js"></script>\n'
        '<img alt="" src="//img.example/y">'
    )
    (tmp_path / "a.mjs").write_text('import x from "https://cdn.example/z.mjs";\n// see https://fine.example/\n')
    (tmp_path / "b.css").write_text("body { background: url(https://cdn.example/b.png) }")
    found = [re.search(r"loads (\S+);", line)[1] for line in check.foreign(tmp_path)]  # type: ignore[index]
    assert sorted(found) == sorted(
        ["https://cdn.example/x.js", "//img.example/y", "https://cdn.example/z.mjs", "https://cdn.example/b.png"]
    )


def test_own_javascript_is_counted_with_its_imports(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<script type="module" src="a.mjs"></script><script nomodule src="old.js"></script>'
    )
    (tmp_path / "a.mjs").write_text(
        'import { b } from "./b.mjs";\nconst c = () => import("./c.mjs");\n' + "//" * 20_000
    )
    (tmp_path / "b.mjs").write_text('export {\n  c,\n} from "./d.mjs";\n')
    (tmp_path / "d.mjs").write_text("//" * 15_000)
    for name in ("c.mjs", "old.js"):
        (tmp_path / name).write_text("//" * 50_000)
    assert {path.name for path in check.modules(tmp_path / "index.html")} == {"a.mjs", "b.mjs", "d.mjs"}
    assert len(list(check.own_javascript(tmp_path))) == 1


GOOD = """---
title: T
emoji: 🧱
colorFrom: indigo
colorTo: blue
sdk: static
app_file: index.html
short_description: short
license: apache-2.0
tags: [a]
datasets: [servelab/receipts]
---
"""


@pytest.mark.parametrize(
    ("line", "wrong", "said"),
    [
        ("sdk: static", "sdk: docker", "sdk is 'docker'; write static"),
        ("colorTo: blue", "colorTo: teal", "colorTo is 'teal'; use one of red"),
        ("short_description: short", f"short_description: {'x' * 61}", "61 characters; 60 are shown"),
        ("license: apache-2.0\n", "", "license is missing"),
        ("datasets: [servelab/receipts]", "", "datasets is missing"),
        ("app_file: index.html", "app_file: app.py", "write index.html"),
        ("emoji: 🧱", "emoji: 🧱\nsuggested_hardware: t4", "suggested_hardware is not a key"),
        ("---\ntitle: T", "title: T", "no front matter"),
    ],
)
def test_a_card_that_the_hub_would_refuse(line: str, wrong: str, said: str) -> None:
    assert card.check(GOOD) == []
    assert said in "; ".join(card.check(GOOD.replace(line, wrong, 1)))


def test_the_pins_are_the_installed_versions(elsewhere: Callable[..., Project]) -> None:
    from servelab.build import assets

    changed = elsewhere("pyproject.toml")
    assert assets.check_pins(changed) == []
    path = changed.root / "pyproject.toml"
    path.write_text(path.read_text().replace('axe = "4.13.0"', 'axe = "4.13.1"'))
    again = Project(changed.root, changed.dist)
    assert assets.check_pins(again) == [
        "axe-core: 4.13.0 in site/package.json, 4.13.1 in pyproject.toml; make them equal"
    ]
