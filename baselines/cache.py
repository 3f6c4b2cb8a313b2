"""Arrays kept on disk between runs.

The folder is `$LLM_GAMES_CACHE`, else `$XDG_CACHE_HOME/llm-games`, else `~/.cache/llm-games`.
The cache is only ever a short cut: a damaged file is computed afresh and replaced, and where
nothing can be written nothing is kept. A file is a SHA-256 digest and then an `.npz` archive.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]


def folder() -> Path:
    """The cache folder (it need not exist yet)."""
    if own := os.environ.get("LLM_GAMES_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "llm-games"
    try:
        return Path.home() / ".cache" / "llm-games"
    except RuntimeError:  # an account without a home folder
        return Path(tempfile.gettempdir()) / "llm-games"


def remember(name: str, compute: Callable[[], Arrays]) -> Arrays:
    """Arrays stored under `name`, or computed and stored.

    `name` must carry everything that the result depends on, the version of the method included.
    """
    path = folder() / f"{name}.cache"
    stored = _read(path)
    if stored is not None:
        return stored
    arrays = compute()
    _write(path, arrays)
    return arrays


def _read(path: Path) -> Arrays | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, archive = content[:32], content[32:]
    if digest != sha256(archive).digest():
        return None
    with np.load(BytesIO(archive), allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _write(path: Path, arrays: Arrays) -> None:
    archive = BytesIO()
    np.savez(archive, allow_pickle=False, **arrays)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            temporary = Path(file.name)
            file.write(sha256(archive.getvalue()).digest() + archive.getvalue())
        os.replace(temporary, path)  # a reader sees the old file or the whole new one
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
