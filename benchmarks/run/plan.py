"""What will be played: a configuration with all names resolved, and the players it needs."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from llm_games.baselines.named_tools import SPEAK_AS_ASKED, TOOLS
from llm_games.baselines.players import (
    PATIENT,
    asks_model,
    kind_of,
    make_player,
    on_server,
    reading,
)
from llm_games.baselines.seat_rotation import rotated, uneven
from llm_games.benchmarks.record.checked_table import ConfigError, Settings, checked
from llm_games.benchmarks.record.schema import EpisodeRow
from llm_games.benchmarks.record.worker_files import ENDED
from llm_games.benchmarks.run import config
from llm_games.benchmarks.run.branch_point import BranchPoint
from llm_games.benchmarks.run.config import Config, load, parse
from llm_games.benchmarks.run.python_objects import written
from llm_games.errors import BadParameter, LLMGamesError, unknown
from llm_games.game_rooms import ROOMS
from llm_games.import_names import OWN, is_named
from llm_games.registry import disguised, game_class, rulebook
from llm_games.rulebook import Rulebook, seated
from llm_games.talk import Talk
from llm_games.wrappers.clients import budget as books
from llm_games.wrappers.clients.base import Chat, Client, ClientError, Request, Sampling
from llm_games.wrappers.clients.cache import ReplyCache
from llm_games.wrappers.clients.metered import PLACES
from llm_games.wrappers.clients.recorded import RecordedClient
from llm_games.wrappers.clients.stack import Shared, add_layers, layers
from llm_games.wrappers.clients.waves import waves_of
from llm_games.wrappers.guest_seat import KINDS
from llm_games.wrappers.guests import GuestPolicy
from llm_games.wrappers.human import HumanPolicy
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.together import together
from llm_games.wrappers.user_players import Own, client_of

GUESTS_TAKE = ("prompts", "prompt_folder")  # settings of seats that somebody outside plays
FEWEST_TABLES = 64  # unless it is set how many are played at the same time
DEFAULT = "default"  # in a game's own seats: the run's player at this seat


class PlannedSeat(Settings):
    """One seat: arguments of `make_player`, and how reports call the player."""

    player: str
    name: str
    client: dict[str, Any]
    settings: dict[str, Any]

    @property
    def asks(self) -> bool:
        """It asks a language model: how often at most is then in its settings."""
        return "max_attempts" in self.settings

    @property
    def has_layers(self) -> bool:
        """Whether its client has layers around it: it asks a model, and is no recording."""
        return self.asks and not self.is_guest and not self.player.startswith("recorded:")

    @property
    def is_guest(self) -> bool:
        """Somebody outside plays it by a link, see `Guests`."""
        return self.player in KINDS

    @property
    def is_users_policy(self) -> bool:
        """A user's policy: the record has its moves, and no settings."""
        return not self.asks and reading(self.player) == "own"

    def labels(self) -> list[str]:
        """Labels of the objects that it needs, see `RunPlan.objects`."""
        names = [self.player.removeprefix("client:"), *self.settings.get("tools", ())]
        return [name.removeprefix(OWN) for name in names if name.startswith(OWN)]

    @property
    def key(self) -> str:
        """Equal for seats that share a player."""
        return json.dumps([self.player, self.client, self.settings], sort_keys=True)


class PlannedGame(Settings):
    """One game with a player for each seat and the seeds of its episodes.

    `change` is the entry of ``vary`` that it is played with; its seeds come from the name of its
    `chance` ("" in older records). `prolonged`: its episodes each time that some were added.
    `branch`: where they leave an episode of another run. Of games that were recorded elsewhere
    `given_each` is chance and `sources` the file, by episode.
    """

    label: str
    game: str
    params: dict[str, Any]
    seats: list[PlannedSeat]
    seeds: list[int]
    max_steps: int | None
    change: dict[str, Any] = Field(default_factory=dict)
    order: str = "fixed"
    series: bool = False
    given: dict[str, Any] = Field(default_factory=dict)
    given_each: list[dict[str, Any]] = Field(default_factory=list)
    sources: list[str] = Field(default_factory=list)
    chance: str = ""
    prolonged: list[int] = Field(default_factory=list)
    success: str | None = None
    branch: BranchPoint | None = None
    isomorphs: list[int] = Field(default_factory=list)
    """by episode the seed of the words in which it is read; [] for the plain ones"""
    ignored: str = Field("", exclude=True, repr=False)
    """what seats that stand for the run's players set for models, where these ask none"""

    def rules(self, seating: Sequence[int] | None = None, isomorph: int | None = None) -> Rulebook:
        """With players at their own seats, or where `seating` has them; in plain words, or not."""
        places = range(len(self.seats)) if seating is None else seating
        rules = rulebook(self.game, **seated(game_class(self.game), self.params, places))
        return rules if isomorph is None else disguised(rules, isomorph)

    def disguises(self) -> list[int | None]:
        """By episode the seed of its words, None for the plain ones."""
        return [*self.isomorphs] or [None] * len(self.seeds)

    def seatings(self) -> list[list[int]]:
        """By episode and seat the place in `seats`: ``fixed``, ``rotate`` or ``shuffled``."""
        count = len(self.seats)
        if self.order == "shuffled":
            drawn = (np.random.default_rng([seed, count]) for seed in self.seeds)
            return [rng.permutation(count).tolist() for rng in drawn]
        rows = rotated(self._players) if self.order == "rotate" else [[*range(count)]]
        return [rows[number % len(rows)] for number in range(len(self.seeds))]

    def chances(self) -> list[dict[str, Any] | None]:
        """By episode what is given of its chance, None if nothing."""
        return [given or None for given in self.given_each or [self.given] * len(self.seeds)]

    @property
    def mixed(self) -> bool:
        return len(set(self._players)) > 1

    @property
    def _players(self) -> list[tuple[str, str]]:
        return [(seat.name, seat.key) for seat in self.seats]

    def uneven(self) -> str:
        """Say if seats are worth something, and who has had which is uneven; see `uneven`."""
        return uneven(self.rules(), self._players, self.seatings()) if self.mixed else ""

    def longer(self, run: int, episodes: int) -> PlannedGame:
        """ConfigError: its chance is lost."""
        if episodes <= len(self.seeds):
            return self
        names = (self.chance, self.label, self.game)
        sources = (name for name in names if episode_seed(run, name, 0) == self.seeds[0])
        if (chance := next(sources, None)) is None:
            raise ConfigError(
                f"{self.label} cannot be prolonged: its seeds do not come from the run's seed {run}"
            )
        seeds = [episode_seed(run, chance, i) for i in range(len(self.seeds), episodes)]
        prolonged = [*self.prolonged, len(self.seeds)]
        instances = [*dict.fromkeys(self.isomorphs)]
        added = _in_turn(instances, len(seeds), self.label) if instances else []
        update = {"seeds": self.seeds + seeds, "prolonged": prolonged}
        return self.model_copy(update=update | {"isomorphs": self.isomorphs + added})


class RunPlan(Settings):
    """A run, ready to be played or written down; holds no keys."""

    title: str
    seed: int
    max_tables: int | None
    scoring: str = "corrected"
    cache: str | None = None
    budget: config.BudgetSettings = config.BudgetSettings()
    prices: dict[str, config.PriceSettings] = Field(default_factory=dict)
    games: list[PlannedGame]
    part: str | None = Field(default=None, exclude=True)
    """K/N: this file has the K-th of N parts of the episodes, see `llm-games merge`"""
    objects: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """by label, objects that seats need and that cannot be found by a name; not written down"""
    guests: config.GuestSettings = config.GuestSettings()
    links: Any = Field(default=None, exclude=True, repr=False)
    """the `Guests` who are asked, while a server lets them in; not written down"""

    def isomorphic(self) -> dict[str, tuple[int, int]]:
        """Return the games that are told in several ways: episodes and ways, by label."""
        instances = {game.label: game.isomorphs for game in self.games if game.isomorphs}
        return {label: (len(seeds), len({*seeds})) for label, seeds in instances.items()}

    def guest_seats(self) -> dict[str, list[str]]:
        """Return by label, seat for seat, by which link it is played; "" for no guest's.

        Seats of one name, and the second of them, have the same links in all games.
        """
        names: dict[str, list[str]] = {}
        numbered = [_numbered(game.seats) for game in self.games]
        several = {name for seats in numbered for name, number in seats if number > 1}
        for game, seats in zip(self.games, numbered, strict=True):
            names[game.label] = [
                f"{name} {number}" if name in several else name for name, number in seats
            ]
        return names

    def guest_kinds(self) -> dict[str, str]:
        """Return the kind of each link, in order."""
        names = self.guest_seats()
        return {
            name: seat.player
            for game in self.games
            for name, seat in zip(names[game.label], game.seats, strict=True)
            if name
        }

    @property
    def seats(self) -> list[PlannedSeat]:
        return [seat for game in self.games for seat in game.seats]

    @property
    def batched(self) -> str:
        """The name of a player that is asked in batches, "" if none is."""
        return next((seat.name for seat in self.seats if seat.client.get("batch")), "")

    @property
    def tables(self) -> int:
        """How many are played at the same time; all of them, where their calls go out together.

        Unless it is set, one for each place of the model that has most, since some games ask one
        seat at a time.
        """
        places = [seat.client.get("max_in_flight") or 0 for seat in self.seats]
        tables = self.max_tables or max(FEWEST_TABLES, *places)
        return max(tables, sum(len(g.seeds) for g in self.games) * bool(self.batched))

    def with_objects(self, objects: Mapping[str, Any]) -> RunPlan:
        """ConfigError names the objects that are missing."""
        needed = {label for seat in self.seats for label in seat.labels()}
        if lost := sorted(needed - set(objects)):
            missing = ", ".join(f"{label!r}: ..." for label in lost)
            raise ConfigError(
                f"this run was handed objects that are not written down: {', '.join(lost)}. Hand "
                f"them over again, from Python: llm_games.resume(FILE, own={{{missing}}})"
            )
        return self.model_copy(update={"objects": dict(objects)})

    def settings_of(self, seat: PlannedSeat) -> dict[str, Any]:
        tools = [_meant(tool, self.objects) for tool in seat.settings.get("tools", ())]
        return seat.settings | ({"tools": tools} if tools else {})

    def with_costs(self, overrides: Overrides) -> RunPlan:
        limits = self.budget.model_dump() | dict(overrides.budget)
        budget = checked(config.BudgetSettings, limits, "budget")
        cache = str(overrides.cache) if overrides.cache else self.cache
        return self.model_copy(update={"budget": budget, "cache": cache})

    def longer(self, episodes: int) -> RunPlan:
        """ConfigError: all games have as many episodes."""
        checked(config.GameSettings, {"game": "any", "episodes": episodes}, "resume")
        games = [game.longer(self.seed, episodes) for game in self.games]
        if games == self.games:
            fewest = min(len(game.seeds) for game in games)
            raise ConfigError(f"the run has {fewest} episodes of each game already, not {episodes}")
        return self.model_copy(update={"games": games})

    def owed(self, rows: Iterable[EpisodeRow]) -> list[EpisodeRow]:
        """The unfinished episodes of this part of the run; a series is in one part."""
        unfinished = [row for row in rows if row.status not in ENDED]
        if self.part is None:
            return unfinished
        series = {game.label for game in self.games if game.series}
        number, count = map(int, self.part.split("/"))

        def turn(row: EpisodeRow) -> int:
            return row.game.id + (0 if row.game.label in series else row.number)

        return [row for row in unfinished if turn(row) % count == number - 1]

    def with_patience(self, max_wait: float | None) -> RunPlan:
        """`max_wait`: seconds that a call waits for a server; None: as planned."""
        plan = self._copy()
        for seat in plan.seats:
            if max_wait is not None and seat.has_layers:
                seat.client["max_wait"] = max_wait
        return plan

    def divided(self, workers: int) -> RunPlan:
        """For one of several workers: its part of what servers allow; ConfigError: too little."""
        plan = self._copy()
        for seat in plan.seats:
            rates = "requests_per_minute", "tokens_per_minute"
            allowed = {k: v for k, v in seat.client.items() if k in (*rates, "max_in_flight") and v}
            if allowed:
                allowed.setdefault("max_in_flight", PLACES)
            for name, bound in allowed.items():
                if bound < workers:
                    raise ConfigError(
                        f"{name} = {bound} of {seat.name} cannot be divided by {workers} workers"
                    )
                seat.client[name] = bound // workers
        return plan

    def _copy(self) -> RunPlan:
        return self.model_copy(update={"games": [g.model_copy(deep=True) for g in self.games]})

    def without_keys(self) -> RunPlan:
        """For players that shall ask nobody: servers get no key."""
        plan = self._copy()
        for seat in plan.seats:
            if on_server(seat.player):
                for key in ("api_key_env", "api_key_file", "headers"):
                    seat.client.pop(key, None)
                seat.client["api_key"] = "none"
        return plan

    def shared(self, use_cache: bool = True) -> Shared:
        """Ledger, gates and cache of all players; a `CacheError` if that cannot be used."""
        prices = {model: price.price() for model, price in self.prices.items()}
        limits: dict[str, Any] = {
            name: Decimal(str(value)) if isinstance(value, float) else value
            for name, value in self.budget
        }
        replies = ReplyCache(self.cache) if self.cache and use_cache else None
        return Shared(books.Ledger(books.Budget(**limits), prices), replies, use_cache)


def _numbered(seats: Sequence[PlannedSeat]) -> list[tuple[str, int]]:
    """Return the names of guests, each with its number among those of that name; "" for others."""
    names = [seat.name if seat.is_guest else "" for seat in seats]
    return [(name, names[: i + 1].count(name) if name else 0) for i, name in enumerate(names)]


@dataclass(frozen=True)
class Overrides:
    """What is given beside a file and wins over it. Empty or None: nothing.

    `seats` are player specs, one for all seats or one for each; they replace a game's own seats, or
    their ``default`` alone. `games` are names or labels. `params` and `talk` are of all games,
    `settings` of all players that ask a language model; ``base_url`` of those at a server. `budget`
    has limits; `own` has objects by label, see `RunPlan.objects`; `part` is K/N.
    """

    seats: Sequence[str] = ()
    games: Sequence[str] = ()
    episodes: int | None = None
    seed: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    talk: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    scoring: str | None = None
    cache: str | None = None
    budget: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)
    part: str | None = None
    isomorphs: int | None = None

    @classmethod
    def of(cls, **arguments: Any) -> Overrides:
        """Sort values by their names: ``budget_calls``, a field of ours, or else a setting."""
        arguments = {name: value for name, value in arguments.items() if value is not None}
        if not isinstance(arguments.get("seats", ()), list | tuple):
            arguments["seats"] = [arguments["seats"]]
        fields = {field.name for field in dataclasses.fields(cls)} - {"settings", "budget"}
        limits = [name for name in arguments if name.startswith("budget_")]
        budget = {name.removeprefix("budget_"): arguments.pop(name) for name in limits}
        mine = {name: arguments.pop(name) for name in fields & arguments.keys()}
        return cls(**mine, settings=arguments, budget=budget)

    def apply(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        by_game: dict[str, Any] = {"seats": list(self.seats) or None, "episodes": self.episodes}
        by_game["isomorphs"] = self.isomorphs
        overrides = by_game | {"seed": self.seed, "scoring": self.scoring}
        changed = dict(raw) | {key: value for key, value in overrides.items() if value is not None}
        extra = {"params": self.params, "talk": self.talk}
        if "players" in raw:
            return _topped(changed, extra)
        if isinstance(games := raw.get("games"), list):
            replaced = [key for key, value in by_game.items() if value is not None]
            changed["games"] = [_topped(_without(game, replaced), extra) for game in games]
        return changed


def _without(game: Any, keys: Iterable[str]) -> Any:
    """Raw game without some keys; seats that name the run's player stay."""
    if not isinstance(game, dict):
        return game
    seats = game["seats"] if isinstance(game.get("seats"), list) else [game.get("seats")]
    names = [seat.get("player") if isinstance(seat, dict) else seat for seat in seats]
    gone = set(keys) - ({"seats"} if DEFAULT in names else set())
    return {key: value for key, value in game.items() if key not in gone}


def _topped(game: Any, extra: Mapping[str, Mapping[str, Any]]) -> Any:
    if not isinstance(game, dict):
        return game
    old_tables = {key: game.get(key, {}) for key, table in extra.items() if table}
    tables = {key: table for key, table in old_tables.items() if isinstance(table, Mapping)}
    return game | {key: {**table, **extra[key]} for key, table in tables.items()}


def plan_of(source: str | Path | Mapping[str, Any], overrides: Overrides | None = None) -> RunPlan:
    """Resolve a file, an experiment's name, TOML, or its content; with `players`, a cross-play."""
    overrides, name = overrides or Overrides(), str(source)
    raw = source if isinstance(source, Mapping) else load(name)
    name = "configuration" if raw is source or "\n" in name else name
    raw, objects = written(overrides.apply(raw))
    if "players" in raw:
        from llm_games.benchmarks.run.lineups import lineup_run

        raw = lineup_run(raw, name)
    settings, more_objects = written(overrides.settings)
    objects = {**overrides.own, **objects, **more_objects}
    overrides = dataclasses.replace(overrides, settings=settings, own=objects)
    return resolve(parse(raw, name), name, overrides)


def _part(text: str | None) -> str | None:
    number, _, count = ("1/1" if text is None else text).partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ConfigError(f"a part of a run is K/N, such as 1/2 and 2/2: got {text!r}")
    return text


def resolve(file: Config, source: str, overrides: Overrides | None = None) -> RunPlan:
    """Build every game and look up every player's settings; `ConfigError` says what cannot be."""
    overrides = overrides or Overrides()
    checked(config.ModelSettings, overrides.settings, "command line")
    called = [{game.label or game.game, game.game} for game in file.games]
    only = [overrides.games] if isinstance(overrides.games, str) else overrides.games
    wanted, names = set(only), set().union(*called)
    for name in only:
        if name not in names:
            raise unknown("game in this run called", name, names)
    games = [
        _game(file, f"{source}: games[{i}] ({game.game})", game, change, overrides)
        for i, game in enumerate(file.games)
        if not wanted or called[i] & wanted
        for change in file.vary or [config.PlayerSettings()]
    ]
    _check_heard(games, overrides.settings, source)
    labels = [game.label for game in games]
    double = next((label for label in labels if labels.count(label) > 1), None)
    if double is not None:
        raise ConfigError(f"{source}: two games are called {double!r}; give one another label")
    same = {name: getattr(file, name) for name in RunPlan.model_fields.keys() & vars(file).keys()}
    about = {"games": games, "part": _part(overrides.part)}
    plan = RunPlan(**same | about).with_costs(overrides)
    if guests := plan.guest_kinds():
        _check_links(plan, source)
        if file.vary:
            guest = next(iter(guests))
            raise ConfigError(f"{source}: [[vary]] varies models, and {guest!r} is none")
        if plan.batched:
            guest = next(iter(guests))
            fault = (
                f"{guest!r} would wait for a day before each move, since {plan.batched} is asked"
            )
            raise ConfigError(f"{source}: {fault} in batches: leave out batch, or the guest")
        plan = plan.model_copy(update={"max_tables": 1})  # nobody plays two games at a time
    return plan.with_objects(overrides.own)


def _check_heard(games: Sequence[PlannedGame], settings: Iterable[str], source: str) -> None:
    seats = [seat for game in games for seat in game.seats]
    asked = {seat.player for seat in seats if seat.asks and not seat.is_guest}
    for key in settings:
        if key in GUESTS_TAKE and any(seat.is_guest for seat in seats):
            continue
        if key == "base_url" and not any(map(on_server, asked)):
            raise ConfigError(
                f"{source}: --base-url is for players behind a server, and there is none; give "
                "one: --seat openai:MODEL"
            )
        if not asked:
            raise ConfigError(
                f"{source}: {key} is for players that ask a language model, and there is none; "
                "give one: --seat tiny, or --seat openai:MODEL"
            )


def _check_links(plan: RunPlan, source: str) -> None:
    """A link is one seat of a game, and a person's or a program's in all of them."""
    kinds, names = plan.guest_kinds(), plan.guest_seats()
    for game in plan.games:
        links = names[game.label]
        for link, seat in zip(links, game.seats, strict=True):
            if link and (links.count(link) > 1 or seat.player != kinds[link]):
                fault = f"{game.label}: two links are called {link!r}"
                raise ConfigError(f"{source}: {fault}; give one of these seats another name")


def episode_seed(run: int, chance: str, number: int) -> int:
    """Return the seed of an episode: the same for all players, another for each name of chance.

    That is a game's label, by default: who is compared under one label meets the same chance
    (common random numbers), and labels are independent.
    """
    sequence = np.random.SeedSequence([run, number, *chance.encode()])
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)


def _in_turn(instances: list[int], episodes: int, location: str) -> list[int]:
    """Give each instance as many episodes in a row, so that players rotate within each."""
    count = len(instances)
    if episodes % count:
        more = episodes + count - episodes % count
        raise ConfigError(
            f"{location}: {episodes} episodes cannot be divided evenly among {count} isomorphs; "
            f"play a multiple of {count}, such as {more}"
        )
    return [seed for seed in instances for _ in range(episodes // count)]


def is_model(player: str, objects: Mapping[str, Any]) -> bool:
    """It asks a language model, and so takes settings."""
    with suppress(LLMGamesError):  # said when it is made
        return asks_model(_meant(player, objects))
    return False


def players(plan: RunPlan, shared: Shared | None = None) -> dict[str, Policy]:
    """Build each different player of a plan once, by `PlannedSeat.key`, and seat it for a trial.

    `shared` is by default the plan's. ConfigError says which cannot be built, or play its game.
    """
    policies: dict[str, Policy] = {}
    shared = shared or plan.shared()
    for game in plan.games:
        rules = game.rules(isomorph=game.disguises()[0] if game.seeds else None)
        for number, seat in enumerate(game.seats):
            try:
                if seat.key not in policies or not seat.asks:
                    policies[seat.key] = _player(plan, seat, rules, shared)
                policy = policies[seat.key]
                policy.start(rules if policy.speaks else rules.core, number, 0)
                if rules.disguise:
                    _check_units(policies[seat.key])
            except LLMGamesError as error:
                raise ConfigError(f"{game.label}, seat {number} ({seat.name}): {error}") from error
    return policies


def _check_units(policy: Policy) -> None:
    """BadParameter: something would speak in plain units to somebody who is told others."""
    tools = policy.tools if isinstance(policy, LLMPolicy) else ()
    foreign = [f"the tool {tool.name}" for tool in tools if tool.run not in SPEAK_AS_ASKED]
    foreign += ["what ask brings"] * bool(getattr(policy, "graders", ()))
    if foreign:
        ours = ", ".join(tool.name for tool in TOOLS.values() if tool.run in SPEAK_AS_ASKED)
        raise BadParameter(
            f"{' and '.join(foreign)} would speak in plain units: leave isomorphs out, or that "
            f"(of tools, {ours} speak as a seat is asked)"
        )


def _player(plan: RunPlan, seat: PlannedSeat, rules: Rulebook, shared: Shared) -> Policy:
    """Objects come in place of their labels."""
    if seat.is_guest:
        if plan.links is None:
            way = "llm-games run FILE --browser (so do resume and play), or serve GAME"
            raise ConfigError(f"{seat.player} is {KINDS[seat.player]}, let in by: {way}")
        return GuestPolicy(Own(plan.links), plan.links, **seat.settings)
    client = seat.client | ({"shared": shared} if seat.has_layers else {})
    client = {"max_wait": PATIENT} | client if on_server(seat.player) else client
    player = _meant(seat.player, plan.objects)
    if seat.player.startswith(f"client:{OWN}"):
        player = client_of(_meant(seat.player.removeprefix("client:"), plan.objects))
    policy = make_player(player, rules, client, **plan.settings_of(seat))
    if isinstance(policy, LLMPolicy) and not seat.asks:  # an object, of which books are kept too
        policy, inside = copy.copy(policy), Own(policy.client)
        # A person is paid nothing, and not waited for at an end.
        is_person = isinstance(policy, HumanPolicy)
        policy.client = inside if is_person else add_layers(inside, shared=shared)
    return policy


def short(player: str) -> str:
    """Name of a player in reports; of an object, its name alone."""
    for prefix in ("client:", OWN, "__main__:"):
        player = player.removeprefix(prefix)
    return player


def _meant(name: str, objects: Mapping[str, Any]) -> Any:
    """The object of a label; any other name as it is."""
    return objects.get(name.removeprefix(OWN), name) if name.startswith(OWN) else name


async def check(policies: Mapping[str, Policy]) -> None:
    """Ask each model one short question before a run; a `ConfigError` names one that is silent."""
    asking = (p.client for p in policies.values() if isinstance(p, LLMPolicy))
    foreign = (c for c in asking if not any(isinstance(layer, Own) for layer in layers(c)))
    clients = {id(c): c for c in foreign if not isinstance(c, RecordedClient)}
    greeting = Chat.of([{"role": "user", "content": "Say hello."}])
    hello = Request(greeting, sampling=Sampling(max_tokens=16), kind="greeting")

    async def ask(client: Client) -> None:
        try:
            if (waves := waves_of(client)) is not None:  # else it would be a batch
                await waves.greet()
            else:
                await client.complete(hello)
        except ClientError as error:
            raise ConfigError(f"{client.name} does not answer, nothing was run: {error}") from error

    await together(map(ask, clients.values()))


def _game(
    file: Config,
    location: str,
    game: config.GameSettings,
    change: config.PlayerSettings,
    overrides: Overrides,
) -> PlannedGame:
    params, varied = params_of(game), change.given()
    if file.failed_reply != "fallback":
        params.setdefault("failed_reply", file.failed_reply)
    try:
        rules = rulebook(game.game, **params)
        rules.reset(given=game.given)
    except LLMGamesError as error:
        raise ConfigError(f"{location}: {error}") from None
    if rules.length() is None and game.max_steps is None:
        raise ConfigError(
            f"{location} may never end with these parameters; set max_steps, such as 1000 "
            "(an episode that reaches it is void)"
        )
    seats, ignored = _seats(file, game, rules.players, location, overrides.own)
    is_users_game, called = is_named(game.game), game.label or game.game
    called = rules.name if is_users_game and game.label is None else called
    label = ", ".join([called, *(f"{k} {v}" for k, v in varied.items())])
    chance = game.chance or (rules.name if file.common_chance else label)
    episodes = file.episodes if game.episodes is None else game.episodes
    planned = PlannedGame(
        label=label,
        game=game.game if is_users_game else rules.name,
        params=params,
        seats=[
            planned_seat(file, seat, {**overrides.settings, **varied}, overrides.own)
            for seat in seats
        ],
        seeds=[episode_seed(file.seed, chance, number) for number in range(episodes)],
        change=varied,
        chance=chance,
        success=game.success or file.success,
        ignored=ignored,
        **game.model_dump(include={"max_steps", "series", "given"}),
    )
    count = game.isomorphs or file.isomorphs
    instances = _isomorphs(planned, rules, count, file.seed, location) if count else []
    order = game.order or file.order or ("rotate" if planned.mixed else "fixed")
    return _movable(planned.model_copy(update={"order": order, "isomorphs": instances}), location)


def _isomorphs(
    game: PlannedGame, rules: Rulebook, count: int, run: int, location: str
) -> list[int]:
    """By episode the seed of its words; ConfigError: the game cannot be played in others."""
    try:
        disguised(rules, 0)
    except LLMGamesError as error:
        raise ConfigError(f"{location}: isomorphs: {error}") from None
    if game.series:
        raise ConfigError(f"{location}: a series is recalled in one wording: leave isomorphs out")
    for seat in filter(lambda seat: seat.is_guest, game.seats):
        raise ConfigError(f"{location}: {seat.player} sees the plain table: leave isomorphs out")
    instances = [episode_seed(run, "isomorph", number) for number in range(count)]
    return _in_turn(instances, len(game.seeds), location)


def _movable(game: PlannedGame, location: str) -> PlannedGame:
    """ConfigError: players cannot take what is theirs to all seats."""
    names = game_class(game.game).personal
    if game.order == "rotate" and any(isinstance(game.params.get(n), list | tuple) for n in names):
        for number, seating in enumerate(game.seatings()[: 2 * len(game.seats)]):
            try:
                game.rules(seating).reset(given=game.given)
            except LLMGamesError as error:
                raise ConfigError(
                    f"{location} cannot be played in episode {number}, where players have moved on "
                    f'(order = "rotate") with what is theirs ({", ".join(names)}): {error}; '
                    'order = "fixed" keeps them at their seats'
                ) from None
    return game


def _seats(
    file: Config, game: config.GameSettings, players: int, location: str, objects: Mapping[str, Any]
) -> tuple[list[config.SeatSettings], str]:
    """One seat for each player, the run's for ``default``, and what of it sets nothing."""

    def for_each(seats: list[config.SeatSettings]) -> list[config.SeatSettings]:
        if len(seats) not in (1, players):
            raise ConfigError(
                f"{location} has {players} seats, but seats lists {len(seats)} players; "
                f"give one for all seats, or {players}"
            )
        return seats * (players // len(seats))

    seats = for_each(game.seats or file.seats)
    ignored: dict[str, str] = {}
    if all(seat.player != DEFAULT for seat in seats):
        return seats, ""
    for index, run in enumerate(for_each(file.seats)):
        if seats[index].player == DEFAULT:
            changes = {k: v for k, v in seats[index].given().items() if k != "player"}
            if not is_model(run.player, objects):
                ignored |= dict.fromkeys(changes, run.player)
                changes = {}
            seats[index] = run.model_copy(update=changes)
    if not ignored:
        return seats, ""
    players_ignoring = ", ".join(sorted({*ignored.values()}))
    return seats, f"not used by {players_ignoring}, which asks no model: {', '.join(ignored)}"


def params_of(game: config.GameSettings) -> dict[str, Any]:
    """Return the parameters, with those of talk; "none" is None, which TOML cannot say."""
    talk = game.params.get("talk", {})
    if isinstance(talk, Mapping):  # else the game says what it must be
        talk = {**talk, **_said_none(Talk, game.talk)}
    params = game.params | ({"talk": talk} if talk else {})
    has_class = game.game in ROOMS or is_named(game.game)
    return _said_none(game_class(game.game), params) if has_class else params


def _said_none(declared: type[Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The text "none" is None where a parameter may be None."""
    may = {f.name for f in dataclasses.fields(declared) if "None" in str(f.type)}
    return {k: None if v == "none" and k in may else v for k, v in parameters.items()}


def planned_seat(
    file: Config, seat: config.SeatSettings, last: dict[str, Any], objects: Mapping[str, Any]
) -> PlannedSeat:
    """Merge settings: of all players, of the model, of the seat, and those that come last."""
    kind, _, model = seat.player.partition(":")
    player, merged = seat.player, seat.given()
    if player in KINDS:
        if odd := [key for key in merged if key not in (*GUESTS_TAKE, "player", "name")]:
            taken = ", ".join(GUESTS_TAKE)
            raise ConfigError(f"player {player!r} takes {taken} and name, got {', '.join(odd)}")
        merged = {"max_attempts": 1} | {
            key: value
            for key, value in (file.player.given() | merged | last).items()
            if key in GUESTS_TAKE
        }
    elif is_model(player, objects):
        prefix, model = (f"{kind}:", model) if kind_of(kind) else ("", player)
        described = file.models[model].given() if model in file.models else {}
        player = prefix + described.pop("model", model) if described else player
        common = {"max_attempts": file.max_attempts} | file.player.given()
        merged = common | described | merged | last
        if not on_server(player) and "base_url" in last:
            merged.pop("base_url")
        if "max_wait" in last and player.startswith("recorded:"):
            merged.pop("max_wait")
    return PlannedSeat(
        player=player,
        name=seat.name or short(seat.player),
        client={k: v for k, v in merged.items() if k in config.ServerSettings.model_fields},
        settings={k: v for k, v in merged.items() if k in config.PlayerSettings.model_fields},
    )
