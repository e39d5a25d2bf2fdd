"""Installs Python and npm packages for the tests, once, into ANTIPHON_CACHE.

    python = python_env.install("openai-sdk", ["openai==3.49.0"])

Several processes may call it at the same time: one installs, the others wait for it. A change of the
package list reinstalls.
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys


def cache() -> pathlib.Path:
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("ANTIPHON_CACHE") or pathlib.Path(home) / "antiphon")


def once(name: str, wanted: list[str], install) -> pathlib.Path:
    """Calls `install(folder)` unless the folder `name` of the cache holds exactly `wanted`."""
    root = cache()
    root.mkdir(parents=True, exist_ok=True)
    folder = root / name
    # Written last: a folder without it is a broken installation.
    mark = folder / "installed"
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text() != "\n".join(wanted):
            print(f"installing {' '.join(wanted)}", file=sys.stderr)
            install(folder)
            mark.write_text("\n".join(wanted))
    return folder


def make(folder: pathlib.Path, packages: list[str]) -> None:
    """Makes a virtual environment that holds `packages`: arguments of `pip install`."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True, stdout=sys.stderr)


def install_npm(name: str, folder: pathlib.Path, packages: list[str]) -> None:
    """Installs npm packages into the `node_modules` of a folder. No script of a package is run. `name` is the calling script."""
    npm = shutil.which("npm")
    if not npm:
        sys.exit(f"{name}: npm is missing: install it (scripts/need npm), then run this again")
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    # The standard output of the calling script is the folder alone.
    subprocess.run([npm, "install", "--prefix", str(folder), *quiet, *packages], check=True, stdout=sys.stderr)


def install(name: str, packages: list[str]) -> pathlib.Path:
    """Returns the Python interpreter that has `packages`."""
    return once(name, packages, lambda folder: make(folder, packages)) / "bin/python"


def run_inside(name: str, packages: list[str], usage: str, arguments: int) -> list[str]:
    """Continues the calling script in an interpreter that has `packages`, and returns its arguments.

    With `--install` as its only argument the script ends once they are installed.
    """
    given = sys.argv[1:]
    if given != ["--install"] and len(given) != arguments:
        sys.exit(usage)
    python = install(name, packages)
    if given == ["--install"]:
        sys.exit()
    if pathlib.Path(sys.prefix) != python.parent.parent:
        os.execv(python, [str(python), *sys.argv])
    return given
