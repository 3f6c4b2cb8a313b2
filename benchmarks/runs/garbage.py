"""Python's search for cyclic garbage halts all tables at once, so a run lets it happen rarely."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 10_000
"""Between two searches; Python's default is 700, which at 320 answers a second is every 40 ms."""


@contextmanager
def searched_rarely() -> Iterator[None]:
    """Search less often, and not through what was there before (packages and the like)."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
