"""What actions are called: letters, words of one's own, or words without a meaning."""

from __future__ import annotations

from string import ascii_uppercase
from typing import Any

from llm_games.errors import BadParameter

LONGEST_LABEL = 30
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
