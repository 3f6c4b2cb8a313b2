"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import zlib
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from zipfile import BadZipFile, ZipFile

from llm_games.errors import DiskFull

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What an OSError says where there is no room left: on the disk, of a quota, of a file."""

DAMAGED = (OSError, EOFError, RuntimeError, MemoryError, BadZipFile, zlib.error)
"""What reading a file says that lost some of its bytes, or was made to be none."""
LARGE, TIMES = 100_000_000, 100
"""Bytes from which on a part of an archive may be so many times what it is packed into."""


def cache_folder() -> Path:
    """Return the folder of what can be worked out anew."""
    if override := os.environ.get("LLM_GAMES_CACHE"):
        return Path(override)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "llm-games"
    try:
        return Path.home() / ".cache" / "llm-games"
    except RuntimeError:  # an account without a home folder
        return Path(gettempdir()) / "llm-games"


def check_unpacked(file: ZipFile) -> None:
    """Raise BadZipFile if a part of an archive would unpack to far more than its size."""
    for part in file.infolist():
        if part.file_size > max(LARGE, TIMES * part.compress_size):
            raise BadZipFile(
                f"{part.filename!r} comes to {part.file_size:,} bytes out of {part.compress_size:,}"
            )


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file and return its path; the old one stays until the new one is whole.

    Raises DiskFull, which names the folder, if there is no room.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise full(error, path.parent) from error


def full(error: OSError, folder: Path) -> OSError:
    """Return a `DiskFull` that names the folder if the error is one of `FULL`, else the error."""
    if error.errno not in FULL or isinstance(error, DiskFull):
        return error
    return DiskFull(
        f"no room is left in {folder.absolute()} ({error.strerror}); what was written before is "
        "whole: make room and go on"
    )
