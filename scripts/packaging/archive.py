"""Archives that are the same for the same contents."""

import gzip
import io
import tarfile


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=6, mtime=0)


def tar(files: dict[str, tuple[bytes, int]], time: int, folders: bool = True) -> bytes:
    """A gzipped tar archive of `files`, by path, with the folders that they are in."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(folders_of(files) if folders else []):
            archive.addfile(entry(path, time, 0o755, tarfile.DIRTYPE))
        for path in sorted(files):
            data, mode = files[path]
            info = entry(path, time, mode, tarfile.REGTYPE)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return gzipped(written.getvalue())


def folders_of(files) -> set[str]:
    folders = set()
    for path in files:
        parts = path.split("/")[:-1]
        folders.update("/".join(parts[: index + 1]) for index in range(len(parts)))
    return folders - {"."}


def entry(path: str, time: int, mode: int, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.mtime = kind, mode, time
    info.uname = info.gname = "root"
    return info
