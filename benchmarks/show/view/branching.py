"""Play on from the page of a decision: a branch beside its run.

Players by rule and toys play at once; models of servers out of a `Purse`, once a price is agreed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from llm_games.baselines.named_tools import TOOLS
from llm_games.baselines.players import ELSEWHERE, on_server, reading, rule_of
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import TOYS
from llm_games.benchmarks.record.run_settings import described_games
from llm_games.benchmarks.record.schema import AttemptRow, EpisodeRow
from llm_games.benchmarks.run import api, conduct
from llm_games.benchmarks.run.branch import Changes
from llm_games.benchmarks.run.config import PlayerSettings, PriceSettings
from llm_games.benchmarks.run.estimate import Estimate, branch_estimates
from llm_games.benchmarks.run.plan import Overrides, PlannedSeat, RunPlan, players
from llm_games.benchmarks.run.resume import planned
from llm_games.benchmarks.show.view.run_shelf import RunFile
from llm_games.errors import BadParameter
from llm_games.wrappers.clients.openai import is_loopback
from llm_games.wrappers.clients.stack import ledger_of
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.policy import Policy

MOST_TIMES = 100
FIELDS = ("times", "until", "chance", "player", "move", "text", "agreed")
SETTING = "setting."
"""Begins the name of a field of any setting of a player that asks a model."""
SHOWN = {
    "prompts": "wording",
    "persona": "persona",
    "memory": "memory",
    "reasoning": "reasoning",
    "temperature": "temperature",
    "max_tokens": "longest reply",
}
"""Settings that have a field, and what it is called; a form may have the others, too."""
LONGEST = 20_000  # characters of a prompt that can be changed in a page
PLACES = ("prompt_folder", "cache", "base_url", "api_key_file", "api_key_env", "headers")
"""Settings that can name a place to read from or write to."""
_turn = Lock()  # one at a time: each takes the next free name


class NotFromHere(BadParameter):
    """A player that a page starts by no click: it may cost money, or runs what a file names."""


@dataclass
class Purse:
    """The money that models may be asked for from pages; None: none that could cost any."""

    left: Decimal | None = None

    def pay(self, policies: Mapping[str, Policy]) -> None:
        """Take out what these players have spent, and may have."""
        clients = [policy.client for policy in policies.values() if isinstance(policy, LLMPolicy)]
        ledger = next(filter(None, map(ledger_of, clients)), None)
        if self.left is not None and ledger is not None:
            spent = ledger.total.money + ledger.total.unknown_money
            self.left = max(self.left - spent, Decimal(0))


class Quote(NamedTuple):
    """What a branch would cost, to be agreed to: the `form` again, with the word for it."""

    models: str
    estimate: Estimate
    left: Decimal
    by_file: bool  # at prices that the run's own file names
    form: Mapping[str, str]


class BranchForm(NamedTuple):
    """What the form of a decision's page begins with.

    Of the settings that it has, their `names` there, and their present values as `settings`; the
    last message that its model read, "" where that cannot be changed in a page; what is left to
    ask models for.
    """

    names: Mapping[str, str]
    settings: Mapping[str, str]
    text: str
    left: Decimal | None


def branch_form(
    records: Records, row: EpisodeRow, asked: Sequence[AttemptRow], seat: int, purse: Purse
) -> BranchForm:
    """Return what the form of a decision's page begins with; `asked`: the calls of the decision."""
    games = {str(game.get("label")): game for game in described_games(records.config)}
    settings: Mapping[str, Any] = {}
    with suppress(LookupError, TypeError, AttributeError):  # older, or a stranger's
        settings = dict(games[row.game.label]["seats"][row.seating[seat]]["settings"])
    first = next((call for call in asked if call.kind in ("move", "speech")), None)
    text = records.messages(first.prompt)[-1]["content"] if first else ""
    plain = len(text) <= LONGEST and all(c.isprintable() or c == "\n" for c in text)
    present = {name: _written(settings.get(name)) for name in SHOWN}
    return BranchForm(SHOWN, present, text if plain else "", purse.left)


def branch(
    run: RunFile, numbers: tuple[int, int, int], form: Mapping[str, str], purse: Purse
) -> Path | Quote:
    """Play what the form of a decision's page asks for; return the new run's file.

    Of models that may cost money a quote, until the form agrees to it. Raises NotFromHere,
    BadParameter for a field, and what `api.branch` does; the run is only read.
    """
    episode, step, seat = numbers
    with run.records() as records:
        row = next((row for row in records.episodes() if row.id == episode), None)
        if row is None:
            raise BadParameter(f"{run.path.name} has no episode {episode}")
        plan = planned(records)
        asked = [call for call in records.attempts(episode, step) if call.seat == seat]
        changes = _changes(form, seat, branch_form(records, row, asked, seat, purse).text)
    place = f"{row.game.label}/{row.number}/{step}"
    way = f"llm-games branch {run.path.name} --at {place}"
    check = partial(_check_harmless, game=row.game.game, way=way, purse=purse)
    for planned_seat in [
        s for game in plan.games if game.label == row.game.label for s in game.seats
    ]:
        check(planned_seat.player, planned_seat)
    for player in changes.seats.values():
        check(player, None)
    with _turn:
        names = (run.path.with_name(f"{run.name}-branch-{n}.db") for n in count(1))
        path = next(name for name in names if not name.exists())
        plan, _ = api.branch_plan(run.path, place, path, changes=changes, overrides={}, own={})
        plan = plan.model_copy(update={"cache": None})
        for planned_seat in plan.seats:  # their tools may be other ones
            check(planned_seat.player, planned_seat)
        if models := sorted({s.player for s in plan.seats if on_server(s.player)}):
            assert purse.left is not None
            plan, by_file = _priced(plan, purse.left)
            quote = _quote(plan, path, form)._replace(models=", ".join(models), by_file=by_file)
            if form.get("agreed") != quote.form["agreed"]:
                return quote
        _play(plan, path, purse)
    return path


def _play(plan: RunPlan, path: Path, purse: Purse) -> None:
    with conduct.seated_players(plan, use_cache=False) as policies:
        try:
            conduct.play_run(lambda: conduct.start(plan, path), plan, policies)
        finally:
            purse.pay(policies)


# -- what a form says ------------------------------------------------------------------------------


def _changes(form: Mapping[str, str], seat: int, told: str) -> Changes:
    """Read a form's changes of a seat, which was `told` a text that the form has unless changed."""
    names = {name: name.removeprefix(SETTING) for name in form if name.startswith(SETTING)}
    if odd := sorted({*form} - {*FIELDS, *names}):
        taken = f"{', '.join(FIELDS)} and {SETTING}NAME"
        raise BadParameter(f"a branch takes {taken}, got {', '.join(odd)[:80]}")
    settings = {own: _value(form[name]) for name, own in names.items() if form[name].strip()}
    if places := sorted(settings.keys() & {*PLACES}):
        raise NotFromHere(f"{places[0]} names a place, and is set in a terminal: llm-games branch")
    if unknown := sorted(settings.keys() - PlayerSettings.model_fields.keys()):
        raise BadParameter(f"players have no setting {unknown[0][:80]!r}")
    text, until = form.get("times", "10"), form.get("until", "decision")
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MOST_TIMES):
        raise BadParameter(f"times: an integer from 1 to {MOST_TIMES} is needed, got {text[:20]!r}")
    if until not in ("decision", "end"):
        raise BadParameter(f"until: decision or end is needed, got {until[:20]!r}")
    player, move = form.get("player", "").strip(), form.get("move", "").strip()
    read = form.get("text", "").replace("\r\n", "\n")
    moves: dict[int, Any] = {seat: _value(move)} if move else {}
    return Changes(
        seats={seat: player} if player else {},
        settings={seat: settings} if settings else {},
        moves=moves,
        texts={seat: read} if read.strip() and read.strip() != told.strip() else {},
        asked=seat if until == "decision" and not moves else None,
        times=int(text),
        chance=form.get("chance", "recorded"),
    )


def _value(text: str) -> Any:
    """Read a value as JSON, else as the words that it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()


def _written(value: Any) -> str:
    """Write a value as `_value` reads it; "" for none."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


# -- what it may start, and for how much -----------------------------------------------------------


def _check_harmless(
    player: str, planned_seat: PlannedSeat | None, game: str, way: str, purse: Purse
) -> None:
    """NotFromHere: neither by rule nor a toy nor paid for, or its settings name files or code."""
    if not reading(player):
        return  # there is none of this name, which is said where it is looked up
    settings = planned_seat.settings | planned_seat.client if planned_seat else {}
    kind = player.partition(":")[0]
    if kind in ELSEWHERE:
        raise NotFromHere(
            f"{kind} takes a seat by a link, and nobody joins a branch by one: give players by "
            f"rule, tiny, mock or a model of a provider. {ELSEWHERE[kind]}"
        )
    own = [tool for tool in settings.get("tools", ()) if tool.removesuffix(":always") not in TOOLS]
    places = {name: str(settings[name]) for name in PLACES if settings.get(name)}
    places = {name: text for name, text in places.items() if text != "True"}
    if "base_url" in places and len(places) == 1 and is_loopback(places["base_url"]):
        places = {}  # a server on this machine, which gets no key
    if own or places or not (kind in TOYS or rule_of(kind, game) or on_server(player)):
        what = own[0] if own else next(iter(places.values()), player)
        raise NotFromHere(
            f"{what} may run code of a file, or send keys: a page starts players by rule, tiny, "
            f"mock and models of providers alone. In a terminal: {way} --budget-money X"
        )
    if on_server(player) and purse.left is None:
        raise NotFromHere(
            f"{player} may cost money: the viewer asks such models when it is started with "
            f"llm-games view --budget X. In a terminal: {way} --budget-money X"
        )


def _priced(plan: RunPlan, left: Decimal) -> tuple[RunPlan, bool]:
    """Return the plan with what is left as its budget, and whether it needs its own prices.

    Known prices come first: a stranger's file could say that all is free. ConfigError: none is.
    """
    plan = plan.with_costs(Overrides.of(budget_money=float(left)))
    toys = {name: PriceSettings() for name in (*TOYS, "tiny-constrained")}
    for prices in (toys, plan.prices | toys):
        priced = plan.model_copy(update={"prices": prices})
        try:
            silent = priced.without_keys()
            players(silent, silent.shared(use_cache=False))
        except ConfigError as error:
            why = error
        else:
            return priced, prices is not toys
    raise why


def _quote(plan: RunPlan, path: Path, form: Mapping[str, str]) -> Quote:
    assert plan.budget.money is not None
    [row] = branch_estimates(plan, path)
    asked = {name: value for name, value in form.items() if name != "agreed"}
    about = [path.name, sorted(asked.items()), str(row.high.money), plan.budget.money]
    word = sha256(json.dumps(about).encode()).hexdigest()
    left = Decimal(str(plan.budget.money))
    return Quote("", row, left, False, asked | {"agreed": word})
