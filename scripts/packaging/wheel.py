"""A wheel: a Python package whose only script is the binary."""

import base64
import datetime
import hashlib
import pathlib
import zipfile

from contents import DESCRIPTION, SOURCE, Contents


def platform(contents: Contents) -> str:
    """Where the binary runs: a static one with any C library."""
    binary = contents.binary
    if binary.is_static:
        return f"manylinux_2_17_{binary.python}.manylinux2014_{binary.python}.musllinux_1_1_{binary.python}"
    major, minor = binary.glibc[:2]
    return f"manylinux_{major}_{minor}_{binary.python}"


def write(contents: Contents, folder: pathlib.Path) -> pathlib.Path:
    tags, name = platform(contents), f"antiphon-{contents.version}"
    each = "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))
    about = (
        f"Metadata-Version: 2.1\nName: antiphon\nVersion: {contents.version}\nSummary: {DESCRIPTION}\nLicense: MIT\n"
        f"Requires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n{(SOURCE / 'README.md').read_text()}"
    )
    files = {f"{name}.data/{place(path)}": file for path, file in contents.files.items()}
    info = f"{name}.dist-info"
    files[f"{info}/METADATA"] = (about.encode(), 0o644)
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: antiphon\nRoot-Is-Purelib: false\n{each}".encode(), 0o644)
    record = "".join(f"{path},{digest(data)},{len(data)}\n" for path, (data, _) in files.items())
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    path = folder / f"{name}-py3-none-{tags}.whl"
    time = datetime.datetime.fromtimestamp(contents.time, datetime.timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for file, (data, mode) in files.items():
            entry = zipfile.ZipInfo(file, time)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


def place(path: str) -> str:
    return f"scripts/{path.removeprefix('bin/')}" if path.startswith("bin/") else f"data/{path}"


def digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
