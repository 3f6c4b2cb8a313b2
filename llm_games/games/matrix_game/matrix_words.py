"""Matrix games in words: what actions are called, what they pay, and what happened."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple

from llm_games.errors import BadParameter

if TYPE_CHECKING:
    from llm_games.games.matrix_game.rules import MatrixGame, MatrixState
    from llm_games.rulebook import Array

LONGEST_LABEL, LONGEST_NAME = 30, 60
LABEL = re.compile(rf'(?!\s)[^"\\]{{1,{LONGEST_LABEL}}}(?<!\s)').fullmatch
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
    counts = [len(words) if _are_labels(words) else 0 for words in lists]
    if counts != [*actions]:
        raise BadParameter(
            f"{name} must be letters, drawn, one list of words for the actions, or one for each "
            f"player ({', '.join(map(str, actions))}): different ones of at most {LONGEST_LABEL} "
            f"letters without quotation marks or backslashes, got {value!r}"
        )
    return lists


def _are_labels(words: Any) -> bool:
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


class TableWords(NamedTuple):
    """The words of a table; without its state, those that are settled before a game."""

    game: MatrixGame
    state: MatrixState | None = None

    def labels(self, seat: int) -> Sequence[str]:
        """Return what a seat's actions are called, by number."""
        if self.game.settled_labels:
            return self.game.settled_labels[seat]
        assert self.state is not None, "labels are drawn"
        return [MEANINGLESS[k] for k in self.state.words[: self.game.actions[seat]].tolist()]

    def menu(self, viewer: int, seat: int) -> list[int]:
        """Return a seat's actions in the order in which a viewer is shown them."""
        actions = list(range(self.game.actions[seat]))
        if self.state is not None and self.game.order == "drawn":
            return [action for action in self.state.order[:, viewer].tolist() if action in actions]
        return actions[::-1] if self.game.order == "reversed" else actions

    def scene(self, viewer: int) -> dict[str, Any]:
        """Return what a seat can do, and what all are then paid."""
        words, menu, payoffs = self.labels(viewer), self.menu(viewer, viewer), self.game.table.exact
        scene: dict[str, Any] = {"menu": [words[k] for k in menu]}
        if self.game.by_count is not None:
            lines = [{"own": words[k], "paid": payoffs[k].tolist()} for k in menu]
            return scene | {"first": words[0], "lines": lines}
        menus = [self.menu(viewer, seat) for seat in range(self.game.players)]
        cells = product(menu, *menus[:viewer], *menus[viewer + 1 :])
        by_seat = [(*rest[:viewer], own, *rest[viewer:]) for own, *rest in cells]
        lines = [self.profile(viewer, cell, [seat[cell] for seat in payoffs]) for cell in by_seat]
        return scene | {"lines": lines}

    def profile(self, viewer: int, actions: Sequence[int], paid: Any = None) -> dict[str, Any]:
        """Return who does what, and what each is `paid` for it, if that is to be told."""
        names = ["the other"] * 2 if self.game.players == 2 else self.game.names()
        each = [{"name": name, "label": self.labels(k)[actions[k]]} for k, name in enumerate(names)]
        if paid is not None:
            each = [row | {"paid": payoff} for row, payoff in zip(each, paid, strict=True)]
        reader = each.pop(viewer)
        line = {"own": reader["label"], "others": each}
        return line if paid is None else line | {"paid": paid[viewer]}

    def tell(self, facts: Mapping[str, Array], viewer: int) -> dict[str, Any]:
        """Return in words what a seat knows by these facts, which are those of all seats."""
        game, words, played = self.game, self.labels(viewer), int(facts["round"]) - 1
        last: dict[str, Any] | None = None
        before = None
        if played and "action" in facts:
            last = {
                "round": played,
                "own": words[facts["action"][viewer]],
                "others": [],
                "payoff": None,
                "slipped": "slipped" in facts and bool(facts["slipped"][viewer]),
                "first": words[0] if "first" in facts else None,
                "count": int(facts["first"]) if "first" in facts else None,
            }
            if "payoff" in facts:
                table = game.table
                last["payoff"] = table.value(round(facts["payoff"][viewer] * table.unit))
            if "seen" in facts:
                last |= self.seen(facts["seen"], viewer)
        if played > 1 and "before" in facts:
            before = {"round": played - 1} | self.seen(facts["before"], viewer)
        scenes = {} if game.settled else {"scenes": {viewer: self.scene(viewer)}}
        return {"round": min(played + 1, game.rounds), "last": last, "before": before} | scenes

    def seen(self, sight: Array, viewer: int) -> dict[str, Any]:
        """Return who was seen to do what in a past round."""
        actions = sight[:, viewer] if self.game.sees_wrong else sight
        return self.profile(viewer, actions.tolist())
