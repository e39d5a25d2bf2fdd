"""A package for Debian and its relatives: an `ar` archive of two tar archives."""

import hashlib
import pathlib

import archive
from contents import DESCRIPTION, Contents

ZSH = "share/zsh/site-functions/", "share/zsh/vendor-completions/"


def write(contents: Contents, folder: pathlib.Path) -> pathlib.Path:
    files = {f"./usr/{placed(path)}": packed(path, file) for path, file in contents.files.items()}
    binary = contents.binary
    fields = {
        "Package": "antiphon",
        "Version": contents.version,
        "Architecture": binary.debian,
        "Maintainer": "The Antiphon authors <antiphon@localhost>",
        "Installed-Size": sum(len(data) for data, _ in files.values()) // 1024 + 1,
        "Depends": "bash" if binary.is_static else f"bash, libc6 (>= {'.'.join(map(str, binary.glibc))}), libgcc-s1",
        "Recommends": "ca-certificates, git",
        "Section": "devel",
        "Priority": "optional",
        "Description": f"{DESCRIPTION}\n It runs agents that call models and use tools in your project. Kill it\n"
        " at any instruction, start it again, and every task continues.",
    }
    control = "".join(f"{name}: {value}\n" for name, value in fields.items())
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {path[2:]}\n" for path, (data, _) in sorted(files.items()))
    about = {"./control": (control.encode(), 0o644), "./md5sums": (sums.encode(), 0o644)}
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": archive.tar(about, contents.time),
        "data.tar.gz": archive.tar(files, contents.time),
    }
    path = folder / f"antiphon_{contents.version}_{binary.debian}.deb"
    with path.open("wb") as written:
        written.write(b"!<arch>\n")
        for name, data in members.items():
            written.write(f"{name:<16}{contents.time:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode())
            written.write(data + b"\n" * (len(data) % 2))
    return path


def placed(path: str) -> str:
    path = path.replace(*ZSH)
    if path == "share/doc/antiphon/LICENSE":
        return "share/doc/antiphon/copyright"
    return f"{path}.gz" if is_packed(path) else path


def packed(path: str, file: tuple[bytes, int]) -> tuple[bytes, int]:
    return (archive.gzipped(file[0]), file[1]) if is_packed(path) else file


def is_packed(path: str) -> bool:
    return path.startswith("share/man/") or path.endswith("CHANGELOG.md")
