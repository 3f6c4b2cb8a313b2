"""How often Python searches for cyclic garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 10_000
"""Between two searches; Python's 700 are every 40 ms at 320 answers a second."""


@contextmanager
def few_searches() -> Iterator[None]:
    """Search rarely, and not in what is there (packages and so on): a search halts all at once."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
