"""Matrix games in words: what actions are called, what they pay, and what happened."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from llm_games.games.matrix_game.matrix_readings import MEANINGLESS

if TYPE_CHECKING:
    from llm_games.games.matrix_game.rules import MatrixGame, MatrixState
    from llm_games.rulebook import Array


def label(game: MatrixGame, state: MatrixState | None, seat: int) -> Sequence[str]:
    """Return what a seat's actions are called, by number; without a state if that is settled."""
    if game.given_labels:
        return game.given_labels[seat]
    assert state is not None, "labels are drawn"
    return [MEANINGLESS[word] for word in state.words[: game.actions[seat]].tolist()]


def shown(game: MatrixGame, state: MatrixState | None, viewer: int, seat: int) -> list[int]:
    """Return a seat's actions in the order in which a viewer is shown them."""
    actions = list(range(game.actions[seat]))
    if state is not None and game.order == "drawn":
        return [action for action in state.order[:, viewer].tolist() if action in actions]
    return actions[::-1] if game.order == "reversed" else actions


def name_of(game: MatrixGame, seat: int) -> str:
    return "the other" if game.players == 2 else game.names()[seat]


def scene(game: MatrixGame, state: MatrixState | None, viewer: int) -> dict[str, Any]:
    """Return what a seat can do, and what all are then paid."""
    words = label(game, state, viewer)
    menu = [(own, words[own]) for own in shown(game, state, viewer, viewer)]
    told: dict[str, Any] = {"menu": [word for _, word in menu]}
    if game.by_count is not None:
        rows = [
            {"own": word, "paid": [*map(game.given.value, game.given.units[own])]}
            for own, word in menu
        ]
        return told | {"first": words[0], "lines": rows}
    others = [seat for seat in range(game.players) if seat != viewer]
    lines = []
    for own, word in menu:
        for chosen in product(*(shown(game, state, viewer, seat) for seat in others)):
            index: Any = (slice(None), *chosen[:viewer], own, *chosen[viewer:])
            cell = game.given.units[index]
            rest = [
                {
                    "name": name_of(game, seat),
                    "label": label(game, state, seat)[action],
                    "paid": game.given.value(cell[seat]),
                }
                for seat, action in zip(others, chosen, strict=True)
            ]
            lines.append({"own": word, "others": rest, "paid": game.given.value(cell[viewer])})
    return told | {"lines": lines}


def tell(game: MatrixGame, state: MatrixState, seat: int) -> dict[str, Any]:
    """Return what a seat of one table knows, for prompts."""
    played, names = int(state.round), [fact.name for fact in game.known()]
    told: dict[str, Any] = {"round": min(played + 1, game.rounds), "last": None, "before": None}
    if not game.settled:
        told["scene"] = scene(game, state, seat)
    if played and len(names) > 1:
        told["last"] = _past(game, state, seat, names)
    if played > 1 and "before" in names:
        told["before"] = {"round": played - 1} | _seen(game, state.before, seat, state)
    return told


def _past(game: MatrixGame, state: MatrixState, seat: int, names: Sequence[str]) -> dict[str, Any]:
    past: dict[str, Any] = {"round": int(state.round), "payoff": None, "first": None, "others": []}
    past["own"] = label(game, state, seat)[int(state.actions[seat])]
    past["slipped"] = "slipped" in names and bool(state.slipped[seat])
    if "payoff" in names:
        past["payoff"] = game.given.value(game.given.paid(state.actions)[seat])
    if "first" in names:
        past |= {"first": label(game, state, seat)[0], "count": int((state.actions == 0).sum())}
    return past | _seen(game, state.seen, seat, state) if "seen" in names else past


def _seen(game: MatrixGame, by_observer: Array, viewer: int, state: MatrixState) -> dict[str, Any]:
    """Return what a seat saw in a round."""
    seen = by_observer[viewer if game.sees_wrong else 0].tolist()
    words = [label(game, state, seat)[action] for seat, action in enumerate(seen)]
    others = [seat for seat in range(game.players) if seat != viewer]
    told = [{"name": name_of(game, seat), "label": words[seat]} for seat in others]
    return {"own": words[viewer], "others": told}
