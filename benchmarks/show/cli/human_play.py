"""A person plays one game against chosen players, and is shown how well that went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.players import make_player, on_server, players_for
from llm_games.baselines.regret import deviation, has_deviation
from llm_games.benchmarks.judge.player_skill import skills
from llm_games.benchmarks.record.checked_table import ConfigError, checked
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, games
from llm_games.benchmarks.record.schema import move_of
from llm_games.benchmarks.run.conduct import play_run, seated_players, start
from llm_games.benchmarks.run.config import GameSettings
from llm_games.benchmarks.run.plan import RunPlan, params_of, plan_of
from llm_games.benchmarks.show.cli.common import values_of
from llm_games.benchmarks.show.tables import Move
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.rulebook import Rulebook
from llm_games.table import Table
from llm_games.view import View
from llm_games.words import Prompts
from llm_games.wrappers.human import HumanPolicy
from llm_games.wrappers.seats import Seats

YOU = "you"
NONE = "none gains anything"


def entries(params: Sequence[str], talk: Sequence[str] = ()) -> dict[str, Any]:
    """Read ``players=3`` and the like, and those of the talk; raises what `values_of` does."""
    read = {"params": values_of("--param", params), "talk": values_of("--talk", talk)}
    return {name: values for name, values in read.items() if values}


def parameters(game: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    return params_of(checked(GameSettings, {"game": game, **raw}, "--param"))


def planned(
    game: Rulebook,
    raw: Mapping[str, Any],
    seat: int,
    person: HumanPolicy | Mapping[str, Any],
    against: Sequence[str],
    *,
    server: Mapping[str, Any],
    seed: int,
) -> RunPlan:
    """The run of one episode with a person, called `YOU`, at a seat; raises LLMGamesError.

    The person is at the terminal, or a seat's table of somebody who comes by a link.

    `raw` are the game's entries in a configuration; `against` one spec for all the other seats, or
    one for each, with the settings of `server` for those behind one.
    """
    if not 0 <= seat < game.players:
        raise ConfigError(f"--seat must be from 0 to {game.players - 1}, got {seat}")
    usual = "rational" if "rational" in players_for(game.name) else "random"
    specs, others = against or [usual], game.players - 1
    if len(specs) not in (1, others):
        raise ConfigError(
            f"{game.name} has {others} other seats, but --against names {len(specs)} players; "
            f"give one for all of them, or {others}"
        )
    specs = [*specs] * others if len(specs) == 1 else specs
    seats: list[Any] = [{"player": s, **(server if on_server(s) else {})} for s in specs]
    table = person if isinstance(person, Mapping) else {"player": person}
    seats.insert(seat, {**table, "name": YOU})
    limit = {"max_steps": 1000} if game.length() is None else {}  # a game that may never end
    raw = dict(raw)
    guests = {"guests": raw.pop("guests")} if "guests" in raw else {}
    entry = {"game": game.name, **raw, **limit, "seats": seats}
    spot = "in a browser" if table is person else "at a terminal"
    plan = plan_of({"title": f"{game.title}, played {spot}", "games": [entry], **guests})
    [settings] = plan.games
    return plan.model_copy(update={"games": [settings.model_copy(update={"seeds": [seed]})]})


def record(plan: RunPlan, path: Path) -> None:
    """Play and record it; raises what `play_run` does, and PersonLeft if the input was closed."""
    with seated_players(plan) as policies:
        play_run(lambda: start(plan, path), plan, policies)


class PlayedByPerson(NamedTuple):
    """A person's game; `best`: the best reply that theory names and its gain, "" of a game left."""

    payoffs: list[tuple[str, str, float]]
    moves: list[Move]
    report: str
    best: str


def played(path: Path, seat: int, prompts: str = "v1") -> PlayedByPerson:
    """Also of a game that was left."""
    with Records.open_readonly(path) as records:
        [game] = games(records)
        if not game.played:
            return PlayedByPerson([], [], "", "")
        [episode] = game.played
        names = episode.rules.names()
        payoffs = [*zip(names, episode.seats, episode.payoffs.tolist(), strict=True)]
        (moves, state), best = _moves(episode, seat), ""
        ended = bool(state.over)
        for skill in skills(game) if ended else ():
            if skill.player == YOU and skill.gap is not None:
                gain = f"{skill.gap.gap:.2f} more a {skill.per}"
                best = f"{skill.best}: {gain}" if skill.best else NONE
        report = Prompts(game.name, prompts).report(View.of(episode.rules, state, seat))
    return PlayedByPerson(payoffs, moves, report, best)


def results_of_guests(path: Path, plan: RunPlan) -> dict[str, dict[str, Any]]:
    """By link, what is shown at the end: payoffs of all its games, and its moves beside theory."""
    links = plan.guest_seats()
    results: dict[str, dict[str, Any]] = {
        name: {"payoffs": [], "moves": []} for name in plan.guest_kinds()
    }
    with Records.open_readonly(path) as records:
        for game in games(records):
            for episode in game.played:
                for seat, position in enumerate(episode.row.seating):
                    if not (name := links[game.label][position]):
                        continue
                    payoff = {"game": game.label, "payoff": round(float(episode.payoffs[seat]), 2)}
                    results[name]["payoffs"].append(payoff)
                    for _, action, advice, regret in _moves(episode, seat)[0]:
                        move = {"move": action, "advice": advice, "regret": regret}
                        results[name]["moves"].append(move)
    return results


def _moves(episode: RecordedEpisode, seat: int) -> tuple[list[Move], Any]:
    """Go through a game again, without talk, beside an equilibrium player; also the last state."""
    game, moves = episode.rules, []
    table = Table(game)
    table.reset(episode.row.seed)
    is_solved = "rational" in players_for(game.name)
    adviser = Seats(table, {seat: make_player("rational", game)} if is_solved else {})
    adviser.start()
    actions: dict[int, dict[int, Any]] = {}
    for row in episode.decisions():
        actions.setdefault(row.step, {})[row.seat] = row.action
    for number, step in enumerate(episode.steps):
        if seat in actions[step.step]:
            view, regret = table.ready().view(seat), None
            advice: list[str] = []
            with suppress(LLMGamesError):  # not solved in this place, such as off the path of play
                advice = [_written(view, reply.action) for reply in adviser.ask_now().values()]
            if has_deviation(game.name):
                record = {name: np.asarray(value) for name, value in step.record.items()}
                with suppress(BadParameter):  # too large to be solved
                    lost = float(deviation(game, record).regret[seat])
                    regret = None if np.isnan(lost) else lost
            text = _written(view, actions[step.step][seat])
            moves.append(Move(number, text, "".join(advice), regret))
        table.step({seated: move_of(a) for seated, a in actions[step.step].items()})
        adviser.hear()
    return moves, table.state


def _written(view: View, action: Any) -> str:
    assert view.question is not None
    if action is None:
        return "no answer"
    value = view.question.value_of(np.asarray(action) if isinstance(action, list) else action)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {share}" for key, share in value.items())
    return "none" if value is None else str(value)
