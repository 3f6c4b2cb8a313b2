"""What rule players would have done in recorded states, as distributions of moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.adaptive_rules import LastRounds
from llm_games.baselines.move_chances import rule_moves
from llm_games.baselines.played_episodes import PlayedEpisodes
from llm_games.baselines.players import make_player, players_for
from llm_games.baselines.rules import RulePolicy
from llm_games.baselines.tree import TooLarge
from llm_games.baselines.type_mixtures import ForetoldMoves
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.rulebook import Array, Rulebook

ANYTHING = ("random",)  # any move is in every type, by its errors
STRATA = 128  # parts of all chance in which a rule that draws is looked up
CHOICES = 8  # options up to which moves are choices, that are not near or far from one another


class RecordedMoves(NamedTuple):
    """Decisions of some seats in episodes of one game, in which they were legal.

    `state` has a table for each decision, `seats` are the seats of the game, `sitters` number the
    seats of all episodes, from 0, `episodes` and `rounds` are of each decision.
    """

    game: Rulebook
    state: Any
    actions: Array
    seats: Array
    sitters: Array
    episodes: Array
    rounds: Array
    last_rounds: LastRounds
    low: Array
    high: Array


def recorded_moves(episodes: PlayedEpisodes) -> RecordedMoves:
    """Return the decisions of the studied seats.

    Raises:
        BadParameter: a seat moves in plans, or no move is left.
    """
    game = episodes.game.core
    if game.division is not None:
        raise BadParameter(f"moves of {game.name} are plans, of which no type is known")
    sitters = np.cumsum(episodes.studied.T).reshape(episodes.studied.T.shape).T - 1
    last = np.full((3, *sitters.shape), np.nan)  # in the order of `LastRounds`
    states, columns, last_columns = list[Any](), list[dict[str, Array]](), list[Array]()
    for number, step in enumerate(episodes.steps):
        low, high = game.amounts(step.state)
        inside = (step.actions >= low) & (step.actions <= high) & (high > low)
        cells = seats, tables = np.nonzero(step.chosen & inside)
        if len(seats):
            states.append(step.state.table(tables))
            last_columns.append(last[:, seats, tables])
            columns.append(
                {
                    "actions": step.actions[cells],
                    "seats": seats,
                    "sitters": sitters[cells],
                    "episodes": tables,
                    "rounds": np.full(len(seats), number),
                    "low": low[cells],
                    "high": high[cells],
                }
            )
        actions = np.where(step.answered, step.actions, np.nan)
        others = np.maximum(step.answered.sum(axis=0) - step.answered, 1)
        others_mean = (np.nansum(actions, axis=0) - np.nan_to_num(actions)) / others
        last = np.where(step.answered, [actions, others_mean, step.payoffs], last)
    if not columns:
        raise BadParameter("no move of its own could tell one type from another")
    last_rounds = LastRounds(*np.concatenate(last_columns, axis=1))
    joined = {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}
    return RecordedMoves(game=game, state=_joined(states), last_rounds=last_rounds, **joined)


def _joined(states: Sequence[Any]) -> Any:
    """Put states one after another; histories that grow are taken as far back as the shortest."""
    arrays = [state.arrays() for state in states]
    joined = {}
    for name in arrays[0]:
        parts = [np.asarray(of[name]) for of in arrays]
        if len({part.shape[:-1] for part in parts}) > 1:
            raise BadParameter(f"{name} of a state changes its shape from round to round")
        joined[name] = np.concatenate(parts, axis=-1)
    return states[0].replace(**joined)


def foretell(recorded: RecordedMoves, names: Sequence[str]) -> ForetoldMoves:
    """Return what rule players foretell of recorded moves; who draws too many moves is left out.

    Raises:
        BadParameter: one is no player of the game, or remembers more than the state.
    """
    game, types, parts = recorded.game, [], []
    for name in names:
        policy = make_player(name, game)
        if not isinstance(policy, RulePolicy):
            raise BadParameter(f"{name} is no type: it remembers more than a state shows")
        try:
            parts.append(_foretold(recorded, policy))
        except TooLarge:
            continue
        types.append(name)
    if not parts:
        raise BadParameter(f"none of {', '.join(names)} foretells moves of {game.name}")
    return ForetoldMoves(
        types=tuple(types),
        actions=recorded.actions,
        low=recorded.low,
        high=recorded.high,
        seats=np.unique(recorded.sitters, return_inverse=True)[1],
        parts=tuple(parts),
        numbers=bool((recorded.high - recorded.low).max() >= CHOICES),
    )


def _foretold(recorded: RecordedMoves, policy: RulePolicy) -> tuple[Array, Array]:
    rule, count = policy.rule_in(recorded.game), len(recorded.actions)
    parts = []
    for seat in np.unique(recorded.seats):
        rows = np.flatnonzero(recorded.seats == seat)
        state = recorded.state.table(rows)
        parts.append(
            (rows, *rule_moves(recorded.game, rule, policy.name, state, int(seat), STRATA))
        )
    width = max(moves.shape[1] for _, moves, _ in parts)
    moves, chances = np.zeros((count, width), np.int64), np.zeros((count, width))
    for rows, of_seat, likely in parts:
        moves[rows, : of_seat.shape[1]] = of_seat
        chances[rows, : likely.shape[1]] = likely
    return moves, chances


def usual_types(game: Rulebook) -> list[str]:
    """Return the types that are looked for by default: rules of a game that need no value.

    Besides levels of reasoning 0 to 3, and a fixed choice where there are few.
    """
    game, names = game.core, [name.split(":")[0] for name in players_for(game.name)]
    tried = [*dict.fromkeys(names), *(f"level_k:{level}" for level in range(4))]
    low, high = game.bounds()
    if high - low < CHOICES:
        tried += [f"fixed:{move}" for move in range(low, high + 1)]
    return [name for name in tried if name not in ANYTHING and _is_rule(name, game)]


def _is_rule(name: str, game: Rulebook) -> bool:
    try:
        return isinstance(make_player(name, game), RulePolicy)
    except LLMGamesError:
        return False
