"""Games of a ghost's player with a learner, which leads it to new states, added to its fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_games.benchmarks.ghosts.fit import find, played
from llm_games.benchmarks.ghosts.ghost_model import Ghost, Source, fitted
from llm_games.benchmarks.run.api import resume, run
from llm_games.errors import BadParameter
from llm_games.facts import check_integer

WEIGHT = 3.0  # what a decision at the learner's table counts
EPISODES = 12


def refit(
    ghost: Ghost,
    learner: Any,
    db: Path,
    at: Sequence[int] = (),
    *,
    episodes: int = EPISODES,
    seed: int = 1,
    **overrides: Any,
) -> Ghost:
    """Play with `learner`, a player, at the seats `at`, record it in `db`, and fit to all of it.

    By default the learner takes the seats that the ghost's player never had, or else seat 0. If
    `db` is there, it is finished first. `overrides` are those of `llm_games.run`. Raises
    BadParameter: a seat is none of the game's, nobody of the ghost's player is left, or `db` is a
    run of somebody else, or one that the ghost is fitted to; others as of `llm_games.run`.
    """
    players = ghost.game.players
    seats = [*at] or [seat for seat in range(players) if seat not in ghost.seats] or [0]
    for seat in seats:
        check_integer("a learner's seat", seat, 0, players - 1)
    remaining = [seat for seat in range(players) if seat not in seats]
    if not remaining:
        raise BadParameter(f"the learner has all {players} seats, so {ghost.name!r} has none")
    if db.exists():
        _check(ghost, learner, db, seats, remaining)
        resume(db, **overrides)
    else:
        _play(ghost, learner, db, seats, episodes=episodes, seed=seed, **overrides)
    other = played(find(db, ghost.game, remaining[0]))
    source = Source(str(db), other.episodes, len(other.action), other.left_out, WEIGHT)
    return fitted(
        ghost.play.plus(other, WEIGHT),
        ghost.params,
        ghost.seat,
        [*ghost.sources, source],
        at_table=ghost.foretold(other),
    )


def _check(
    ghost: Ghost, learner: Any, db: Path, seats: Sequence[int], remaining: Sequence[int]
) -> None:
    """BadParameter: the run is not of this ghost and learner, or is counted already."""
    if db.resolve() in (Path(source.run).resolve() for source in ghost.sources):
        raise BadParameter(f"{ghost.name!r} has the games of {db} already; give another --db")
    ours, theirs = (find(db, ghost.game, subset[0]) for subset in (remaining, seats))
    if any(getattr(ours.seat, key) != ghost.seat[key] for key in ("player", "name", "settings")):
        raise BadParameter(
            f"{db} has {ours.seat.name!r} at seat {remaining[0]}, or {ghost.name!r} with other "
            "settings: it is not of this ghost; give another --db"
        )
    names = theirs.seat.player, theirs.seat.name
    if theirs.places != sorted({*seats}) or learner not in names:
        raise BadParameter(
            f"{db} has {theirs.seat.player!r} at seat {', '.join(map(str, theirs.places))}, not "
            f"{learner!r} at {', '.join(map(str, seats))}; give another --db"
        )


def _play(ghost: Ghost, learner: Any, db: Path, seats: Sequence[int], **settings: Any) -> None:
    players = range(ghost.game.players)
    ghost_seat = {key: ghost.seat[key] for key in ("player", "name")}
    ghost_seat |= {**ghost.seat["client"], **ghost.seat["settings"]}
    table = [{"player": learner, "name": "learner"} if s in seats else ghost_seat for s in players]
    label = f"{ghost.game.name}, refit {len(ghost.sources)}"  # other chance than all before had
    game = {"game": ghost.game.name, "label": label, "params": ghost.params, "seats": table}
    raw = {"title": f"{ghost.name} and a learner", "order": "fixed", "games": [game]}
    run(raw, db, **settings)
