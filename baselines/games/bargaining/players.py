"""Players of bargaining. Whoever only answers by a rule proposes as its summary says."""

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from llm_games.arrays import entry, looked_up
from llm_games.baselines.games.bargaining import theory
from llm_games.baselines.rules import Kind, Players, whole
from llm_games.facts import ratio_of
from llm_games.games.bargaining.rules import ACCEPT, REJECT
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def follow(view: View, offer: Any, least: Any, refusal: Any = REJECT) -> Array:
    """Offer this; accept from `least` on, or name it, and else give the refusal."""
    standing = whole(view, "standing")
    answer = np.where(standing >= least, ACCEPT, refusal)
    names = view.game.at_once & (view.number("proposes") == 0)
    return np.where(standing >= 0, answer, np.where(names, least, offer))


def rational(view: View, noise: Noise) -> Array:
    period = np.minimum(whole(view, "period"), view.game.periods) - 1
    opener = (view.seat + 1 - whole(view, "proposes") + period) % 2
    tables = (theory.table(view.game, name) for name in ("offer", "least", "refusal"))
    return follow(view, *(entry(table, (opener, period)) for table in tables))


def equal(view: View, noise: Noise) -> Array:
    return follow(view, view.game.pie // 2, view.game.pie // 2)


def threshold(share: Fraction, view: View, noise: Noise) -> Array:
    least = -(-view.game.pie * share.numerator // share.denominator)
    return follow(view, least, least)


def selfish_responder(view: View, noise: Noise) -> Array:
    return follow(view, rational(view, noise), 1)


def best_to_people(view: View, noise: Noise) -> Array:
    offers = (whole(view, "standing") < 0) & (view.number("proposes") == 1)
    return np.where(offers, theory.best_to_people(view.game.pie), rational(view, noise))


def people(view: View, noise: Noise) -> Array:
    """Accept by chance as people do; the smallest accepted offer has the same law."""
    rates, mark = theory.acceptance(view.game.pie), noise.random()
    named = np.searchsorted(rates, mark, side="right") if view.game.at_once else 0
    offer = int(theory.MEAN_OFFER * view.game.pie + Fraction(1, 2))
    standing = whole(view, "standing")
    accepted = mark < looked_up(rates, np.maximum(standing, 0))
    return np.where(standing >= 0, accepted, follow(view, offer, np.minimum(named, view.game.pie)))


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": rational,  # what the other did last says little of what it will accept
        "cooperative": equal,
        "equal": Kind("offers half, and accepts at least half (rounded down)", equal),
        "threshold": Kind(
            "offers, and accepts, at least this share of the pie",
            threshold,
            "<share>",
            read=partial(ratio_of, "threshold", high=1),
        ),
        "selfish_responder": Kind("accepts at least 1, and offers as rational", selfish_responder),
        "best_to_people": Kind(
            "offers what is best against people's answers, and answers as rational", best_to_people
        ),
        "people": Kind("offers what people offer on average, and accepts by their rates", people),
    },
    assumed="if the other is rational (it is rational itself)",
    broadcasts=True,
)
