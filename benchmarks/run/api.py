"""A run from Python: `llm_games.run` and `llm_games.resume`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_games.benchmarks.judge.branch_outcomes import SeatOutcome, branch_outcomes
from llm_games.benchmarks.judge.impulse_responses import ImpulseResponse, impulse_responses
from llm_games.benchmarks.judge.paper import edition_of, only_owner
from llm_games.benchmarks.judge.player_skill import PlayerSkill, skills
from llm_games.benchmarks.judge.references import Reference, references
from llm_games.benchmarks.judge.results import GameResult, run_results
from llm_games.benchmarks.judge.talk_measures import Talked, talked
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import PARTS, Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.record.store import Store, check_free
from llm_games.benchmarks.record.worker_files import folder
from llm_games.benchmarks.run import conduct
from llm_games.benchmarks.run.branch import Changes, branched
from llm_games.benchmarks.run.plan import Overrides, RunPlan, plan_of
from llm_games.benchmarks.run.price_probes import PriceProbes
from llm_games.benchmarks.run.processes import by_workers, check_workers
from llm_games.benchmarks.run.resume import planned, prolong
from llm_games.errors import unknown


@dataclass(frozen=True)
class Results:
    """A run in its file, which is read when something is asked for."""

    path: Path

    @property
    def games(self) -> dict[str, GameResult]:
        """What each game came to, by label."""
        with Records.open_readonly(self.path) as records:
            return {game.label: game for game in run_results(records)}

    @property
    def skill(self) -> dict[str, list[PlayerSkill]]:
        """How well each player of a game played, by label, see `Skill`; empty where unknown."""
        with Records.open_readonly(self.path) as records:
            return {game.label: skills(game) for game in games(records)}

    @property
    def talk(self) -> dict[str, dict[str, Talked]]:
        """How each player of a game talked, by label, see `Talked`; of games that talk."""
        with Records.open_readonly(self.path) as records:
            return {game.label: talked(game) for game in games(records) if game.talks}

    @property
    def references(self) -> dict[str, list[Reference]]:
        """What rule players come to at each game's table, by label, see `Reference`."""
        with Records.open_readonly(self.path) as records:
            edition = edition_of(records.config)
            return {game.label: references(game, edition) for game in games(records)}

    @property
    def scores(self) -> dict[str, list[float]]:
        """The scores of the finished episodes, 0 to 100, by label; empty where none is defined."""
        return {label: game.scores for label, game in self.games.items()}

    @property
    def branch(self) -> list[SeatOutcome]:
        """What came of a branch, by the seats that were asked at its step; [] of other runs."""
        with Records.open_readonly(self.path) as records:
            return [outcome for game in games(records) for outcome in branch_outcomes(game)]

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The tables of the paper that all games belong to, by name, such as a cross-play's."""
        with Records.open_readonly(self.path) as records:
            played = games(records)
            paper = only_owner(played)
            grids = paper.tables(played) if paper else ()
            return {grid.name: list(grid.dicts()) for grid in grids}

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table, see `rows`, with their game, label, episode and player.

        ``pandas.DataFrame(run.rows("decisions"))`` is a data frame of them. UnknownName: no such
        table.
        """
        tables = ("episodes", *PARTS)
        if table not in tables:
            raise unknown("table", table, tables)
        with Records.open_readonly(self.path) as records:
            return [
                {"game": row.game.game, "label": row.game.label, "episode": row.number} | cells
                for row, cells in records.table(table)
            ]


def run(
    source: str | Path | Mapping[str, Any],
    db: str | Path | None = None,
    *,
    use_cache: bool = True,
    workers: int | None = None,
    ray: str | None = None,
    **overrides: Any,
) -> Results:
    """Play a run, record everything and return it.

    `source` is a TOML file, the name of an experiment, TOML itself, or its content; `db` the file
    to record in, by default a new one in this folder. Without `use_cache` no replies are kept or
    used. `workers` are processes that play it; None: this one plays. They are of the cluster of Ray
    whose head is at `ray`, HOST:PORT, if that is given. Overrides win over the file:
    ``seats``, ``games``, ``episodes``, ``seed``, ``scoring``, ``params`` and ``talk`` of all games,
    ``cache``, ``budget_calls`` and the like, ``part`` (``1/2``: the first of two, for ``llm-games
    merge``), or a setting of players that ask a language model, such as ``temperature``. In place
    of names of players, clients, tools and games there may be objects: what stands in a module is
    recorded as ``module:Name``, see `resume` for others.
    Raises ConfigError: the run cannot be played as it is described; RunExists, Unwritable: the
    file cannot be used; RunStopped: the models cannot be reached any more, or the budget is spent.
    """
    plan = plan_of(source, Overrides.of(**overrides))
    name = "run" if isinstance(source, Mapping) or "\n" in str(source) else str(source)
    path = conduct.fresh(name) if db is None else Path(db)
    check_free(path)
    by = by_workers(workers, plan, use_cache, ray)
    return _played(lambda: conduct.start(plan, path), path, plan, use_cache, by=by)


def resume(
    db: str | Path,
    own: Mapping[str, Any] | None = None,
    *,
    episodes: int | None = None,
    use_cache: bool = True,
    workers: int | None = None,
    ray: str | None = None,
    **overrides: Any,
) -> Results:
    """Finish a run that was interrupted, and return it; what is recorded is not asked again.

    `own` has by label the objects that `run` was handed and that cannot be found by a name: those
    that are no functions or classes of a module. Overrides are ``cache``, the limits of the budget,
    such as ``budget_calls``, and ``max_wait``. `episodes`, more than were planned of each game,
    prolong the run; comparisons say that it was. `workers` and `ray` are as in `run`, whatever
    played before. Raises ConfigError: an object is missing, or an override is none of these;
    StoreError: the file cannot be used; RunStopped: as of `run`.
    """
    patience = overrides.pop("max_wait", None)
    changes = Overrides.of(**overrides)
    if changes != Overrides(cache=changes.cache, budget=changes.budget):
        takes = "cache, budget_... and max_wait"
        raise ConfigError(f"a resumed run takes {takes}, got {', '.join(overrides)}")
    path = Path(db)
    with Records.open_readonly(path) as records:
        plan = planned(records).with_costs(changes).with_patience(patience).with_objects(own or {})
    if episodes is not None:  # of a run that can go on
        prolong(path, episodes)
        plan = plan.longer(episodes)
    check_workers(workers)
    with Records.open_readonly(path) as records:
        if not plan.owed(records.episodes()) and not folder(path).exists():
            return Results(path)
    by = by_workers(workers, plan, use_cache, ray)
    return _played(lambda: Store.open(path), path, plan, use_cache, resumed=True, by=by)


def branch(
    db: str | Path,
    place: str,
    new_db: str | Path | None = None,
    *,
    seats: Mapping[int, str] | None = None,
    settings: Mapping[int, Mapping[str, Any]] | None = None,
    moves: Mapping[int, Any] | None = None,
    texts: Mapping[int, str] | None = None,
    asked: int | None = None,
    times: int = 1,
    chance: str = "recorded",
    own: Mapping[str, Any] | None = None,
    use_cache: bool = True,
    **overrides: Any,
) -> Results:
    """Play on from a decision of a recorded run, with something changed; return it as a new run.

    `place` is ``LABEL/NUMBER/STEP``. By seat of that episode: `seats` are other players, `settings`
    other ones of players that ask a model, `moves` what is done at that step in place of what was,
    `texts` what a model reads there in place of its last message. All before, and what others did
    at the step, stays as recorded; chance does, too, but with ``chance="fresh"`` for what nobody
    had seen. By default the episode is played to its end; `asked`, a seat, decides at the step
    again and no more. The one of ``times=1`` has the recorded seeds, more have new ones. `own` and
    overrides are as of `resume`. The recorded run is left as it is. Raises OtherEdition,
    BadParameter, UnknownName, ConfigError: it cannot be branched so; and as `run`.
    """
    plan, path = branch_plan(
        db,
        place,
        new_db,
        changes=Changes(
            seats=seats or {},
            settings=settings or {},
            moves=moves or {},
            texts=texts or {},
            asked=asked,
            times=times,
            chance=chance,
        ),
        overrides=overrides,
        own=own or {},
    )
    return _played(lambda: conduct.start(plan, path), path, plan, use_cache)


def probe_prices(
    db: str | Path, new_db: str | Path | None = None, *, labels: Sequence[str] = (), **probes: Any
) -> list[ImpulseResponse]:
    """Force prices in a recorded price competition and return what was answered to them.

    The branches are played into `new_db`, by default a new file. `labels`: of these games. What is
    forced is said by `probes`, the fields of `PriceProbes`. Raises as `branch`.
    """
    path = Path(new_db) if new_db else conduct.fresh(f"{Path(db).stem}-collusion")
    check_free(path)
    plan = PriceProbes(**probes).planned(Path(db), path.parent, labels, {})
    results = _played(lambda: conduct.start(plan, path), path, plan, use_cache=True)
    with Records.open_readonly(results.path) as records:
        return impulse_responses(games(records))


def branch_plan(
    db: str | Path,
    place: str,
    new_db: str | Path | None,
    *,
    changes: Changes,
    overrides: Mapping[str, Any],
    own: Mapping[str, Any],
) -> tuple[RunPlan, Path]:
    """Return the plan of a branch and the file that it is to be recorded in, by default a new one.

    Raises as `branch`; nothing is written.
    """
    costs = Overrides.of(**overrides)
    if costs != Overrides(cache=costs.cache, budget=costs.budget):
        raise ConfigError(f"a branch takes cache and budget_..., got {', '.join(overrides)}")
    path = Path(new_db) if new_db else conduct.fresh(f"{Path(db).stem}-branch")
    check_free(path)
    return branched(Path(db), place, changes, path.parent, own).with_costs(costs), path


def _played(
    open_store: Callable[[], Store],
    path: Path,
    plan: RunPlan,
    use_cache: bool,
    *,
    resumed: bool = False,
    by: conduct.Conductor | None = None,
) -> Results:
    """Play a run; errors say how one that has begun goes on."""
    with conduct.seated_players(plan, use_cache) as policies:
        try:
            conduct.play_run(open_store, plan, policies, resumed=resumed, by=by)
        except BaseException as error:
            if path.exists() and not isinstance(error, conduct.RunStopped):  # which says it itself
                error.add_note(conduct.go_on(path))
            raise
    return Results(path)
