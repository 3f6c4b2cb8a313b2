"""Players of the trust game."""

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.rules import Kind, Players, Rule, cannot_play, shape, whole
from llm_games.errors import BadParameter
from llm_games.facts import ratio_of
from llm_games.noise import Noise
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View

Amount = Callable[[View], Any]


def moves(send: Amount, give_back: Amount) -> Rule:
    """Return the rule of one that sends and returns these amounts."""

    def rule(view: View, noise: Noise) -> Array:
        returning = view.number("sent") >= 0
        return np.broadcast_to(np.where(returning, give_back(view), send(view)), shape(view))

    return rule


def nothing(view: View) -> int:
    return 0


def everything(view: View) -> int:
    return int(view.game.endowment[0])


def sent(view: View) -> Array:
    return np.maximum(whole(view, "sent"), 0)


def half(view: View) -> Array:
    return whole(view, "became") // 2


def half_of_gain(view: View) -> Array:
    return sent(view) + (whole(view, "became") - sent(view)) // 2


def until_betrayed(view: View) -> Array:
    return everything(view) * (view.number("betrayed") == 0)


def as_came_back(view: View) -> Array:
    came_back = whole(view, "came_back")
    return np.where(came_back < 0, everything(view) // 2, np.minimum(came_back, everything(view)))


def if_it_paid(view: View) -> Array:
    gained = whole(view, "last_returned") > whole(view, "last_sent")
    return everything(view) * (gained & (view.number("invested") == 1))


class FixedAmounts(NamedTuple):
    """What is always sent, and the share of what arrived that is returned."""

    sent: int
    share: Fraction


def fixed(amounts: FixedAmounts, view: View, noise: Noise) -> Array:
    share = amounts.share
    back = whole(view, "became") * share.numerator // share.denominator
    return np.where(view.number("sent") >= 0, back, amounts.sent)


def meaning(game: Rulebook, value: str) -> FixedAmounts:
    amount, comma, share = value.partition(",")
    with suppress(BadParameter):
        if comma and amount.isdecimal() and int(amount) <= game.endowment[0]:  # type: ignore[attr-defined]
            return FixedAmounts(int(amount), ratio_of("share", share, 0, 1))
    raise cannot_play(game, value, "an amount to send and a share to return, as in fixed:5,1/3")


PLAYERS = Players(
    {
        "rational": moves(nothing, nothing),
        "best_response": moves(if_it_paid, nothing),
        "cooperative": moves(everything, half),
        "trusting": Kind("sends all, and returns half", moves(everything, half)),
        "reciprocal": moves(everything, half_of_gain),
        "repay": Kind("sends all, and returns what was sent", moves(everything, sent)),
        "grim_investor": Kind(
            "sends all until less than it sent comes back, then nothing; returns what was sent",
            moves(until_betrayed, sent),
        ),
        "tit_for_tat_investor": Kind(
            "sends what came back last, at first half; returns what was sent",
            moves(as_came_back, sent),
        ),
        "fixed": fixed,
    },
    meaning=meaning,
    assumed="if the other returns the same share again (while that is not known, if nothing)",
    broadcasts=True,
)
