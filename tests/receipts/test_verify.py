"""A folder of receipts is sound, and every way to spoil it is found and named."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from small_receipts import DERIVED, Folder

from servelab.receipt import load_all
from servelab.receipt.canonical import canonical, parse
from servelab.receipt.store import load
from servelab.receipt.verify import Report, Skipped, verify


def found(report: Report) -> list[tuple[str, str]]:
    return [(p.receipt, p.what) for p in report.problems]


def test_a_sound_folder(folder: Folder) -> None:
    report = verify(folder.path)
    assert found(report) == []
    assert report.signed_by == ("example-2026-11",)
    assert [r.kind for r in report.receipts] == ["forecast", "sides", "squares", "timing"]
    assert {(s.receipt.split("/")[0], s.part) for s in report.skipped} == {("forecast", "speed")}


def test_without_the_data_it_says_what_was_not_recomputed(folder: Folder, tmp_path: Path) -> None:
    report = verify(folder.path, tmp_path / "nowhere")
    assert found(report) == []
    sides = {s.part: s.why for s in report.skipped if s.receipt.startswith("sides")}
    assert set(sides) == {"statistic from sides.txt", "first"}
    assert "set SERVELAB_DATA or --data" in sides["statistic from sides.txt"]
    assert [row.metric for row in report.recomputed["sides/core-2026-11-30.json"].rows] == ["total"]


def test_what_was_not_checked_is_told_once_for_each_receipt_and_reason() -> None:
    parts = [Skipped("a/b.json", f"m{i}", "the trace is needed") for i in range(5)]
    report = Report((), (), {}, (), (*parts, Skipped("a/b.json", "commit", "a shallow clone")))
    assert report.unchecked() == [
        "a/b.json: not checked: m0 and 4 more: the trace is needed",
        "a/b.json: not checked: commit: a shallow clone",
    ]


def test_without_cryptography_the_signature_is_not_checked_and_all_else_is(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cryptography", *(name for name in sys.modules if name.startswith("cryptography."))):
        monkeypatch.setitem(sys.modules, name, None)
    report = verify(folder.path)
    assert found(report) == [] and report.signed_by == ()
    skipped = next(s for s in report.skipped if s.receipt == "attestation.json")
    assert str(skipped) == (
        "attestation.json: signature not checked: needs cryptography; pip install 'servelab[site]'"
    )
    path = folder.file("squares")
    path.write_bytes(path.read_bytes().replace(b'"value":144', b'"value":145'))
    assert (f"squares/{path.name}", "changed") in found(verify(folder.path))


def test_one_digit_changed(folder: Folder) -> None:
    """The bytes differ from the attested ones, the tolerance breaks and the recomputed number disagrees: all three
    are said."""
    path = folder.file("squares")
    path.write_bytes(path.read_bytes().replace(b'"value":144', b'"value":145'))
    report = verify(folder.path)
    name = f"squares/{path.name}"
    assert found(report) == [(name, "tolerance"), (name, "recompute"), (name, "changed")]
    messages = [p.message for p in report.problems]
    assert messages[1].startswith("area: committed 145, recomputed 144 cells")
    assert messages[2].startswith("changed since it was attested: sha256 ")


@pytest.mark.parametrize("evidence", ["squares", "sides", "timing", "forecast"])
def test_any_digit_of_any_metric_changed(folder: Folder, evidence: str) -> None:
    """Even where nothing can be recomputed the hash tells."""
    path = folder.file(evidence)
    data = path.read_bytes()
    at = data.index(b'"value":') + len(b'"value":')
    digit = data[at : at + 1]
    path.write_bytes(data[:at] + (b"9" if digit != b"9" else b"8") + data[at + 1 :])
    assert (f"{evidence}/{path.name}", "changed") in found(verify(folder.path))


def test_re_signed_forgery_is_caught_by_recomputation(folder: Folder) -> None:
    """Who holds the key can sign anything: the signature fits, the number does not."""
    folder.edit("squares", lambda r: r["metrics"]["diagonal"].update(value=16.9705627486))
    folder.edit("sides", lambda r: r["statistic"].update(sides=[4, 4, 4]))
    folder.attest()
    report = verify(folder.path)
    assert report.signed_by == ("example-2026-11",)
    assert found(report) == [("sides/core-2026-11-30.json", "recompute"), ("squares/core-2026-11-30.json", "recompute")]
    assert report.problems[0].message.startswith("statistic.sides: committed ")
    assert "diagonal: committed 16.9705627486, recomputed 16.97056274847714" in report.problems[1].message


def test_measured_summary_that_its_samples_do_not_give(folder: Folder) -> None:
    path = folder.edit("timing", lambda r: r["samples"]["alloc_ns"].__setitem__(0, 900))
    folder.attest()
    assert found(verify(folder.path)) == [(f"timing/{path.name}", "schema")]
    with pytest.raises(
        ValueError, match=r"timing/core-2026-11-30\.json: metrics\.alloc_ns_median\.value: 205 is not the median"
    ):
        load_all(folder.path)


def test_metric_added_or_lost(folder: Folder) -> None:
    extra = {"value": 1, "unit": "cells", "n": 1, "ci95": None}
    folder.edit("squares", lambda r: r["metrics"].update(volume=extra))
    folder.edit("sides", lambda r: r["metrics"].pop("first"))
    folder.attest()
    messages = [p.message for p in verify(folder.path).problems]
    assert messages[0].startswith("first: committed absent, recomputed 3 cells")
    assert messages[1].startswith("volume: committed 1, recomputed absent cells")


def test_not_canonical(folder: Folder) -> None:
    path = folder.file("squares")
    path.write_bytes(path.read_bytes() + b"\n")
    assert found(verify(folder.path)) == [(f"squares/{path.name}", "canonical"), (f"squares/{path.name}", "changed")]


def test_not_json(folder: Folder) -> None:
    path = folder.file("squares")
    path.write_bytes(path.read_bytes()[:-1])
    assert [what for _, what in found(verify(folder.path))] == ["canonical", "schema", "changed"]


def test_wrong_place(folder: Folder) -> None:
    path = folder.file("squares")
    path.rename(path.with_name("core-2026-12-01.json"))
    folder.attest()
    report = verify(folder.path)
    assert found(report) == [("squares/core-2026-12-01.json", "name")]
    assert "name it squares/<device>-2026-11-30.json" in report.problems[0].message


def test_a_receipt_where_nobody_looks_is_told(folder: Folder) -> None:
    stray = folder.path / "squares" / "old" / "core-2026-11-01.json"
    stray.parent.mkdir()
    stray.write_bytes(folder.file("squares").read_bytes())
    assert [str(p) for p in verify(folder.path).problems] == [
        "squares/old/core-2026-11-01.json: not read: a receipt is <kind>/<device>-<date>.json; move or remove it"
    ]


def test_a_published_schema_that_was_edited_is_told(folder: Folder) -> None:
    """And the published one is not."""
    copy = folder.path / "schema" / "receipt-1.json"
    shutil.copytree(Path(__file__).parents[2] / "receipts" / "schema", copy.parent)
    assert verify(folder.path).problems == ()
    copy.write_bytes(copy.read_bytes().replace(b'"minimum"', b'"maximum"', 1) + b" ")
    (problem,) = verify(folder.path).problems
    assert (problem.receipt, problem.what) == ("schema/receipt-1.json", "changed")
    assert problem.message.endswith("; restore it from git")


def test_any_file_that_nobody_reads_is_told_but_hidden_ones(folder: Folder) -> None:
    for name in ("notes.txt", "squares/core-2026-11-30.JSON", "keys/private.pem", ".DS_Store", "squares/.core.swp"):
        (folder.path / name).write_bytes(b"{}")
    names = [p.receipt for p in verify(folder.path).problems]
    assert names == ["keys/private.pem", "notes.txt", "squares/core-2026-11-30.JSON"]


def test_added_and_removed_since_it_was_attested(folder: Folder) -> None:
    path = folder.file("squares")
    shutil.copy(path, path.with_name("other-2026-11-30.json"))
    folder.file("timing").unlink()
    assert found(verify(folder.path)) == [
        ("squares/other-2026-11-30.json", "unattested"),
        ("timing/core-2026-11-30.json", "gone"),
    ]


def test_kind_that_nothing_recomputes(folder: Folder) -> None:
    folder.edit("squares", lambda r: r.update(kind="cubes", claims=["cubes.area"]))
    folder.file("squares").rename(folder.path / "squares" / "cubes.json")
    (folder.path / "squares").rename(folder.path / "cubes")
    (folder.path / "cubes" / "cubes.json").rename(folder.path / "cubes" / "core-2026-11-30.json")
    folder.attest()
    report = verify(folder.path)
    assert found(report) == [("cubes/core-2026-11-30.json", "recompute")]
    assert "no function recomputes this kind; add one to RECOMPUTE" in report.problems[0].message


def test_other_bytes_under_the_datas_name(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "data" / "sides.txt").write_bytes(b"3\n4\n6\n")
    report = verify(folder.path)
    assert found(report) == [("sides/core-2026-11-30.json", "data")]
    assert "sides.txt under" in report.problems[0].message


def test_commit_outside_the_history(folder: Folder) -> None:
    folder.edit("squares", lambda r: r.update(commit="ab" * 20))
    folder.attest()
    report = verify(folder.path)
    assert found(report) == [("squares/core-2026-11-30.json", "commit")]
    assert "commit abababababab is not in this history" in report.problems[0].message


def test_without_git_the_history_is_skipped(folder: Folder) -> None:
    shutil.rmtree(folder.path.parent / ".git")
    report = verify(folder.path)
    assert found(report) == []
    assert sum(s.part == "commit" for s in report.skipped) == 4


def test_empty_and_absent_folders(tmp_path: Path) -> None:
    assert found(verify(tmp_path)) == [(tmp_path.name, "empty")]
    with pytest.raises(ValueError, match="there is no receipts folder"):
        verify(tmp_path / "nowhere")


def test_the_newest_receipt_of_a_kind_speaks(folder: Folder) -> None:
    newer = parse(folder.file("squares").read_bytes()) | {"date": "2026-12-24"}
    (folder.path / "squares" / "core-2026-12-24.json").write_bytes(canonical(newer))
    assert load_all(folder.path)["squares"].path == "squares/core-2026-12-24.json"


def test_load_from_bytes() -> None:
    data = canonical(DERIVED)
    assert load(data).metrics["area"].value == 144
    with pytest.raises(ValueError, match=r"^a/b\.json: receipt\.kind is missing"):
        load(canonical({k: v for k, v in DERIVED.items() if k != "kind"}), path="a/b.json")
