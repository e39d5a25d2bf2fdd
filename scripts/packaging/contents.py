"""What every package holds: the binary, completions, manual pages and documents, by their place below `usr`."""

import dataclasses
import os
import pathlib
import re
import subprocess
import tempfile

from binary import Binary

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent

DESCRIPTION = "A durable agent orchestrator: one binary, one journal"
DOCUMENTS = ["README.md", "CHANGELOG.md", "LICENSE"]

COMPLETIONS = {
    "bash": "share/bash-completion/completions/antiphon",
    "zsh": "share/zsh/site-functions/_antiphon",
    "fish": "share/fish/vendor_completions.d/antiphon.fish",
}


@dataclasses.dataclass
class Contents:
    version: str
    binary: Binary
    # Path below `usr`: bytes and mode.
    files: dict[str, tuple[bytes, int]]
    # The same source makes the same packages: no file has the time of the build.
    time: int

    @staticmethod
    def of(path: pathlib.Path) -> "Contents":
        binary = Binary(path)
        with tempfile.TemporaryDirectory() as home:
            environment = {"HOME": home, "PATH": os.environ["PATH"]}

            def said(*arguments: str) -> bytes:
                command = [path, *arguments]
                return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment).stdout

            version = re.fullmatch(r"antiphon (\S+)\n", said("--version").decode()).group(1)
            files = {"bin/antiphon": (binary.data, 0o755)}
            for shell, place in COMPLETIONS.items():
                files[place] = (said("completions", shell), 0o644)
            pages = pathlib.Path(home) / "pages"
            said("man", str(pages))
            for page in sorted(pages.iterdir()):
                files[f"share/man/man1/{page.name}"] = (page.read_bytes(), 0o644)
        for name in DOCUMENTS:
            files[f"share/doc/antiphon/{name}"] = ((SOURCE / name).read_bytes(), 0o644)
        return Contents(version, binary, files, time())


def time() -> int:
    """Seconds of SOURCE_DATE_EPOCH, or of the last commit; 1980 where there is none."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    asked = subprocess.run(["git", "-C", SOURCE, "log", "-1", "--format=%ct"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return int(asked.stdout or 315532800)
