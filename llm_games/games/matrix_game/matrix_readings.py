"""How parameters of matrix games are read: what actions and the game are called, and noise."""

from __future__ import annotations

from fractions import Fraction
from string import ascii_uppercase
from typing import Any

from llm_games.errors import BadParameter
from llm_games.facts import ratio_of

LONGEST_LABEL, LONGEST_NAME = 30, 60
MEANINGLESS = (
    *("bavo", "cuddim", "dreel", "fannick", "gopsa", "haldry", "jixel", "kerbo"),
    *("lunth", "mossig", "nerrow", "ovlin", "paskel", "quindo", "risbet", "sabbor"),
    *("teemle", "ulvane", "vaxter", "wimsol", "yorrick", "zandel", "blimmer", "corvash"),
    *("dunstel", "effrin", "fargol", "gwendle", "hobrin", "istrel", "jamvor", "kestrom"),
    *("lopsin", "mardel", "nubbock", "orsten", "plavin", "rondick", "skelby", "trommel"),
)


def labels_of(
    name: str, value: Any, actions: tuple[int, ...]
) -> tuple[tuple[str, ...], ...] | None:
    """Return the labels of each seat's actions; None where they are drawn.

    Raises BadParameter unless they are as many as actions, and differ whatever their case.
    """
    if value == "drawn":
        return None
    if value == "letters":
        return tuple(tuple(ascii_uppercase[:count]) for count in actions)
    lists = value if isinstance(value, tuple) else ()
    if all(isinstance(label, str) for label in lists):
        lists = (lists,) * len(actions)
    fits = len(lists) == len(actions) and all(
        isinstance(labels, tuple) and len(labels) == count and _differ(labels)
        for labels, count in zip(lists, actions, strict=False)
    )
    if not fits:
        counts = ", ".join(map(str, actions))
        raise BadParameter(
            f"{name} must be letters, drawn, one list of words for the actions, or one for each "
            f"player ({counts}): different ones of at most {LONGEST_LABEL} letters, got {value!r}"
        )
    return lists


def _differ(labels: tuple[Any, ...]) -> bool:
    plain = [
        isinstance(label, str)
        and label.strip() == label != ""
        and len(label) <= LONGEST_LABEL
        and label.isprintable()
        and not set(label) & set('"\\')
        for label in labels
    ]
    return all(plain) and len({label.lower() for label in labels}) == len(labels)


def called_of(name: str, value: Any) -> str:
    plain = isinstance(value, str) and value.isprintable() and value.strip()
    if not plain or len(value) > LONGEST_NAME:
        raise BadParameter(f"{name} must be a name of 1 to {LONGEST_NAME} letters, got {value!r}")
    return str(value)


def noise_of(name: str, value: Any) -> Fraction:
    share = ratio_of(name, value, 0, 1)
    if share == 1:
        raise BadParameter(f"{name} must be a ratio of at least 0 and below 1, got {value!r}")
    return share
