"""Turns zips of sources into zips of byte code, with the interpreter that will load them.

Runs inside Pyodide, because a .pyc fits one CPython minor version only. Byte code is unchecked-hash (no source is
shipped, no time is stored); entries are sorted and dated 1980, so the same sources give the same bytes.
"""

import base64
import hashlib
import importlib._bootstrap_external as external
import importlib.util
import json
import zipfile


def precompile(job: dict) -> dict:
    """One zip: {in, out, prefix, optimize, names}; `names`: the entries to keep, `prefix`: where they will be found."""
    source = zipfile.ZipFile(job["in"])
    rows, record = [], None
    with zipfile.ZipFile(job["out"], "w") as target:
        for name in sorted(job["names"]):
            if name.endswith(".dist-info/RECORD"):
                record = name
                continue
            data = source.read(name)
            if name.endswith(".py"):
                code = compile(data, job["prefix"] + name, "exec", dont_inherit=True, optimize=job["optimize"])
                data = bytes(external._code_to_hash_pyc(code, importlib.util.source_hash(data), False))
                name += "c"
            _write(target, name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}")
        if record:
            _write(target, record, ("\n".join([*rows, f"{record},,"]) + "\n").encode())
    return {"out": job["out"], "entries": len(rows)}


def _write(target: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o100644 << 16
    target.writestr(entry, data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)


def main(jobs: str) -> str:
    return json.dumps([precompile(job) for job in json.loads(jobs)])
