"""Files that are whole or not there at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from llm_games.errors import DiskFull

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What an OSError says where there is no room left: on the disk, of a quota, of a file."""


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file and return its path; the old one stays until the new one is whole.

    Raises:
        DiskFull: there is no room; names the folder. The old file is as it was.
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
    """Return a `DiskFull` that names the folder if an error says that, else the error."""
    if error.errno not in FULL or isinstance(error, DiskFull):
        return error
    return DiskFull(
        f"no room is left in {folder.absolute()} ({error.strerror}); what was written before is "
        "whole: make room and go on"
    )
