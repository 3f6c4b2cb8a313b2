"""Base of the scripts that solve small games: a `Solver` has its algorithm, and `solve` runs it."""

from __future__ import annotations

import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, ClassVar

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.training.harness import Evaluation, Options, Training, option
from llm_games.baselines.tree import Tree
from llm_games.errors import BadParameter
from llm_games.wrappers.tabular_player import TabularPolicy, save_table, table_of


@dataclass(frozen=True, kw_only=True)
class SolvingOptions(Options):
    """Options of a solver. It plays all seats itself; opponents only evaluate its strategy."""

    opponents: list[str] = option(
        ["rational"], "PLAYER", "who it is judged against, one for all other seats or for each"
    )
    copies: int = option(
        256, "N", "deals that are drawn where no room says what chance may bring", min=1
    )
    steps: int = option(1000, "N", "iterations", min=1)


class Solver(ABC):
    """An algorithm on a game's tree; a resumed training needs its arrays of `state_names`."""

    state_names: ClassVar[tuple[str, ...]]

    @abstractmethod
    def __init__(self, tree: Tree, seed: int) -> None:
        """Start the algorithm; all chance comes from the seed."""

    @abstractmethod
    def step(self, number: int) -> None: ...

    @abstractmethod
    def average(self) -> Array:
        """Return the current average strategy, ``(rows,)``."""

    def measures(self) -> Mapping[str, float]:
        return {}


def solve(method: str, kind: type[Solver], options: SolvingOptions) -> Evaluation:
    """Run a solver and return its strategy's evaluation; raises as `Training`.

    It logs ``tree/nash_conv`` at powers of two and evaluations: seats' gains by best replies.
    """
    with Training(method, options) as run:
        tree = Tree(run.table.rules, options.seed, options.copies)
        solver = kind(tree, options.seed)
        if run.state is not None:
            restore(run, solver)
        run.saving = lambda: packed(run.step, solver)
        while run.step < options.steps and not run.stopping:
            solver.step(run.step + 1)
            run.advance(run.step + 1)
            due = run.due()
            if due or not run.step & (run.step - 1):
                report(run, tree, solver, due)
        path = save_table(player_of(tree, solver), run.folder / "player.npz")
        run.keep()
        values: dict[str, Any] = measured(tree, solver)
        return run.end(player_of(tree, solver), f"tabular:{path}", **values)


def report(run: Training, tree: Tree, solver: Solver, judge: bool) -> None:
    """Log the strategy's distance from equilibrium; with `judge` evaluate it and save the state."""
    values = measured(tree, solver)
    run.check(**values)
    if judge:
        run.judge(player_of(tree, solver), **values)
        run.keep()
    else:
        run.log(**values)


def measured(tree: Tree, solver: Solver) -> dict[str, float]:
    """Return the distance from equilibrium, and the solver's own measures."""
    return {"tree/nash_conv": tree.nash_conv(solver.average()), **solver.measures()}


def player_of(tree: Tree, solver: Solver) -> TabularPolicy:
    return table_of(tree.game, tree.rows, solver.average())


def packed(step: int, solver: Solver) -> bytes:
    content = BytesIO()
    arrays = {name: getattr(solver, name) for name in solver.state_names}
    np.savez(content, step=step, **arrays)
    return content.getvalue()


def restore(run: Training, solver: Solver) -> None:
    """Restore a solver's arrays; BadParameter if they are incomplete, or of another tree."""
    try:
        with np.load(BytesIO(run.state or b""), allow_pickle=False) as file:
            step, arrays = int(file["step"]), {name: file[name] for name in solver.state_names}
    except (ValueError, LookupError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise BadParameter(f"{run.file} is not whole: begin again in another --folder") from error
    for name, array in arrays.items():
        if array.shape != np.shape(getattr(solver, name)):
            raise BadParameter(
                f"{run.file} is of another tree of {run.options.game}, as another version of its "
                "rules makes it: begin again in another --folder"
            )
        setattr(solver, name, array)
    run.go_on(step)
