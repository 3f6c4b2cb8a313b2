"""What players read is true: change what is so, and see whether what is said follows.

Each check counts what it tried; ``python tests/test_truth.py`` prints the counts.
"""

import copy
import dataclasses
import re
import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from playing import NAMES, SETTINGS, legal_actions

import llm_games
from llm_games import rooms
from llm_games.errors import BadParameter
from llm_games.view import Sight, View
from llm_games.words import Prompts, exact, number, percent

VERSIONS = ("v1", "v2", "v3", "v4", "v5")
STATES = 6  # of a game that is played
# Where a parameter matters, beside the settings of all tests.
PRIVATE = {"players": 2, "items": "items_2", "values": "private", "budgets": 100}
MORE = [
    ("battle_royale", {"announce_cap": True, "players": 3}),
    ("battle_royale", {"players": 3, "hit_rates": (10, 20, 30)}),
    ("beauty_contest", {"domain": "real", "decimals": 2, "players": 3}),
    ("beauty_contest", {"max": 200, "players": 3}),
    ("budget_auction", {"players": 3, "tell_prior": True, "rounds": 2}),
    ("el_farol_bar", {"ratio": "2/3", "players": 3, "home": 1, "max": 2, "min": -1}),
    ("english_auction", {"players": 2, "items": "items_2", "discount": 35}),
    ("english_auction", PRIVATE | {"tell_prior": True}),
    ("public_goods", {"players": 3, "initial_tokens": "random", "endowment": "carry"}),
    ("sealed_bid_auction", {"players": 3, "tell_prior": True, "rounds": 2}),
    ("water_allocation", {"supply_high": 34, "supply_upper_inclusive": False}),
]
# Other values of parameters of which the declaration alone names none.
OTHER = {
    "valuation_min": [50],
    "interval": [5],
    "hit_rates": [(10, 20, 40)],
    "items": ["items_3", (("Lamp", 3, 7), ("Chair", 0, 4))],
    "item_order": ["shuffled", "late"],
    "private_values": [((5, 6), (7, 8))],
    "first_bidder": [1],
    "objective": ["items"],
    "max_draw": [(10, 20)],
    "reply_key": ["answer"],
    "reveal": [("mean",), ("target",), ("winning_numbers",), ("own_result",), ("all_choices",)],
    "reveal_last": [0],
    "persona": ["default"],
    "residents": [(("Zoe", 7, 71), ("Yan", 6, 61), ("Xi", 5, 51))],
    "valuations": [((4, 3, 2),), ((40, 30, 20),) * 2],
    "supplies": [(12,) * 6, (12,) * 20],
}
WORDS = {"bids", "bids_and_private"}  # values of `reveal` in another game


def settings(name):
    return [more for game, more in SETTINGS + MORE if game == name]


def rules(name, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a dilemma is no condition of a true sentence
        return llm_games.rules(name, **more)


@cache
def prompts(name):
    return [Prompts(name, version) for version in VERSIONS]


def played(game, seed=5, most=STATES):
    """Return states of a game of random legal moves: the first ones, and the last."""
    rng, state, states = np.random.default_rng(seed), game.reset(seed), []
    while not state.over:
        if len(states) < most:
            states.append(state)
        state, _ = game.step(state, legal_actions(game, state, rng))
    return [*states, state]


def views(game, state):
    """Return the views of those who are asked; of all at the end."""
    sight = Sight(game, state)
    return [sight.view(seat) for seat in (sight.asked or range(game.players))]


def said(wording, view):
    return wording.report(view), wording.request(view)


def follows(changed, wording, game, states):
    """Tell whether a wording says something else of these states with other parameters."""
    seats = range(game.players)
    if changed.players != game.players or any(
        wording.rules(changed, seat) != wording.rules(game, seat) for seat in seats
    ):
        return True
    return any(
        said(wording, View.of(changed, v.sight.state, v.seat)) != said(wording, v)
        for state in states
        for v in views(game, state)
    )


def others(parameter, value):
    """Return other values of a parameter, by a name for the change."""
    about, default = parameter.metadata, parameter.default
    if about.get("choices"):
        return {word: word for word in about["choices"] if word != value}
    if parameter.name in OTHER:
        return {str(other): other for other in OTHER[parameter.name] if other != value}
    if isinstance(default, bool):
        return {"not": not value}
    if isinstance(value, int | Fraction):
        half = value / 2 if isinstance(value, Fraction) else value // 2
        return {c: v for c, v in (("+1", value + 1), ("-1", value - 1), ("/2", half)) if v != value}
    return {}


def changes(name):
    """Yield each change of one parameter in each setting where it is possible."""
    for more in settings(name):
        game = rules(name, **more)
        states = played(game)
        for f in dataclasses.fields(game):
            for change, value in others(f, getattr(game, f.name)).items():
                try:
                    changed = rules(name, **(more | {f.name: value}))
                except BadParameter:
                    continue
                yield f, change, more, game, changed, states


def told(f, game):
    """Tell whether players are told a parameter."""
    hidden = f.metadata["hidden"]
    return not hidden if isinstance(hidden, bool) else getattr(game, hidden)


def parameters(name):
    """Check that what is told is said in every wording, and what is hidden in no way at all."""
    found, heard, tried, count = [], {}, {}, 0
    for f, change, more, game, changed, states in changes(name):
        key = f.name, change
        if not told(f, game):
            for wording in prompts(name):
                count += 1
                if follows(changed, wording, game, states):
                    found.append(f"{wording.version} tells the hidden {key} in {more}")
            for state in states:
                count += 1
                if not np.array_equal(game.observe(state), changed.observe(state)):
                    found.append(f"numbers tell the hidden {key} in {more}")
            continue
        for wording in prompts(name):
            tried[key, wording.version] = more
            if (key, wording.version) not in heard:
                count += 1
                if follows(changed, wording, game, states):
                    heard[key, wording.version] = more
    silent = sorted(f"{version} never tells {key}" for key, version in tried.keys() - heard.keys())
    missed = {f.name for f in dataclasses.fields(game)} - {key[0] for key, _ in tried}
    missed -= {f.name for f in dataclasses.fields(game) if f.metadata["hidden"] is True}
    return count, found + silent + [f"nothing was tried for {name}" for name in sorted(missed)]


def altered(array, place):
    """Return copies of an array with another value at one place."""
    value = array[place] if array.ndim else array[()]
    step = 1 if array.dtype.kind == "b" else max(1, abs(value) // 50)  # numbers are float32
    others = [not value] if array.dtype.kind == "b" else [value + step, value - step]
    for other in others:
        changed = np.array(array)
        changed[place] = other
        yield changed if array.ndim else changed[()]


def auctioned(game, state):
    """Tell whether a state of the English auction is one that there can be."""
    order, item = state.order.tolist(), min(int(state.item), len(state.order) - 1)
    spent = game.spent(state)
    return (
        sorted(order) == list(range(len(order)))
        and not (spent < 0).any()
        and not (spent[state.won == 0] != 0).any()
        and not (state.profit[state.won == 0] != 0).any()
        and (state.withdrawn == (state.last_reply == -1)).all()
        and (game.values == "private" or (state.values == state.values[0]).all())
        and (state.discounts > 0 or state.starts[item] == state.start)
    )


# What fits together in a state; other states are none that could be told of.
POSSIBLE = {
    "battle_royale": lambda game, state: not (state.hit & (state.target < 0)).any(),
    "beauty_contest": lambda game, state: (
        state.limit % game.unit == 0 if game.max_draw else state.limit == game.bounds()[1]
    ),
    "english_auction": auctioned,
    "water_allocation": lambda game, state: (state.living == (state.hp > 0)).all(),
}


def possible(game, state):
    """Tell whether there can be such a state."""
    fits = POSSIBLE.get(game.name, lambda game, state: True)
    alive = not (game.asked(state) & ~game.alive(state)).any()
    return alive and 0 <= state.round < getattr(game, "rounds", np.inf) and fits(game, state)


def unborn(array, first):
    """Tell whether nothing of a state has happened yet that could have been another way."""
    array, first = np.asarray(array), np.asarray(first)
    return array.shape == first.shape and not (array != first).any() and not (first > 0).any()


def heard(game, state):
    """Return what each seat that is asked knows, in numbers and in all wordings."""
    return {
        view.seat: (view.numbers, [said(wording, view) for wording in prompts(game.name)])
        for view in views(game, state)
        if view.question is not None
    }


def facts(name):
    """Check that words and numbers tell the same: what changes one of them changes the other."""
    found, count = {}, 0
    for more in settings(name):
        game = rules(name, **more)
        drawn, states = {draw.name for draw in game.draws()}, played(game)
        for state in states:
            before = heard(game, state)
            for field, array in state.arrays().items():
                if field not in drawn and unborn(array, states[0].arrays()[field]):
                    continue
                places = list(np.ndindex(np.shape(array)))
                for place in places[:: max(1, len(places) // 8)]:
                    for value in altered(np.asarray(array), place):
                        other = state.replace(**{field: value})
                        if not possible(game, other):
                            continue
                        try:
                            after = heard(game, other)
                        except (IndexError, ValueError, KeyError):
                            continue  # there is no such state
                        for seat in before.keys() & after.keys():
                            (row, words), (new, told) = before[seat], after[seat]
                            count += 1
                            for version, a, b in zip(VERSIONS, words, told, strict=True):
                                if (a != b) != (not np.array_equal(row, new)):
                                    which = "words" if a != b else "numbers"
                                    found[f"{version}: only {which} follow {field} in {more}"] = (seat, place, array[place] if np.ndim(array) else array, value[place] if np.ndim(value) else value, a, b)
    return count, [f"{k} {v}" for k,v in found.items()]


def digits(text):
    """Return the numbers in a text, without their signs; player_3 holds none."""
    return re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])", text)


def literal(source):
    """Return the numbers that a template holds itself."""
    strings = lambda code: " ".join(re.findall(r"\"[^\"]*\"|'[^']*'", code[0]))
    return set(digits(re.sub(r"\{[{%#].*?[}%#]\}", strings, source, flags=re.DOTALL)))


def written(value):
    """Return how the numbers in a value can be written."""
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, str):
        return set(digits(value))
    if isinstance(value, dict):
        return set().union(*map(written, value.values()))
    if isinstance(value, tuple | list):
        return set().union(*map(written, value))
    forms = [exact(value), *(number(value, decimals) for decimals in (2, 6))]
    if isinstance(value, Fraction):
        forms += [percent(value), str(value)]
    return {n for form in forms for n in digits(form)}


def sums(source, values):
    """Return what a template adds up, such as ``{{ shots + 1 }}``."""
    value = lambda name: int(name) if name.isdigit() else values[name]
    pairs = re.findall(r"\{\{ (\w+) \+ (\w+) \}\}", source)
    return [value(a) + value(b) for a, b in pairs if values.get(a) is not None]


def numbers(name):
    """Check that each number in what is read is a term, a fact, or stands in the wording."""
    found, count = set(), 0
    for more in settings(name):
        game = rules(name, **more)
        for wording in prompts(name):
            source = (rooms.wordings(name) / f"{wording.version}.j2").read_text("utf-8")
            own = literal(source)
            for state in played(game):
                for view in views(game, state):
                    terms = game.terms() | {"seat": view.seat}
                    known = own | written(terms) | written(view.told)
                    known |= written(sums(source, terms | view.told))
                    limits = [x / game.unit if game.unit > 1 else x for x in (*view.amounts, view.low, view.high)]
                    form = view.question.form() if view.question else ""
                    ends = written([float(x) for x in limits]) | written(list(range(1, game.players + 1)))
                    for text in (wording.rules(game, view.seat), *said(wording, view)):
                        count += len(digits(text))
                        for n in set(digits(text.replace(form, "") if form else text)) - known:
                            found.add(f"{wording.version}: nobody knows {n} in {more}: {text}")
                    for n in set(digits(form)) - known - ends:
                        found.add(f"{wording.version}: nobody knows {n} in the form {form} in {more}")
    return count, sorted(found)


CHECKS = (parameters, facts, numbers)

if __name__ == "__main__":
    import sys, time
    for check in CHECKS:
      if len(sys.argv)>2 and check.__name__ not in sys.argv[2:]: continue
      for name in (NAMES if sys.argv[1]=="all" else [sys.argv[1]]):
        t=time.time(); c,f=check(name); print(check.__name__,name,c,round(time.time()-t,1),"s"); print(*f[:12],sep="\n")
