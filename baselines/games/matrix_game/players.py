"""Players of matrix games: strategies of two actions, and rules for any table.

Action 0 is C and action 1 is D; strategies read actions as they see them, and remember all rounds.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from functools import partial, reduce
from typing import Any

import numpy as np

from llm_games.baselines.games.matrix_game import theory
from llm_games.baselines.logit_equilibria import logit_equilibrium
from llm_games.baselines.memory_one import EXTORTION, Memory, generous
from llm_games.baselines.repeated_dilemma import Dilemma
from llm_games.baselines.rules import Kind, Players, Rule, cannot_play, pick, shape, whole
from llm_games.errors import BadParameter
from llm_games.facts import ratio_of
from llm_games.noise import Noise
from llm_games.questions import BadReply
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View

C, D = 0, 1


def _drawn(mixture: Any, view: View, noise: Noise) -> Array:
    return pick(np.broadcast_to(np.array(mixture, np.float64), (*shape(view), len(mixture))), noise)


# -- strategies of two players of two actions ------------------------------------------------------


class SeenActions:
    """What one of two players has seen: the last rounds' actions, 0 before there were any."""

    def __init__(self, view: View) -> None:
        game = view.game
        if game.actions != (2, 2) or not game.tells_each:
            raise BadParameter(
                "this player is for two players of two actions who are told all actions, got "
                f"players={game.players}, actions {game.actions} and reveal={game.reveal!r}"
            )
        self.view, self.other_seat = view, 1 - view.seat
        self.begun = view.number("round") > 1

    def own(self, name: str = "seen") -> Array:
        return whole(self.view, f"{name}_{self.view.seat}")

    def other(self, *names: str) -> Array:
        """Return whether the other played D in any of these rounds."""
        seen = [whole(self.view, f"{name}_{self.other_seat}") for name in names or ("seen",)]
        return reduce(np.maximum, seen)


def alternator(view: View, noise: Noise) -> Array:
    return (SeenActions(view).view.number("round").astype(np.int64) - 1) % 2


def tit_for_tat(view: View, noise: Noise, first: int = C) -> Array:
    past = SeenActions(view)
    return np.where(past.begun, past.other(), first)


def tit_for_two_tats(view: View, noise: Noise) -> Array:
    past = SeenActions(view)
    return past.other() & past.other("before")


def tits_for_tat(view: View, noise: Noise, rounds: tuple[str, ...]) -> Array:
    return SeenActions(view).other(*rounds)


def grim(view: View, noise: Noise) -> Array:
    past = SeenActions(view)
    return view.number(f"count_{past.other_seat}_{D}") > 0


def two_round_trigger(view: View, noise: Noise) -> Array:
    """Play D twice once the other did, whatever it does meanwhile (Dal Bo and Frechette 2011)."""
    past = SeenActions(view)
    return np.where(past.own() == D, past.own("before") == C, past.other())


def win_stay_lose_shift(view: View, noise: Noise) -> Array:
    past = SeenActions(view)
    return past.begun & (past.own() != past.other())


def bully(view: View, noise: Noise) -> Array:
    past = SeenActions(view)
    return np.where(past.begun, 1 - past.other(), D)


def memory_one(rule: Memory, view: View, noise: Noise) -> Array:
    past = SeenActions(view)
    state = np.where(past.begun, 1 + 2 * past.own() + past.other(), 0)
    return noise.random() >= np.array(rule, np.float64)[state]


def generous_tit_for_tat(*given: Any) -> Array:
    """Take a view and noise, perhaps after a chance to forgive; else it is the most that holds."""
    *chance, view, noise = given
    share = chance[0] if chance else None
    share = Dilemma.of(view.game.given.exact).generosity if share is None else share
    return memory_one(generous(share), view, noise)


def extort(factor: int, view: View, noise: Noise) -> Array:
    if view.game.given.units.tolist() != [[[3, 0], [5, 1]], [[3, 5], [0, 1]]]:
        raise BadParameter("zd_extort is worked out for the payoffs 3 0; 5 1 alone")
    return memory_one(EXTORTION[factor], view, noise)


def _chance(name: str, value: str) -> Fraction:
    with suppress(BadParameter):
        return ratio_of(name, value, 0, 1)
    raise BadParameter(f"{name} needs chances from 0 to 1, as in 1/3 or 0.9, got {value!r}")


def _forgiven(value: str) -> Fraction | None:
    return _chance("generous", value) if value else None


def _memory(value: str) -> Memory:
    chances = [_chance("memory_one", part) for part in value.split(",")]
    if len(chances) != 5:
        raise BadParameter(
            "memory_one needs five chances to play action 0, at first and after CC, CD, DC, DD, as "
            f"in memory_one:1,1,0,1,0, got {value!r}"
        )
    return Memory(*chances)


def _factor(value: str) -> int:
    if value not in ("2", "3"):
        raise BadParameter(f"zd_extort takes 2 or 3, as in zd_extort:2, got {value!r}")
    return int(value)


# -- any table -------------------------------------------------------------------------------------


def uniform(view: View, noise: Noise) -> Array:
    return noise.integers(0, view.game.actions[view.seat])


def maximin(view: View, noise: Noise) -> Array:
    return np.full(shape(view), view.game.given.safe[view.seat])


def rational(view: View, noise: Noise) -> Array:
    game = view.game
    profile = theory.selected(game)
    if profile is not None:
        return np.full(shape(view), profile[view.seat])
    mixtures = theory.mixed(game)
    return maximin(view, noise) if mixtures is None else _drawn(mixtures[view.seat], view, noise)


def _must_see(view: View) -> None:
    if view.game.reveal != "actions":
        raise BadParameter(
            f"this player replies to what it sees: reveal must be actions, got {view.game.reveal!r}"
        )


def best_response(view: View, noise: Noise) -> Array:
    """Reply to the others' last actions as seen, the first of equals; at first be rational."""
    _must_see(view)
    game, seat = view.game, view.seat
    if game.by_count is not None:
        first = _first_players(view)
        values = game.given.units[:, np.clip(first, 0, game.players - 1)]
    else:
        seen = [whole(view, f"seen_{i}") for i in range(game.players)]
        own = np.moveaxis(theory.stage(game)[0][seat], seat, 0)
        values = own[(slice(None), *seen[:seat], *seen[seat + 1 :])]
    return np.where(view.number("round") > 1, values.argmax(axis=0), rational(view, noise))


def _first_players(view: View) -> Array:
    """Return how many others played action 0 in the last round, in a game by count."""
    if not view.game.tells_each:
        return whole(view, "first") - (view.number("action") == 0)
    others = (i for i in range(view.game.players) if i != view.seat)
    return np.sum([whole(view, f"seen_{i}") == 0 for i in others], axis=0)


def fictitious_play(view: View, noise: Noise) -> Array:
    """Reply to how often the others were seen to do what, the first of equals; at first be safe."""
    _must_see(view)
    game = view.game
    if not game.tells_each or game.by_count is not None:
        raise BadParameter("fictitious_play is for tables of up to 6 players, not for by_count")
    values = theory.stage(game)[0][view.seat].astype(np.float64)
    values = np.moveaxis(values, view.seat, 0).reshape(values.shape[view.seat], -1)
    weights = np.ones((1, *shape(view)))
    for seat in (i for i in range(game.players) if i != view.seat):
        names = [f"count_{seat}_{action}" for action in range(game.actions[seat])]
        counts = np.array([view.number(name) for name in names], np.float64)
        weights = (weights[:, None] * counts).reshape(-1, *shape(view))
    reply = np.tensordot(values, weights, 1).argmax(axis=0)
    return np.where(view.number("round") > 1, reply, maximin(view, noise))


def level_k(level: int, view: View, noise: Noise) -> Array:
    return _drawn(theory.level_k(view.game, level)[view.seat], view, noise)


def logit(rate: float, view: View, noise: Noise) -> Array:
    """Draw from the logit equilibrium of a round; BadParameter where none is settled on."""
    table, unit = theory.stage(view.game)
    mixtures, residual = logit_equilibrium(table / unit, rate)
    if mixtures is None:
        raise BadParameter(
            f"logit:{rate:g} does not settle in this game (residual {residual:.2g}): choose less"
        )
    return _drawn(mixtures[view.seat], view, noise)


def turn_taking(view: View, noise: Noise) -> Array:
    """Play the pure equilibria that none improves on for all, one after another by round."""
    profiles = theory.in_turn(view.game)
    if not profiles:
        return maximin(view, noise)
    turn = (view.number("round").astype(np.int64) - 1) % len(profiles)
    return np.array([profile[view.seat] for profile in profiles])[turn]


def cooperative(view: View, noise: Noise) -> Array:
    """Do the own part of the first cell whose payoffs add up to most."""
    return np.full(shape(view), theory.best_for_all(view.game)[view.seat])


def meaning(game: Rulebook, value: str) -> int:
    """Return the action of a label that is settled, or of a number from 0."""
    state: Any = game.reset(0)
    rules: Any = game
    if value.isascii() and value.isdigit() and int(value) < max(rules.actions):
        return int(value)
    with suppress(BadReply):
        if rules.labels != "drawn":
            return int(rules.asks(state, 0).read(value))
    raise cannot_play(game, value, "a label of an action, or its number from 0")


def _rate(value: str) -> float:
    with suppress(ValueError):
        if 0 <= (rate := float(Fraction(value))) < 1e6:
            return rate
    raise BadParameter(f"logit needs a rate of at least 0, as in logit:1/2, got {value!r}")


def _two(rule: Rule, summary: str, **more: Any) -> Kind:
    return Kind(f"of two actions: {summary}", rule, **more)


_TWO, _THREE = ("seen", "before"), ("seen", "before", "earlier")
FOR_TWO = {
    "all_c": _two(lambda view, noise: SeenActions(view).other() * 0, "always the first"),
    "all_d": _two(lambda view, noise: SeenActions(view).other() * 0 + 1, "always the second"),
    "alternator": _two(alternator, "the first, the second, and so on"),
    "tit_for_tat": _two(tit_for_tat, "what the other did last, at first the first"),
    "suspicious_tit_for_tat": _two(partial(tit_for_tat, first=D), "the same, at first the second"),
    "tit_for_two_tats": _two(tit_for_two_tats, "the second after two of the other's"),
    "two_tits_for_tat": _two(partial(tits_for_tat, rounds=_TWO), "the second after one in two"),
    "hard_tit_for_tat": _two(partial(tits_for_tat, rounds=_THREE), "the second after one in three"),
    "grim": _two(grim, "the second once the other ever played it"),
    "two_round_trigger": _two(two_round_trigger, "the second twice once the other played it"),
    "win_stay_lose_shift": _two(win_stay_lose_shift, "the first if both did the same last"),
    "bully": _two(bully, "the opposite of what the other did last"),
    "generous": _two(
        generous_tit_for_tat,
        "what the other did last, but forgives with a chance",
        value="<chance>",
        valued="how often it forgives",
        read=_forgiven,
    ),
    "memory_one": _two(
        memory_one,
        "the first with chances at first and after CC, CD, DC, DD",
        value="<five chances>",
        read=_memory,
    ),
    "zd_extort": _two(
        extort, "takes a multiple of the other's gain", value="<factor>", read=_factor
    ),
}
PLAYERS = Players(
    {
        "rational": rational,
        "best_response": best_response,
        "level_k": level_k,
        "cooperative": cooperative,
        "uniform": Kind("draws any action, all equally likely", uniform),
        "maximin": Kind("plays the action whose worst payoff is best", maximin),
        "fictitious_play": Kind("replies to how often the others did what", fictitious_play),
        "turn_taking": Kind("plays the best pure equilibria one after another", turn_taking),
        "logit": Kind("draws from a logit equilibrium", logit, value="<rate>", read=_rate),
        **FOR_TWO,
    },
    meaning=meaning,
    assumed="if the others play the same again (while that is not known, if all are rational)",
    mixed=True,
)
