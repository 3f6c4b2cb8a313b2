"""What describes a negotiation: agreement, scores, and how good deals are for both."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.games.deal_or_no_deal.theory import Divisions, divisions_of, rows_of
from llm_games.baselines.payoff_tables import undominated
from llm_games.baselines.play_measures import PlayMeasure
from llm_games.baselines.regret import Steps
from llm_games.games.deal_or_no_deal.divisions import WORTH

Deal = tuple[Divisions, Array]  # all divisions of the scenario, and what both seats were paid


def measures(game: Any) -> Mapping[str, PlayMeasure]:
    def deals(number: Callable[[Deal], Any]) -> Callable[[Steps, Sequence[int]], Array]:
        """Return a function that observes a number of tables with a deal."""

        def observed(steps: Steps, seats: Sequence[int]) -> Array:
            if not steps["agreed"].any():
                return np.zeros(0)
            divisions = divisions_of(rows_of(game, int(steps["scenario"][0])))
            return np.ravel(number((divisions, _paid(steps))))

        return observed

    def scores(steps: Steps, seats: Sequence[int]) -> Array:
        return _paid(steps)[seats]

    def dealt(steps: Steps, seats: Sequence[int]) -> Array:
        return scores(steps, seats)[: len(seats) if steps["agreed"].any() else 0]

    def efficient(steps: Steps, seats: Sequence[int]) -> Array:
        late = max(0, int(steps["move"].max()) - 2)
        worth = float(game.discount**late)

        def on_frontier(deal: Deal) -> Any:
            frontier = deal[0].scores.T[undominated(deal[0].scores)]
            return np.isclose(frontier, deal[1] / worth).all(axis=1).any()

        return deals(on_frontier)(steps, seats)

    best = lambda deal: deal[0].scores.sum(axis=0).max()  # noqa: E731
    joint = lambda deal: deal[1].sum()  # noqa: E731
    agreed = lambda steps, seats: np.atleast_1d(steps["agreed"].any())  # noqa: E731
    failed = PlayMeasure(lambda steps, seats: ~agreed(steps, seats))
    return {
        "agreement": PlayMeasure(agreed),
        **({"inconsistent claims": failed} if game.at_once else {}),
        "score": PlayMeasure(scores, (0, WORTH)),
        "score of deals": PlayMeasure(dealt, (0, WORTH)),
        "joint score": PlayMeasure(deals(joint), (0, 2 * WORTH)),
        "best joint score": PlayMeasure(deals(best), (0, 2 * WORTH)),
        "share of the best joint score": PlayMeasure(deals(lambda d: joint(d) / best(d))),
        "Pareto-efficient deals": PlayMeasure(efficient),
        "equal points": PlayMeasure(deals(lambda deal: deal[1][0] == deal[1][1])),
        "moves": PlayMeasure(lambda s, seats: np.atleast_1d(s["move"].max()), (1, game.length())),
    }


def _paid(steps: Steps) -> Array:
    return np.asarray(steps["payoffs"].sum(axis=-1))
