"""packaging BINARY FOLDER [KIND...]: writes the packages of a binary into a folder, with the SHA-256 of each.

    python3 scripts/packaging target/release/antiphon dist

The kinds are `tarball`, `deb`, `wheel` (PyPI) and `npm`; all when none is named. Each has the binary, completions and manual pages. What they ask
of a machine (its kind, the version of glibc) is read from the binary. Standard output has the path of each.
"""

import hashlib
import pathlib
import sys

import deb
import npm
import tarball
import wheel
from contents import Contents


def main() -> int:
    kinds = {"tarball": tarball, "deb": deb, "wheel": wheel, "npm": npm}
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= set(kinds):
        print(__doc__, file=sys.stderr)
        return 2
    binary, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    contents = Contents.of(binary)
    paths = [kinds[kind].write(contents, folder) for kind in sys.argv[3:] or kinds]
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)
    (folder / "SHA256SUMS").write_text(sums)
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
