"""The characters that the tiny model imitates: for each game, one short script a persona.

A script gets a view and returns an action and a reason in words. Each is a few cases that can be
read off the last message; ``rng`` gives each character some variety.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from llm_games.games.battle_royale.rules import MISS
from llm_games.games.english_auction.views import WITHDRAW
from llm_games.questions import NO_BID, Action, Real, Shares
from llm_games.view import View

Answer = tuple[Action, str]


class Seen(NamedTuple):
    """What a script looks at: the parts of a view, each of the game that the script is for."""

    game: Any
    told: dict[str, Any]
    question: Any
    seat: int


Script = Callable[[Seen, str | None, np.random.Generator], Answer]


def answer(view: View, persona: str | None, rng: np.random.Generator) -> Answer:
    """Return what a persona does in view of a game, and why."""
    assert view.told is not None
    seen = Seen(view.game, view.told, view.question, view.seat)
    return SCRIPTS[view.game.name](seen, persona, rng)


def pick(rng: np.random.Generator, *options: tuple[Any, float]) -> Any:
    """Draw one of some options, each given with its weight."""
    weights = np.array([weight for _, weight in options], float)
    return options[rng.choice(len(options), p=weights / weights.sum())][0]


def beauty_contest(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Step by step below (or above) the last average; the mathematician goes all the way."""
    if isinstance(seen.question, Real):
        return _decimal_contest(seen, persona, rng)
    game, last = seen.game, seen.told["last"]
    low, high, ratio = int(game.min), int(game.max), Fraction(game.ratio)
    end = low if ratio < 1 else high if ratio > 1 else (low + high) // 2
    average = (low + high) / 2 if last is None else float(last["mean"])
    if persona == "mathematician":
        return end, f"The equilibrium is that everybody chooses {end}."
    if persona == "cooperative":
        return clip(average, seen), "We all do best if we stay near the last average."
    steps = 2 if persona == "selfish" else 1
    guess = clip(average * float(ratio) ** steps + rng.integers(0, 2), seen)
    if persona == "selfish":
        return guess, "The others will move on, so I go one step further than they do."
    return guess, "I take the last average and move one step towards the target."


def _decimal_contest(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Play where limits differ, and are 10 at least: begin below that, and go down."""
    told, unit = seen.told, 10**seen.question.decimals
    if persona == "mathematician":
        return 0, "The equilibrium is that everybody chooses 0."
    if persona == "selfish":
        return pick(rng, (0, 4), (unit, 4), (2 * unit, 2)), "The others go down, and I am below."
    if told["last"] is None:
        return pick(rng, (5 * unit, 5), (8 * unit, 5)), "All will go down, so I begin low."
    if persona == "cooperative":
        named = told["last"].get("all_choices", {}).values()
        first = int(next((number for number in named if number is not None), 5))
        return first * unit, f"I go along with the first of us, near {first}."
    return pick(rng, (0, 2), (unit, 5), (2 * unit, 3)), "I go down as all do."


def el_farol_bar(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Go again if it was fun; the greedy one mostly goes, the mathematician mixes."""
    ratio, last = float(seen.game.ratio), seen.told["last"]
    if persona == "selfish":
        return rng.random() < 0.9, "I want the fun for myself, whatever the others do."
    if persona == "mathematician":
        return rng.random() < ratio, "In equilibrium everybody goes with the same probability."
    if persona == "cooperative":
        again = last is not None and last["went"] and last["utility"] > seen.game.home
        go = rng.random() < (0.8 if again else ratio / 2)
        return go, "The bar is good for all of us only if some stay at home."
    if last is None:
        return rng.random() < ratio, "I know nothing yet, so I try my luck."
    if not last["went"]:
        return rng.random() < 0.7, "I stayed at home last time, so others may stay this time."
    if last["utility"] > seen.game.home:
        return rng.random() < 0.9, "It was good last time, so I do the same again."
    return rng.random() < 0.3, "It was too crowded last time."


def divide_dollar(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """About an equal share; the greedy one asks for more."""
    share = seen.game.golds // seen.game.players
    more = max(1, share // 5)
    if persona in ("cooperative", "mathematician"):
        bid = pick(rng, (share, 8), (max(share - more, 0), persona == "cooperative"))
        return bid, f"An equal share is {share}, and so the bids add up."
    if persona == "selfish":
        bid = pick(rng, (share * 2, 5), (share + more, 3), (share * 3, 1))
        return bid, f"An equal share would be {share}, but I want more."
    last = seen.told["last"]
    if last is not None and last["exceeded"]:
        bid = pick(rng, (share, 3), (max(share - more, 0), 5))
        return bid, "The bids were too high last time, so I ask for less."
    bid = pick(rng, (share, 6), (share + more, 2))
    return bid, f"I ask for about an equal share, which is {share}."


def public_goods(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Half at first, then as much again or one less; the greedy one gives nothing."""
    own, last = int(seen.question.high), seen.told["last"]
    if persona == "cooperative":
        given = pick(rng, (own, 8), (own * 3 // 4, 2))
        return given, "The group gains most if all of us give."
    if persona == "mathematician":
        worth = seen.game.ratio >= seen.game.players
        return own if worth else 0, "A token in the pot brings me less than a token I keep."
    if persona == "selfish":
        return pick(rng, (0, 8), (min(own, 1), 1), (min(own, 2), 1)), "I keep what I have."
    if last is None:
        return pick(rng, (own // 2, 6), (own // 4, 2), (own, 2)), "I begin with about a half."
    given = int(np.clip(last["contribution"] + rng.integers(-1, 1), 0, own))
    return given, "I give about as much as I gave before."


def diners_dilemma(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Costly, unless one cares for the table; without a persona, as most did last time."""
    last = seen.told["last"]
    if persona == "cooperative":
        return int(rng.random() < 0.05), "If all of us order cheap, we all save."
    if persona == "selfish":
        return int(rng.random() < 0.97), "The others pay most of my dish."
    if persona == "mathematician":
        return 1, "The costly dish is dominant, since the bill is shared."
    if last is None:
        return int(rng.random() < 0.5), "I do not know yet what the others order."
    if last["costly"] > last["cheap"]:
        return int(rng.random() < 0.85), "Most ordered costly, so I will not pay for them alone."
    return int(rng.random() < 0.25), "Most ordered cheap, and I do as they do."


def sealed_bid_auction(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """A little below the own valuation; with the second price, the valuation itself."""
    if isinstance(seen.question, Real):
        return _session_bid(seen, persona, rng)
    own, first = int(seen.told["own"]), seen.game.price == "first"
    if persona == "mathematician":
        bid = own * 9 // 10 if first else own
        return bid, "Nine tenths are best against nine others." if first else "The truth is best."
    if persona == "selfish":
        return own // 2, "I want a large gain, so I bid half of what it is worth to me."
    below = pick(rng, (0, 2), (10, 8)) if persona == "cooperative" or not first else None
    if below is None:
        below = pick(rng, (10, 5), (20, 4), (30, 1))
    return max(0, own - below), f"It is worth {own} to me, so I bid {below} less."


def _session_bid(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Mostly bid the own value, which the second price makes best; never above the assets."""
    own, unit = seen.told["own"], seen.game.unit
    bid = round(own * unit)
    if persona == "mathematician":
        return bid, f"With the second price, the value {own} itself is the best bid."
    if persona == "selfish" and rng.random() < 0.3:
        assets = seen.told["assets"]
        return round(assets * unit), f"I want to win and bid all of my {assets}."
    if persona == "cooperative" and rng.random() < 0.6:
        return pick(rng, (0, 1), (unit, 1)), "If all of us bid low, the winner pays little."
    return bid, f"It is worth {own} to me, so I bid that."


def english_auction(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Raise by as little as is allowed, up to about the estimate; withdraw now and then.

    The smallest bid stands in the question. Where it does not, only an opening bid is safe.
    """
    question, told = seen.question, seen.told
    floor, worth = question.floor, told["estimate"]
    if floor > question.budget:
        return WITHDRAW, "I cannot afford it."
    if not question.limits and not (question.opening and _clearly(question.budget, floor)):
        return WITHDRAW, "I do not know how much it takes, so I leave it."
    if seen.game.objectives[seen.seat] == "items":
        worth = worth * 3 // 2
    most = worth * 9 // 10 if persona == "mathematician" else worth
    if floor > most:
        return WITHDRAW, f"It would cost {floor} now, and that is too much."
    if seen.game.values == "private" and question.opening and rng.random() < 0.25:
        return told["estimate"], f"I open with what it is worth to me, {told['estimate']}."
    if rng.random() < {"cooperative": 0.6, None: 0.85}.get(persona, 0.95):
        return floor, f"The lowest bid is {floor}, and that is not too much."
    return WITHDRAW, "I leave it to the others."


def _clearly(more: int, less: int) -> bool:
    """Return whether a number has more digits than another, or begins with a larger one."""
    a, b = str(more), str(less)
    return (len(a), a[0]) > (len(b), b[0])


def water_allocation(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Bid nothing, a dollar a unit, the salary or everything, by how urgent it is.

    The salary is always part of the balance, and is more than the need.
    """
    told, me, unit = seen.told, seen.game.cast[seen.seat], seen.game.unit
    every, salary = seen.question.high, me.salary * unit
    need = min(me.requirement * unit, every)
    if told["supply"] < me.requirement and persona != "selfish":
        return NO_BID, f"I need {me.requirement}, and there is not enough today."
    dry, healthy = told["dry"] > 0, told["hp"] >= 8
    if persona == "selfish":
        return pick(rng, (every, 6), (salary, 4)), "I want the water, whatever it costs."
    if persona == "cooperative":
        bid = pick(rng, (salary, 9), (every, 1)) if dry else pick(rng, (need, 6), (NO_BID, 4))
        return bid, "Those who are dry shall drink first, and I bid by my own thirst."
    if persona == "mathematician":
        if healthy and not dry:
            return pick(rng, (NO_BID, 6), (need, 4)), "My health is good, so I save money."
        return (every if told["hp"] <= 5 else salary), "My health decides how much I bid."
    if dry:
        return pick(rng, (every, 6), (salary, 4)), "I was dry, so I need the water now."
    return pick(rng, (salary, 5), (need, 3), (NO_BID, 2)), "I had water, so I do not bid it all."


def battle_royale(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Shoot back at whoever shot last, who is alive and somebody else; before that, at nobody."""
    events, names = seen.told["events"], seen.question.names
    last = names.get(events[-1]["shooter"]) if events else None
    if last is None:
        return MISS, "Nobody has shot yet, and I would rather not provoke anybody."
    if rng.random() < {None: 0.75, "cooperative": 0.15}.get(persona, 1.0):
        return last, "I shoot back at the last one who shot."
    if persona == "cooperative":
        return MISS, "I do not want to harm anybody."
    return MISS, "I would rather not provoke anybody."


def pirate_game(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Plans from a small repertoire; votes by one's own share."""
    if isinstance(seen.question, Shares):
        return _plan(seen.question, persona, rng)
    share, equal = seen.told["share"], seen.game.gold // len(seen.told["plan"])
    if persona == "cooperative":
        return int(rng.random() < 0.95), "I want us to agree."
    if persona == "selfish":
        return int(share >= equal), f"I was offered {share}, and I want a fair share at least."
    return int(share >= 1), f"I was offered {share}, and that is what counts."


def _plan(question: Shares, persona: str | None, rng: np.random.Generator) -> Answer:
    kinds = {
        None: (("votes", 6), ("equal", 3), ("all", 1)),
        "cooperative": (("equal", 1),),
        "selfish": (("all", 5), ("votes", 5)),
        "mathematician": (("votes", 1),),
    }
    kind = pick(rng, *kinds[persona])
    m, total = len(question.ranks), question.total
    shares = [0] * m
    if kind == "equal":
        shares = [total // m] * m
    elif kind == "votes":
        shares = [int(i > 0 and i % 2 == 0) for i in range(m)]
    shares[0] += total - sum(shares)
    plan = [0] * question.players
    for rank, share in zip(question.ranks, shares, strict=True):
        plan[rank - 1] = share
    reasons = {
        "equal": "An equal split will find the votes.",
        "votes": "One coin buys the vote of every second pirate, and I need no more.",
        "all": "I am the one who decides, so I keep it all.",
    }
    return tuple(plan), reasons[kind]


def clip(value: float, seen: Seen) -> int:
    """Round to a legal whole number."""
    return int(np.clip(round(value), seen.question.low, seen.question.high))


SCRIPTS: dict[str, Script] = {
    script.__name__: script
    for script in (
        beauty_contest,
        el_farol_bar,
        divide_dollar,
        public_goods,
        diners_dilemma,
        sealed_bid_auction,
        battle_royale,
        pirate_game,
        water_allocation,
        english_auction,
    )
}
