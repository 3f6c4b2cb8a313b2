"""Fresh chance for branches: what was out stays, the rest comes from other seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.rulebook import Rulebook
from llm_games.table import Table


def fresh_seeds(seed: int, step: int, times: int) -> list[int]:
    """Return seeds of branches at a step of the episode of a seed."""
    return [Noise(seed).of("branch", step, number).seed() for number in range(times)]


def settled_chance(
    rules: Rulebook, table: Table, given: Mapping[str, Any] | None, seeds: Sequence[int]
) -> dict[str, Any]:
    """Return the chance that is settled where a table is, as `given` for episodes of `seeds`.

    BadParameter: nothing of their chance can still be another.
    """
    recorded = rules.chance(Noise(table.seed), given)
    drawn = [rules.chance(Noise(seed)) for seed in seeds]
    at_round = int(rules.inside(table.state).round)
    settled, open_names = {}, []
    for draw in rules.draws():
        values = recorded[draw.name]
        if all(np.array_equal(values, other[draw.name]) for other in drawn):
            continue
        if draw.out is not None:
            # Numbers in place of a key that all of them would be drawn from.
            rows = draw.rows(values) if draw.rows and values.ndim == 0 else values
            values = rows[: at_round + draw.out]
            if len(values) < len(rows):
                open_names.append(draw.name)
            if not len(values):
                continue
        settled[draw.name] = values.tolist()
    if not open_names:
        raise BadParameter(
            f"{rules.name} leaves nothing to chance from round {at_round} on that is not settled "
            "by then: leave chance as it is recorded"
        )
    return settled
