"""A package for npm whose command is the binary: no script runs when it is installed."""

import json
import pathlib

import archive
from contents import DESCRIPTION, Contents


def write(contents: Contents, folder: pathlib.Path) -> pathlib.Path:
    pages = sorted(path for path in contents.files if path.startswith("share/man/"))
    about = {
        "name": "antiphon",
        "version": contents.version,
        "description": DESCRIPTION,
        "license": "MIT",
        "os": ["linux"],
        "cpu": [contents.binary.npm],
        "bin": {"antiphon": "bin/antiphon"},
        "man": pages,
    }
    if not contents.binary.is_static:
        about["libc"] = ["glibc"]
    documents = "share/doc/antiphon/"
    files = {f"package/{path.removeprefix(documents)}": file for path, file in contents.files.items()}
    files["package/package.json"] = (f"{json.dumps(about, indent=2)}\n".encode(), 0o644)
    path = folder / f"antiphon-{contents.version}-{contents.binary.npm}.tgz"
    path.write_bytes(archive.tar(files, contents.time, folders=False))
    return path
