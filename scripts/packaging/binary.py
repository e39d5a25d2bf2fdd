"""A binary for Linux: which machines it runs on, read from the file itself."""

import pathlib
import struct
import subprocess
import tempfile

# The machine of an ELF file, as Debian, Python and npm name it.
MACHINES = {62: ("amd64", "x86_64", "x64"), 183: ("arm64", "aarch64", "arm64")}

INTERPRETER = 3  # PT_INTERP
SYMBOLS = 2  # SHT_SYMTAB
NEEDED_VERSIONS = 0x6FFFFFFE  # SHT_GNU_verneed


class Binary:
    """`glibc` is the oldest version that it runs with, and None for a static binary, which needs no library."""

    def __init__(self, path: pathlib.Path):
        data = path.read_bytes()
        if data[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"packaging: {path} is no 64-bit ELF file")
        machine = struct.unpack_from("<H", data, 18)[0]
        if machine not in MACHINES:
            raise SystemExit(f"packaging: {path} is for a machine that has no name here: {machine}")
        self.debian, self.python, self.npm = MACHINES[machine]
        segments = self._table(data, 32, 54)
        sections = self._table(data, 40, 58)
        self.is_static = not any(struct.unpack_from("<I", entry)[0] == INTERPRETER for entry in segments)
        kinds = [struct.unpack_from("<I", entry, 4)[0] for entry in sections]
        self.glibc = None if self.is_static else max(self._glibc(data, sections, kinds))
        self.data = self._stripped(path) if SYMBOLS in kinds else data

    @staticmethod
    def _table(data: bytes, offset_at: int, size_at: int) -> list[bytes]:
        offset = struct.unpack_from("<Q", data, offset_at)[0]
        size, count = struct.unpack_from("<HH", data, size_at)
        return [data[offset + size * index : offset + size * (index + 1)] for index in range(count)]

    @staticmethod
    def _glibc(data: bytes, sections: list[bytes], kinds: list[int]):
        """Every version of glibc that a symbol is needed of."""
        entry = sections[kinds.index(NEEDED_VERSIONS)]
        offset, _ = struct.unpack_from("<QQ", entry, 24)
        link = struct.unpack_from("<I", entry, 40)[0]
        names = struct.unpack_from("<Q", sections[link], 24)[0]
        while True:
            _, count, _, aux, following = struct.unpack_from("<HHIII", data, offset)
            at = offset + aux
            for _ in range(count):
                name, onward = struct.unpack_from("<II", data, at + 8)
                text = data[names + name : data.index(b"\0", names + name)].decode()
                if text.startswith("GLIBC_") and text[6].isdigit():
                    yield tuple(int(part) for part in text[6:].split("."))
                at += onward
            if not following:
                return
            offset += following

    @staticmethod
    def _stripped(path: pathlib.Path) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "antiphon"
            subprocess.run(["strip", "-o", copy, path], check=True)
            return copy.read_bytes()
