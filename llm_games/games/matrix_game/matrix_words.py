"""Matrix games in words: what actions are called, what they pay, and what happened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from llm_games.errors import BadParameter
from llm_games.facts import ratio_of

if TYPE_CHECKING:
    from llm_games.games.matrix_game.rules import MatrixGame, MatrixState
    from llm_games.rulebook import Array

LONGEST_LABEL, LONGEST_NAME = 30, 60
LABEL = re.compile(r'(?!\s)[^"\\]{1,30}(?<!\s)').fullmatch
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
    if [_differ(words) and len(words) for words in lists] != [*actions]:
        raise BadParameter(
            f"{name} must be letters, drawn, one list of words for the actions, or one for each "
            f"player ({', '.join(map(str, actions))}): different ones of at most {LONGEST_LABEL} "
            f"letters, got {value!r}"
        )
    return lists


def _differ(words: Any) -> bool:
    return (
        isinstance(words, tuple)
        and all(isinstance(word, str) and word.isprintable() and LABEL(word) for word in words)
        and len({word.lower() for word in words}) == len(words)
    )


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


def labels(game: MatrixGame, state: MatrixState | None, seat: int) -> Sequence[str]:
    """Return what a seat's actions are called, by number; without a state if that is settled."""
    if game.settled_labels:
        return game.settled_labels[seat]
    assert state is not None, "labels are drawn"
    return [MEANINGLESS[word] for word in state.words[: game.actions[seat]].tolist()]


def menu(game: MatrixGame, state: MatrixState | None, viewer: int, seat: int) -> list[int]:
    """Return a seat's actions in the order in which a viewer is shown them."""
    actions = list(range(game.actions[seat]))
    if state is not None and game.order == "drawn":
        return [action for action in state.order[:, viewer].tolist() if action in actions]
    return actions[::-1] if game.order == "reversed" else actions


def _viewer_first(game: MatrixGame, viewer: int) -> list[int]:
    return sorted(range(game.players), key=lambda seat: (seat != viewer, seat))


def _named(game: MatrixGame, state: MatrixState | None, seat: int, action: int) -> dict[str, Any]:
    name = "the other" if game.players == 2 else game.names()[seat]
    return {"name": name, "label": labels(game, state, seat)[action]}


def scene(game: MatrixGame, state: MatrixState | None, viewer: int) -> dict[str, Any]:
    """Return what a seat can do, and what all are then paid."""
    words, payoffs = labels(game, state, viewer), game.table.exact
    shown = menu(game, state, viewer, viewer)
    lines: list[dict[str, Any]] = []
    if game.by_count is not None:
        lines = [{"own": words[k], "paid": payoffs[k].tolist()} for k in shown]
        return {"menu": [words[k] for k in shown], "first": words[0], "lines": lines}
    seats = _viewer_first(game, viewer)
    for actions in product(*(menu(game, state, viewer, seat) for seat in seats)):
        cell = tuple(action for _, action in sorted(zip(seats, actions, strict=True)))
        me, *others = (
            _named(game, state, seat, cell[seat]) | {"paid": payoffs[seat][cell]} for seat in seats
        )
        lines.append({"own": me["label"], "paid": me["paid"], "others": others})
    return {"menu": [words[k] for k in shown], "lines": lines}


def tell(game: MatrixGame, state: MatrixState, seat: int) -> dict[str, Any]:
    """Return what a seat of one table knows, for prompts."""
    played, names = int(state.round), [fact.name for fact in game.known()]
    story: dict[str, Any] = {"round": min(played + 1, game.rounds), "last": None, "before": None}
    if not game.settled:
        story["scene"] = scene(game, state, seat)
    if played and len(names) > 1:
        story["last"] = {"round": played} | _last(game, state, seat, names)
    if played > 1 and "before" in names:
        story["before"] = {"round": played - 1} | _sight(game, state.sight_2, seat, state)
    return story


def _last(game: MatrixGame, state: MatrixState, seat: int, names: Sequence[str]) -> dict[str, Any]:
    words, units = labels(game, state, seat), game.table.of(state.actions)[seat]
    last: dict[str, Any] = {
        "payoff": game.table.value(units) if "payoff" in names else None,
        "first": words[0] if "first" in names else None,
        "others": [],
        "own": words[int(state.actions[seat])],
        "slipped": "slipped" in names and bool(state.slipped[seat]),
    }
    if "first" in names:
        last["count"] = int((state.actions == 0).sum())
    return last | (_sight(game, state.sight_1, seat, state) if "seen" in names else {})


def _sight(game: MatrixGame, sights: Array, viewer: int, state: MatrixState) -> dict[str, Any]:
    """Return what a seat saw in a round."""
    actions = sights[viewer if game.sees_wrong else 0].tolist()
    me, *others = (_named(game, state, k, actions[k]) for k in _viewer_first(game, viewer))
    return {"own": me["label"], "others": others}
