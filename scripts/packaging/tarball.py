"""A tar archive with a folder to unpack anywhere: `bin` and `share`, as below `/usr/local`."""

import pathlib

import archive
from contents import Contents


def write(contents: Contents, folder: pathlib.Path) -> pathlib.Path:
    name = f"antiphon-{contents.version}-{contents.binary.python}-linux"
    files = {f"{name}/{path}": file for path, file in contents.files.items()}
    path = folder / f"{name}.tar.gz"
    path.write_bytes(archive.tar(files, contents.time))
    return path
