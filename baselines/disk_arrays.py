"""Arrays cached on disk between runs, in `$LLM_GAMES_CACHE`, `$XDG_CACHE_HOME` or `~/.cache`.

Nothing depends on them: a damaged file is computed anew, a folder that cannot be written ignored. A
file is a SHA-256 digest followed by an `.npz` archive.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from llm_games.files import cache_folder

Arrays = dict[str, np.ndarray]


def remember(name: str, compute: Callable[[], Arrays]) -> Arrays:
    """Return arrays cached by a name of all they depend on, or compute and cache them."""
    path = cache_folder() / f"{name}.cache"
    with suppress(OSError):
        content = path.read_bytes()
        if content[:32] == sha256(content[32:]).digest():
            with np.load(BytesIO(content[32:]), allow_pickle=False) as file:
                return {key: file[key] for key in file.files}
    arrays, archive = compute(), BytesIO()
    named: dict[str, Any] = {**arrays}
    np.savez(archive, **named)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as near:
            written = Path(near, "whole")
            written.write_bytes(sha256(archive.getvalue()).digest() + archive.getvalue())
            written.replace(path)  # a reader sees the old file or the whole new one
    return arrays
