"""Base of the training scripts: options, a table, measures, a log, and files written whole.

A script is a dataclass of `Options` and a function of them; `command` makes a command of both. In
``with Training(...)`` it has a progress bar and a log, stops at Ctrl-C, and can be resumed.
"""

from __future__ import annotations

import csv
import inspect
import json
import pickle
import shlex
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from functools import cached_property
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NoReturn,
    TypeVar,
    get_type_hints,
)

import numpy as np
from typer import Argument, Option, Typer

from llm_games.arrays import Array
from llm_games.baselines import regret as theories
from llm_games.baselines.batch_play import play_batch
from llm_games.baselines.players import asks_model, make_player
from llm_games.errors import BadParameter, LLMGamesError, TrainingBroke, install
from llm_games.files import full, write_whole
from llm_games.key_values import assigned
from llm_games.registry import rulebook
from llm_games.rulebook import PerPlayer, Rulebook
from llm_games.wrappers.clients.stack import tally
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.single_agent import MOVING, Seating, seating

if TYPE_CHECKING:
    from llm_games.baselines.best_response import BestResponse

POINTS = 20  # how often a training is judged
FRESH, LAST = 2 * 10**9, 3 * 10**9  # first seeds of games that judge as it goes on, and at its end
LONGEST = 100  # rounds that are judged of games that go on for longer


Codec = Literal["index", "least", "unit"]
CODECS = "index; least: decline or the smallest amount; unit: shares of what is legal"


def option(usual: Any, metavar: str, meaning: str, **limits: Any) -> Any:
    """Return a field of `Options`: its usual value, and how the command line shows it."""
    about = {"metavar": metavar, "help": meaning, **limits}
    if isinstance(usual, list):
        return field(default_factory=usual.copy, metadata=about)
    return field(default=usual, metadata=about)


def flag(meaning: str) -> Any:
    """Return a field of `Options` that is true if its name is given."""
    return field(default=False, metadata={"help": meaning})


# -- options and the table -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every training. A script adds fields of its own, each with a default."""

    game: str = field(metadata={"metavar": "GAME", "help": "the game, see llm-games list"})
    opponents: list[str] = option(
        ["rational"],
        "PLAYER",
        "one player for all other seats, or one for each of them in seat order",
    )
    param: list[str] = option([], "NAME=VALUE", "a parameter of the game")
    client: list[str] = option(
        [], "NAME=VALUE", "of opponents that ask a model: budget={calls=2000}"
    )
    set: list[str] = option([], "NAME=VALUE", "another setting of theirs: memory=none")
    seat: str = option("rotate", "SEAT", "the learner's: a number, rotate or random")
    copies: int = option(64, "N", "tables that are played together", min=1)
    steps: int = option(100_000, "N", "decisions of the learner", min=1)
    seed: int = option(1, "N", "of all chance", min=0)
    episodes: int = option(
        200, "N", "games that judge it each time; 5 times as many at the end", min=1
    )
    best: bool = flag("find the best response, and say what share of it this is")
    folder: Path | None = option(None, "DIR", "for its files")
    resume: bool = flag("go on with the training in the folder")

    def table(self) -> TrainingTable:
        """Return the checked table; raises as `rulebook` and `make_player`."""
        rules = rulebook(self.game, **assigned("--param", self.param, "rounds=5"))
        if rules.players < 2:
            raise BadParameter(f"{self.game} has one seat: a learner needs others, players >= 2")
        seat: Any = self.seat if self.seat in MOVING or not self.seat.isdigit() else int(self.seat)
        client = assigned("--client", self.client, "samples=4")
        settings = assigned("--set", self.set, "memory=none")
        policies = {name: _opponent(name, rules, client, settings) for name in self.opponents}
        if (client or settings) and not any(policy.waits for policy in policies.values()):
            raise BadParameter("--client and --set are for opponents that ask a model: none does")
        opponents = [policies[name] for name in self.opponents]
        others = opponents[0] if len(opponents) == 1 else opponents
        return TrainingTable(rules, seating(rules, seat, others))

    def plain(self) -> dict[str, Any]:
        """Return the options that a resumed training must share with the one before."""
        changeable = {"folder", "resume", "steps", "client", "best", "rate"}
        return {name: value for name, value in asdict(self).items() if name not in changeable}


def _opponent(name: str, rules: Rulebook, client: Any, settings: Any) -> Policy:
    """Return a player; settings go to those that ask a model."""
    has_settings = bool(client or settings)
    if not (has_settings and asks_model(name)):  # else it may have no key without them
        policy = make_player(name, rules)
        has_settings = has_settings and policy.waits
    if has_settings:
        return make_player(name, rules, client=client, **settings)
    return policy


class TrainingTable(NamedTuple):
    """A game, and the players around the learner."""

    rules: Rulebook
    seating: Seating

    @property
    def opponents(self) -> Any:
        """Return the other players as `GameVectorEnv` takes them, in the order of their seats."""
        return [self.seating.policies[index] for index in self.seating.others]

    @property
    def seat(self) -> int | str:
        return self.seating.seat

    def seats(self, episodes: int) -> Array:
        """Return the learner's seat in each evaluation game: all in turn if it moves."""
        moves = isinstance(self.seat, str)
        return np.arange(episodes) % self.rules.players if moves else np.full(episodes, self.seat)

    def best(self) -> list[BestResponse]:
        """Return the best response to the others, in each of the learner's seats that differ."""
        from llm_games.baselines.best_response import best_response

        moves = isinstance(self.seat, str)
        seats = range(self.rules.players if self.rules.seats_differ else 1)
        each: Any = seats if moves else [self.seat]
        return [best_response(self.rules, seat, self.opponents) for seat in each]

    def sits(self, seats: Array) -> PerPlayer:
        """Return each seat's index in ``[*policies, learner]``, ``(players, episodes)``."""
        sits = self.seating.sits(seats)
        return np.where(sits < 0, len(self.seating.policies), sits)


# -- measures --------------------------------------------------------------------------------------


def evaluate(rules: Rulebook, players: Sequence[str | Policy], seeds: Sequence[int]) -> PerPlayer:
    """Return payoffs by seat, ``(players, seeds)``; games of equal seeds have equal chance."""
    distinct = list(dict.fromkeys(players))
    sits = np.tile([[distinct.index(player)] for player in players], len(seeds))
    return sum(o.rewards for _, o in _played(rules, distinct, sits, seeds))


def _played(rules: Rulebook, players: Sequence[Any], sits: Array, seeds: Sequence[int]) -> Any:
    steps = None if rules.turns else LONGEST
    return play_batch(rules, players, sits, seeds, max_steps=steps, models=True)


class Evaluation(NamedTuple):
    """Evaluation of a learner in games that it was not trained on.

    `payoffs` are its own, ``(episodes,)``. `regret` is its mean gain a step by other moves in
    hindsight, `nash_conv` that of all seats, `exploitability` a best reply's gain a step on copies
    of its play; NaN where the game's theory does not define them.
    """

    payoffs: Array
    regret: float
    nash_conv: float
    exploitability: float

    @property
    def payoff(self) -> float:
        return float(self.payoffs.mean())

    def values(self) -> dict[str, float]:
        """Return the defined measures by the name under which they are logged."""
        measures = {"payoff": self.payoff, **self._asdict()}
        del measures["payoffs"]
        return {name: value for name, value in measures.items() if not np.isnan(value)}


def judge(
    table: TrainingTable, learner: Policy, episodes: int, first: int = FRESH, theory: bool = True
) -> Evaluation:
    """Evaluate a learner in games of the seeds from `first` on; payoffs alone without `theory`."""
    rules, seats, episode = table.rules, table.seats(episodes), np.arange(episodes)
    players, sits = [*table.seating.policies, learner], table.sits(seats)
    payoffs, lost, conv = np.zeros(episodes), [], []
    has_theory = theory and theories.has(rules.name, "deviation") and rules.core is rules
    records: list[Mapping[str, Any]] = []
    for over, outcome in _played(rules, players, sits, list(range(first, first + episodes))):
        payoffs += outcome.rewards[seats, episode]
        if has_theory:
            records.append(outcome.record)
            regret = theories.regret(rules, outcome.record)
            lost.append(regret[seats, episode][~over])
            conv.append(regret.sum(axis=0)[~over])
    mean, every = (float(np.concatenate(p).mean()) if p else np.nan for p in (lost, conv))
    return Evaluation(payoffs, mean, every, _exploited(rules, records, seats))


def _exploited(rules: Rulebook, records: Sequence[Mapping[str, Any]], seats: Array) -> float:
    """Return the exploitability of the learner's play, in games in which it had its first seat."""
    if not records or not theories.has(rules.name, "exploitability"):
        return float("nan")
    same_seat = seats == seats[0]
    steps = {
        name: value[:, same_seat] if value.ndim == 3 and value.shape[1] == len(same_seat) else value
        for name, value in theories.stacked(records).items()
    }
    return float(theories.exploitability(rules, steps)[seats[0]])


# -- a training ------------------------------------------------------------------------------------


OptionsOf = TypeVar("OptionsOf", bound=Options)


class Training(Generic[OptionsOf]):
    """A running training, as ``with Training("ppo", options) as run:``.

    `table` is the game with the players around the learner; `folder` (by default
    ``trainings/METHOD-GAME-SEED``) has ``options.json``, ``curve.csv``, TensorBoard's files and
    ``state``; `state` is that of a resumed training, else None; `step` counts decisions. `saving`
    returns the state as bytes: a script sets it, `keep` calls it, also where a training is broken
    off. `stopping`: Ctrl-C was pressed, stop at the next whole state.

    Raises:
        BadParameter: the folder has a training already and is not to be resumed, or has none and
            is, or one of other options.
    """

    def __init__(self, method: str, options: OptionsOf) -> None:
        self.method, self.options = method, options
        if find_spec("tensorboard") is None:
            raise BadParameter(f"training needs packages: {install('training')}")
        self.table = options.table()
        usual = Path("trainings", f"{method}-{options.game}-{options.seed}")
        self.folder = Path(options.folder or usual)
        self.step, self.stopping, self.sound = 0, False, -1
        self._mark, self._judged = -1, -1  # the last at which it was judged, and its step
        self.saving: Callable[[], bytes] | None = None
        self.state = self._state()
        self.began = time.process_time()

    @property
    def file(self) -> Path:
        return self.folder / "state"

    @property
    def clients(self) -> list[Any]:
        return [p.client for p in self.table.seating.policies if hasattr(p, "client")]

    @property
    def way_on(self) -> str:
        module, options = f"llm_games.baselines.training.{self.method}", self.options
        words = ["python", "-m", module, options.game]
        for entry in fields(options):
            value = getattr(options, entry.name)
            if entry.name not in ("game", "folder", "resume") and value != _default(entry):
                flag = f"--{entry.name.replace('_', '-')}"
                for item in value if isinstance(value, list) else [value]:
                    words += [flag] if item is True else [flag, str(item)]
        return shlex.join([*words, "--folder", str(self.folder), "--resume"])

    def _state(self) -> bytes | None:
        """Return the saved state if it is one of these options, else raise BadParameter."""
        about = self.folder / "options.json"
        if not self.options.resume:
            if self.file.exists():
                way = "go on with it by --resume, or name another --folder"
                raise BadParameter(f"{self.folder} has a training already: {way}")
            return None
        if not self.file.exists():
            raise BadParameter(f"{self.folder} has no training to go on with: leave out --resume")
        try:
            old, ours = json.loads(about.read_text("utf-8")), self._about()
            other = [name for name in ours if old.get(name) != ours[name]]
        except (OSError, ValueError, AttributeError) as error:
            raise BadParameter(
                f"{about} cannot be read: {error}: train in another --folder"
            ) from error
        if other:
            name = other[0]
            raise BadParameter(
                f"{self.folder} has a training with {name} {old.get(name)!r}, not {ours[name]!r}: "
                "give it the same options, or name another --folder"
            )
        return self.file.read_bytes()

    def read(self) -> Any:
        """Return the unpickled state, or raise BadParameter."""
        try:
            return StateReader(BytesIO(self.state or b"")).load()
        except Exception as error:  # whatever a damaged pickle, or one of another version, comes to
            fault = f"{self.file} cannot be read: {error}: train in another --folder"
            raise BadParameter(fault) from error

    def _about(self) -> dict[str, Any]:
        edition = self.table.rules.edition
        plain = {"method": self.method, "edition": edition, **self.options.plain()}
        return json.loads(json.dumps(plain, default=str))

    # -- the block ---------------------------------------------------------------------------------

    def __enter__(self) -> Training[OptionsOf]:
        try:
            write_whole(self.folder / "options.json", json.dumps(self._about(), indent=1).encode())
            self._mend()
        except OSError as error:
            if isinstance(error, LLMGamesError):
                raise
            fault = f"cannot be written to ({error.strerror}): name another --folder"
            raise BadParameter(f"{self.folder} {fault}") from error
        self._previous_handler = signal.getsignal(signal.SIGINT)
        try:
            signal.signal(signal.SIGINT, self._interrupted)
        except ValueError:  # not in the main thread: whoever started it stops it
            self._previous_handler = None
        self.bar.start()
        return self

    def _mend(self) -> None:
        """Remove an incomplete last row from the curve, and all rows of another training."""
        log = self.folder / "curve.csv"
        if log.exists():
            old = log.read_bytes() if self.options.resume else b""
            if not old.endswith(b"\n"):
                write_whole(log, old[: old.rfind(b"\n") + 1])

    def _interrupted(self, *_: Any) -> None:
        if self.stopping:
            raise KeyboardInterrupt
        self.stopping = True
        self.say("stopping where the state is whole; Ctrl-C again stops at once")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Save the state of a training that was broken off; the error says how to resume."""
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
        self.bar.stop()
        raised = error
        try:
            if error is not None and (waited := tally(self.clients)["waited"]):
                self.log(**{"opponents/waited": waited})
            if self.__dict__.get("_writer") is not None:
                self._writer.close()
            if isinstance(error, LLMGamesError) and not isinstance(error, (TrainingBroke, OSError)):
                self.keep()  # such as a budget that has ended: what came before is sound
        except OSError as fault:
            raised = raised or fault
        if isinstance(raised, OSError):
            raised = full(raised, self.folder)
        if raised is not None and self.sound >= 0:
            raised.add_note(f"(saved at step {self.sound}; go on: {self.way_on})")
        if raised is not None and raised is not error:
            raise raised from error

    @cached_property
    def bar(self) -> Any:
        from rich import progress
        from rich.console import Console

        bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = bar.add_task(self.options.game, total=self.options.steps)
        return bar

    def say(self, text: str) -> None:
        self.bar.console.print(text, markup=False, highlight=False)

    # -- what a script calls -----------------------------------------------------------------------

    def advance(self, step: int) -> None:
        self.step = step
        self.bar.update(self._task, completed=step)

    def go_on(self, step: int) -> None:
        """Resume at a step; later rows of the curve are removed, as their state was lost."""
        self.advance(step)
        self.sound, self._mark = step, step // max(1, self.options.steps // POINTS)
        log = self.folder / "curve.csv"
        rows = log.read_text("utf-8").splitlines() if log.exists() else []
        valid_rows = [row for row in rows if int(row.partition(",")[0]) <= step]
        if len(valid_rows) < len(rows):
            write_whole(log, "".join(f"{row}\n" for row in valid_rows).encode())
        if f"{step},payoff" in {row.rpartition(",")[0] for row in rows}:
            self._judged = step

    def due(self) -> bool:
        """Return whether it is time for an evaluation: `POINTS` times in all, and at the end."""
        previous_mark, self._mark = self._mark, self.step // max(1, self.options.steps // POINTS)
        time = self._mark != previous_mark or self.step >= self.options.steps
        return time and self.step != self._judged

    def judge(self, learner: Policy, **extra: float) -> Evaluation:
        """Evaluate the learner in games of its own, and log the measures."""
        evaluation = judge(self.table, learner, self.options.episodes)
        self.log(**evaluation.values(), **extra)
        self._judged = self.step
        shown = f"{self.options.game}, payoff {evaluation.payoff:.4g}"
        self.bar.update(self._task, description=shown)
        return evaluation

    def log(self, **values: float) -> None:
        """Write finite values of this step to TensorBoard's file and ``curve.csv``; as `check`."""
        self.check(**values)
        for name, value in values.items():
            self._writer.add_scalar(name.replace("__", "/"), value, self.step)
        with (self.folder / "curve.csv").open("a", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerows((self.step, name, repr(float(v))) for name, v in values.items())

    @cached_property
    def _writer(self) -> Any:
        from tensorboard.summary import Writer

        return Writer(str(self.folder))

    def check(self, **values: Any) -> None:
        """Raise TrainingBroke if a value, or one in an array, is no finite number."""
        for name, value in values.items():
            if not np.isfinite(value).all():
                self.broke(name)

    def broke(self, name: str) -> NoReturn:
        """Raise TrainingBroke: the value of this name is no finite number."""
        sound = f"it was last sound at step {self.sound}, which is in {self.folder}"
        last = sound if self.sound >= 0 else "nothing was kept before"
        raise TrainingBroke(
            f"{name} is no number at step {self.step}; {last}; give a smaller --rate"
        )

    def keep(self) -> None:
        """Save the state, so that the training can resume here; `DiskFull` names the folder."""
        if self.saving is not None:
            write_whole(self.file, self.saving())
            self.sound = self.step

    def end(
        self, learner: Policy, player: str, games: int | None = None, **measures: float
    ) -> Evaluation:
        """Evaluate the learner in further games, and print the measures and its player's name.

        The method's own `measures` come first. `games` are 5 times its `episodes` by default. A
        training that was stopped before its end raises KeyboardInterrupt instead.
        """
        if self.stopping and self.step < self.options.steps:
            raise KeyboardInterrupt
        evaluation = judge(self.table, learner, games or 5 * self.options.episodes, LAST)
        self.bar.stop()
        for name, value in measures.items():
            print(f"{name:20} {value:.5g}")
        print(f"among               {', '.join(dict.fromkeys(self.options.opponents))}")
        for name, value in evaluation.values().items():
            print(f"  {name:18} {value:.5g}")
        if self.options.best:
            print(f"best response   {_in_words(evaluation.payoff, self.table.best())}")
        print(f"player          {player}")
        print(f"log             tensorboard --logdir {shlex.quote(str(self.folder))}")
        print(f"evaluate        llm-games run {shlex.quote(str(self._file_of_table(player)))}")
        return evaluation

    def _file_of_table(self, player: str) -> Path:
        """Write a file of the table for `llm-games run`, with `player` in the learner's seat."""
        options, table = self.options, self.table
        others = list(options.opponents)
        others = others if len(others) > 1 else others * (table.rules.players - 1)
        seat = 0 if isinstance(table.seat, str) else table.seat
        games = {
            "game": options.game,
            "params": assigned("--param", options.param, "rounds=5"),
            "seats": [*others[:seat], player, *others[seat:]],
            "order": "rotate" if isinstance(table.seat, str) else "fixed",
        }
        lines = [f"title = {toml(f'{self.method} in {options.game}')}", "episodes = 100"]
        if options.set:
            settings = assigned("--set", options.set, "memory=none")
            lines += ["", "[player]", *(f"{key} = {toml(v)}" for key, v in settings.items())]
        lines += ["", "[[games]]", *(f"{key} = {toml(value)}" for key, value in games.items())]
        return write_whole(self.folder / "table.toml", "\n".join([*lines, ""]).encode())


def _in_words(payoff: float, responses: Sequence[BestResponse]) -> str:
    """Return the best response's value, or its bounds, and the payoff as a share of it."""
    low = np.mean([reply.value for reply in responses])
    high = np.mean([reply.upper for reply in responses])
    if all(reply.exact for reply in responses):
        return f"{low:.5g}, exact; the payoff is {payoff / low:.1%} of it"
    return f"{low:.5g} to {high:.5g}; the payoff is {payoff / high:.1%} to {payoff / low:.1%} of it"


def toml(value: Any) -> str:
    """Return a value as TOML writes it in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def curve(folder: str | Path) -> dict[str, Array]:
    """Return logged values by name, ``(2, points)`` of steps and values; the last of each step."""
    points: dict[str, dict[int, float]] = {}
    with Path(folder, "curve.csv").open(newline="") as file:
        for step, name, value in csv.reader(file):
            points.setdefault(name, {})[int(step)] = float(value)
    return {name: np.array(sorted(of.items())).T for name, of in points.items()}


# -- states of earlier versions --------------------------------------------------------------------


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


OLD_MODULES = _pairs(
    """scale=normalisation tables=table_batch wrappers.mixture=wrappers.player_mixture
    wrappers.tabular=wrappers.tabular_player baselines.training.common=baselines.training.harness"""
)
OLD_CLASSES = _pairs(
    """rules.Found=BoundRule rules.Memories=RuleMemories rules.Memory=RuleMemory
    talkers.Memory=TalkerMemory learned.Memories=NetworkMemories learned.Memory=NetworkMemory
    mixture.Mixture=PlayerMixture mixture.Drawn=MixtureMemory tabular.Memory=TableMemory
    tabular.Rows=InformationSets turns.Said=Utterance codecs.Grid=NamedActions
    geometry.Measure=Distances ippo.Learner=PPOLearner rules.DinersDilemmaState=LastActions
    rules.DivideDollarState=LastActions rules.ElFarolBarState=LastActions
    ippo.Settings=PPOSettings __main__.Learner=PPOLearner __main__.Settings=PPOSettings"""
)
OLD_ATTRIBUTES = _pairs(
    """GameVectorEnv._at=_indexes GameVectorEnv._seen=_cached_view GameVectorEnv._taken=_has_moves
    GameVectorEnv._heard=_readings Windows._seen=_text_cache Tables._begun=_is_seeded
    BatchSeats._many=_cell_counts BatchSeats.met=outcomes Codec.heard=reading State.place=position
    LastActions.dishes=actions LastActions.bids=actions LastActions.decisions=actions
    QTable.known=index_by_key TabularPolicy._known=_sets_by_key"""
)


class StateReader(pickle.Unpickler):
    """Reads states of earlier versions too: their modules, classes and attributes by old names."""

    def find_class(self, module: str, name: str) -> Any:
        name = OLD_CLASSES.get(f"{module.rpartition('.')[2]}.{name}", name)
        room = module.removeprefix("llm_games.")
        kind = super().find_class(module.removesuffix(room) + OLD_MODULES.get(room, room), name)
        bases = {base.__name__ for base in getattr(kind, "__mro__", ())}
        renamed = ((*old.split("."), new) for old, new in OLD_ATTRIBUTES.items())
        attributes = {old: new for base, old, new in renamed if base in bases}
        if not attributes:
            return kind

        def set_state(instance: Any, state: dict[str, Any]) -> None:
            object.__setattr__(instance, "__class__", kind)  # states are frozen
            vars(instance).update({attributes.get(key, key): v for key, v in state.items()})

        return type(name, (kind,), {"__setstate__": set_state})


# -- the command -----------------------------------------------------------------------------------


def command(train: Callable[[Any], Any], kind: type[Options]) -> None:
    """Run a script of these options. Errors of users end with a message and code 2, Ctrl-C 130."""
    app = Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(help=inspect.getdoc(sys.modules[train.__module__]))(_typer_function(train, kind))
    app()


def _default(entry: Field[Any]) -> Any:
    return entry.default if entry.default_factory is MISSING else entry.default_factory()


def _typer_function(train: Callable[[Any], Any], kind: type[Options]) -> Callable[..., None]:
    """Return a function with an argument for each option, in the form that Typer reads."""
    hints, keyword, parameters = get_type_hints(kind), inspect.Parameter.KEYWORD_ONLY, []
    annotated: Any = Annotated
    for entry in fields(kind):
        flags, usual = [f"--{entry.name}"] * (hints[entry.name] is bool), _default(entry)
        about = Option(*flags, **entry.metadata)
        if usual is MISSING:
            about, usual = Argument(**entry.metadata), inspect.Parameter.empty
        hint: Any = annotated[hints[entry.name], about]
        parameters.append(inspect.Parameter(entry.name, keyword, default=usual, annotation=hint))

    def run(**arguments: Any) -> None:
        try:
            train(kind(**arguments))
        except (LLMGamesError, KeyboardInterrupt) as error:
            ends = isinstance(error, KeyboardInterrupt)
            text = "interrupted" if ends else f"error: {error}"
            print("\n".join([text, *getattr(error, "__notes__", ())]), file=sys.stderr)
            raise SystemExit(130 if ends else 2) from None

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
