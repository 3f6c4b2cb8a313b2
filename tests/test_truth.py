"""What players read is true: change what is so, and see whether what is said follows.

Each check counts what it tried; ``python tests/test_truth.py`` prints the counts.
"""

import dataclasses
import json
import re
import sys
import warnings
from collections import Counter
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from playing import NAMES, SETTINGS, by_game, each_row, equal, legal_actions, rows, sampled

import llm_games
from llm_games import game_rooms as rooms
from llm_games.baselines.players import make_player, mind_of
from llm_games.baselines.regret import caveats
from llm_games.errors import BadParameter
from llm_games.questions import MISSING, Bid
from llm_games.registry import game_class
from llm_games.view import Sight, View
from llm_games.words import Prompts, exact, number, percent
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.mind import Planning
from llm_games.wrappers.planning import PlanningPolicy
from llm_games.wrappers.play import play

VERSIONS = ("v1", "v2", "v3", "v4", "v5")


class Size(NamedTuple):
    """How much of a game is tried: states, seats that are asked, places of an array, seeds."""

    states: int
    seats: int
    places: int
    seeds: int


QUICK, WHOLE = Size(2, 1, 2, 2), Size(6, 10, 8, 6)
size = QUICK
ALL = SETTINGS + rows("TRUTHS")  # where a parameter matters
# Other values of parameters of which the declaration alone names none.
OTHER = {
    "cost": [3],
    "window": [2],
    "personas": ["ruthless", "agreeable"],
    "switch_round": [2],
    "switch_persona": ["aggressive"],
    "tick": ["1/10"],
    "initial_price": [5],
    "price_grid": [(1, 2)],
    "valuation_min": [50],
    "layout": ["hall"],
    "interval": [5],
    "discount": ["1/3", 35],
    "endowment": [(7, 3)],
    "outside": [(3, 4)],
    "breakdown": [(4, 3)],
    "first": [1, "drawn"],
    "hit_rates": [(10, 20, 40)],
    "items": ["items_3", ("pen", "cup", "key"), (("Lamp", 3, 7), ("Chair", 0, 4))],
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
    "payoffs": [((6, 0), (7, 1))],
    "by_count": [((7, 7), (0, 8))],
    "ordinal": [67],
    "labels": [("up", "down"), "drawn"],
    "called": ["Community Game"],
    "supplies": [lambda game: (game.supply_low,) * game.days],
}
NUMBERS = {("bertrand_competition", "history")}  # parameters of what is told in numbers alone
DRAWN = {
    ("beauty_contest", "personas"),
    ("deal_or_no_deal", "scenario"),
}  # what came of them is told, see test_shall_we_talk
BY_TABLE = {"matrix_game"}  # games whose number of players another parameter has
WORDS_ALONE = {("matrix_game", "words"), ("matrix_game", "order")}  # what is called how, and listed
WORDS = {"bids", "bids_and_private"}  # values of `reveal` in another game


def settings(name):
    presets = rules(name).presets if size is WHOLE else {}
    presets = [preset for preset, more in presets.items() if "talk" not in more]
    own = [more for game, more in ALL if game == name]
    return own + [{"preset": preset} for preset in presets]


def rules(name, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a dilemma is no condition of a true sentence
        return llm_games.rules(name, **more)


@cache
def prompts(name):
    return [Prompts(name, version) for version in VERSIONS]


def played(game, seed=5, most=0):
    rng, state, states = np.random.default_rng(seed), game.reset(seed), []
    while not state.over:
        states.append(state)
        state, _ = game.step(state, legal_actions(game, state, rng))
    # The first ones and some later ones, so that what comes of moves is among them.
    step = max(1, len(states) // (most or size.states) // 2)
    return [*states[::step][: most or size.states], state]


def views(game, state):
    sight = Sight(game, state)
    seats = sight.asked or list(range(game.players))
    return [sight.view(seat) for seat in seats[:: -(-len(seats) // size.seats)]]


def said(wording, view):
    return wording.report(view), wording.request(view)


def follows(changed, wording, game, states):
    """Tell whether a wording says something else of these states with other parameters."""
    seats = range(game.players)[: size.seats]
    if changed.players != game.players or any(
        wording.rules(changed, seat) != wording.rules(game, seat) for seat in seats
    ):
        return True
    more = {draw.name for draw in changed.draws()} - {draw.name for draw in game.draws()}
    theirs = played(changed) if more else states  # who draws more has no place in these states
    return any(
        said(wording, View.of(changed, other, v.seat)) != said(wording, v)
        for state, other in zip(states, theirs, strict=False)
        for v in views(game, state)
    )


def plays(changed, game, states):
    """Tell whether the same legal moves bring something else with other parameters."""
    rng = np.random.default_rng(1)
    for state in states[:-1]:
        moves = legal_actions(game, state, rng)
        (one, paid), (two, due) = game.step(state, moves), changed.step(state, moves)
        if not equal(one, two) or not np.array_equal(paid.rewards, due.rewards):
            return True
    return False


def others(parameter, game):
    """Return other values of a parameter, by a name for the change."""
    about, default, value = parameter.metadata, parameter.default, getattr(game, parameter.name)
    if about.get("choices"):
        return {word: word for word in about["choices"] if word != value}
    if parameter.name in OTHER:
        given = [other(game) if callable(other) else other for other in OTHER[parameter.name]]
        return {f"other {i}": other for i, other in enumerate(given) if other != value}
    if isinstance(default, bool):
        return {"not": not value}
    if isinstance(value, int | Fraction):
        half = value / 2 if isinstance(value, Fraction) else value // 2
        return {c: v for c, v in (("+1", value + 1), ("-1", value - 1), ("/2", half)) if v != value}
    return {}


def changes(name, enough=lambda f, change, game: False):
    """Yield each change of one parameter in each setting where it is possible, until enough."""
    for more in settings(name):
        game = rules(name, **more)
        states = played(game)
        for f in dataclasses.fields(game):
            for change, value in others(f, game).items():
                if enough(f, change, game):
                    continue
                try:
                    changed = rules(name, **(more | {f.name: value}))
                except BadParameter:
                    continue
                yield f, change, more, game, changed, states


def told(f, game):
    hidden = f.metadata["hidden"]
    return not hidden if isinstance(hidden, bool) else getattr(game, hidden)


def parameters(name):
    """Check that what is told is said in every wording, and what is hidden in no way at all."""
    found, heard, tried, count = [], {}, Counter(), 0

    def enough(f, change, game):
        said = all(((f.name, change), version) in heard for version in VERSIONS)
        return size is QUICK and (said if told(f, game) else tried[f.name, change, None] > 1)

    for f, change, more, game, changed, states in changes(name, enough):
        key = f.name, change
        if (name, f.name) in NUMBERS | DRAWN:
            tried[*key, None] += 1
            continue
        if not told(f, game):
            tried[*key, None] += 1
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
            tried[key, wording.version] += 1
            count += 1
            if (key, wording.version) not in heard or size is WHOLE:
                if follows(changed, wording, game, states):
                    heard[key, wording.version] = more
                elif f.name not in {*game.silent, *changed.silent} and plays(changed, game, states):
                    found.append(f"{wording.version} is silent on {key}, which matters in {more}")
    silent = sorted(
        f"{at[1]} never tells {at[0]}" for at in tried.keys() - heard.keys() if len(at) == 2
    )
    missed = {f.name for f in dataclasses.fields(game)} - {at[0][0] for at in tried if len(at) == 2}
    missed -= {f.name for f in dataclasses.fields(game) if f.metadata["hidden"] is True}
    missed -= {drawn for room, drawn in DRAWN if room == name}
    missed -= {
        f.name
        for f in dataclasses.fields(game)
        if f.name == "players" and (only(f) or name in BY_TABLE)
    }
    return count, found + silent + [f"nothing was tried for {name}" for name in sorted(missed)]


def only(parameter):
    """Tell whether a parameter has a single value."""
    return parameter.metadata["low"] == parameter.metadata["high"] is not None


def pays(changed, game, states):
    """Tell whether the same moves, some of them missing, are paid otherwise or end otherwise."""
    rng = np.random.default_rng(2)
    for state in states[:-1]:
        legal = legal_actions(game, state, rng)
        for moves in (legal, np.where(rng.random(game.players) < 0.5, MISSING, legal)):
            (_, paid), (_, due) = game.step(state, moves), changed.step(state, moves)
            if not np.array_equal(paid.rewards, due.rewards, equal_nan=True):
                return True
            if not np.array_equal(paid.finished, due.finished):
                return True
    return False


def silences(name):
    """Check that what is paid by is told, or is named beside the game's claims and scores."""
    found, count = set(), 0
    tried = Counter()

    def enough(f, change, game):
        return told(f, game) or (size is QUICK and tried[f.name, change] > 2)

    for f, change, more, game, changed, states in changes(name, enough):
        tried[f.name, change] += 1
        count += 1
        if pays(changed, game, states) and f.name not in {*game.silent, *changed.silent}:
            found.add(f"nobody is told {f.name}, which pays in {more}")
    for f in dataclasses.fields(game_class(name)):
        if f.metadata["stakes"] and not f.metadata["hidden"]:
            found.add(f"{f.name} is told, and needs no stakes")
    for more in settings(name):
        game = rules(name, **more)
        found |= {f"nobody names {one}" for one in game.silent if one not in shown(game)}
    return count, sorted(found)


FICTIONS = "predict|foresee|no telling|uncertain|perfectly rational|too high|too low|above or below"


def fictions(name):
    found, count = set(), 0
    for more in settings(name):
        game = rules(name, **more)
        for wording in prompts(name):
            count += 1
            text = "\n".join(wording.rules(game, seat) for seat in range(game.players)[:2])
            if re.search(FICTIONS, text, re.IGNORECASE) and not game.fictions:
                found.add(f"{wording.version} tells a fiction in {more}: {text}")
            found |= {f"nobody says: {one}" for one in game.fictions if one not in shown(game)}
    return count, sorted(found)


def shown(game):
    return " ".join(caveats(game))


def altered(array, place):
    value = array[place] if array.ndim else array[()]
    step = 1 if array.dtype.kind == "b" else max(1, abs(value) // 50)  # numbers are float32
    others = [not value] if array.dtype.kind == "b" else [value + step, value - step]
    for other in others:
        changed = np.array(array)
        changed[place] = other
        yield changed if array.ndim else changed[()]


def auctioned(game, state):
    order, item = state.order.tolist(), min(int(state.item), len(state.order) - 1)
    spent = game.spent(state)
    return (
        sorted(order) == list(range(len(order)))
        and not (spent < 0).any()
        and not (spent[state.won == 0] != 0).any()
        and not (state.profit[state.won == 0] != 0).any()
        and (state.withdrawn == (state.last_reply == -1)).all()
        and (game.values == "private" or (state.values == state.values[0]).all())
        and (state.last_reply >= -2).all()
        and state.starts[item] == game.item_at(state, item).start
        and (state.discounts > 0 or state.starts[item] == state.start)
    )


def evacuated(game, state):
    inside = state.cell != 0
    return (
        state.cell.min() >= 0
        and state.cell.max() < game.room.cells
        and game.room.free[state.cell[inside]].all()
        and len({*state.cell[inside].tolist()}) == inside.sum()
        and ((state.status < 2) == inside).all()
        and (state.target < len(game.room.exits)).all()
        and (state.target >= -1).all()
        and (state.target[inside] >= state.phase - 1).all()
        and state.came.min() >= 0
        and (game.room.free[state.came] | (state.came == 0)).all()
        and ((state.group >= 1) & (state.group <= 4)).all()
        and (state.chosen >= 0).all()
        and state.phase in (0, 1)
    )


# What fits together in a state; other states are none that could be told of.
def priced(game, state):
    """Tell whether a firm's windows hold nothing from before the first round or block."""
    rounds, blocks = (max(game.window - n, 0) for n in (state.round, state.round // game.window))
    begun = {"past": rounds, "mean": blocks}
    return not any(a[: begun[k[:4]]].any() for k, a in state.arrays().items() if k[:4] in begun)


POSSIBLE = {
    "bertrand_competition": priced,
    "battle_royale": lambda game, state: not (state.hit & (state.target < 0)).any(),
    "beauty_contest": lambda game, state: (
        state.limit % game.unit == 0 if game.max_draw else state.limit == game.bounds()[1]
    ),
    "emergency_evacuation": evacuated,
    "english_auction": auctioned,
    "water_allocation": lambda game, state: (state.living == (state.hp > 0)).all(),
}


def possible(game, state):
    fits = POSSIBLE.get(game.name, lambda game, state: True)
    alive = not (game.asked(state) & ~game.alive(state)).any()
    return alive and 0 <= state.round < getattr(game, "rounds", np.inf) and fits(game, state)


def unborn(array, first):
    """Tell whether nothing of a state has happened yet that could have been another way."""
    array, first = np.asarray(array), np.asarray(first)
    return array.shape == first.shape and not (array != first).any() and not (first > 0).any()


def heard(game, state):
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
                if (name, field) in WORDS_ALONE:
                    continue
                if field not in drawn and unborn(array, states[0].arrays()[field]):
                    continue
                places = list(np.ndindex(np.shape(array)))
                for place in places[:: -(-len(places) // size.places)]:
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
                                    what = f"{version}: only {which} follow {field} in {more}"
                                    found[what] = f"{place} -> {value}: {a} / {b}"
    return count, [f"{what}: {how}" for what, how in sorted(found.items())]


def digits(text):
    """Return the numbers in a text, without their signs; player_3 holds none."""
    return re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])", text)


LITERAL = {"0", "1", "2", "3"}  # nobody gets 0; one dry day costs 1, two 2, three 3; one alone


def literal(source):
    def strings(code):
        return " ".join(re.findall(r"\"[^\"]*\"|'[^']*'", code[0]))

    return set(digits(re.sub(r"\{[{%#].*?[}%#]\}", strings, source, flags=re.DOTALL)))


def written(value):
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, str):
        return set(digits(value))
    if isinstance(value, dict):
        return set().union(*map(written, value.values()))
    if isinstance(value, tuple | list):
        return set().union(*map(written, value))
    forms = [exact(value), *(number(value, decimals) for decimals in (2, 6)), f"{float(value):.2f}"]
    if isinstance(value, Fraction):
        forms += [percent(value), str(value)]
    return {n for form in forms for n in digits(form)}


def sums(source, values):
    """Return what a template adds up, such as ``{{ shots + 1 }}``."""

    def value(name):
        return int(name) if name.isdigit() else values[name]

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
            count += len(own)
            for n in own - LITERAL - ({"100"} if name == "beauty_contest" else set()):
                found.add(f"{wording.version} holds the number {n} itself")
            for state in played(game):
                for view in views(game, state):
                    terms = game.terms() | {"seat": view.seat}
                    known = own | written(terms) | written(view.told)
                    known |= written(sums(source, terms | view.told))
                    limits = [
                        x / game.unit if game.unit > 1 else x
                        for x in (*view.amounts, view.low, view.high)
                    ]
                    form = view.question.form() if view.question else ""
                    ends = written([float(x) for x in limits]) | written(
                        list(range(1, game.players + 1))
                    )
                    for text in (wording.rules(game, view.seat), *said(wording, view)):
                        count += len(digits(text))
                        for n in set(digits(text.replace(form, "") if form else text)) - known:
                            found.add(f"{wording.version}: nobody knows {n} in {more}: {text}")
                    for n in set(digits(form)) - known - ends:
                        found.add(
                            f"{wording.version}: nobody knows {n} in the form {form} in {more}"
                        )
    return count, sorted(found)


# What of a state each seat may know, by game and field; of other fields the facts decide.
SECRETS = {
    ("battle_royale", "rolls"): lambda game, state, place, seat: False,
    ("budget_auction", "valuations"): lambda game, state, place, seat: (
        place == (seat,) or (game.shown == "bids_and_private" and state.round > 0)
    ),
    ("english_auction", "lots"): lambda game, state, place, seat: False,
    ("english_auction", "estimates"): lambda game, state, place, seat: place[0] == seat,
    ("english_auction", "first"): lambda game, state, place, seat: False,
    ("english_auction", "values"): lambda game, state, place, seat: (
        place[1] == state.item - 1
        and game.announces
        and (state.sold_to[place[1]] >= 0 or game.announces_unsold)
    ),
    ("public_goods", "endowment"): lambda game, state, place, seat: place == (seat,),
    ("sealed_bid_auction", "lots"): lambda game, state, place, seat: False,
    ("sealed_bid_auction", "valuations"): lambda game, state, place, seat: (
        place[0] <= state.round and place[1] == seat
    ),
    ("water_allocation", "supplies"): lambda game, state, place, seat: place[0] <= state.round,
}


def secrets(name):
    """Check that what a seat may not know changes neither its words nor its numbers."""
    found, count = set(), 0
    for more in settings(name):
        game = rules(name, **more)
        for state in played(game):
            before = heard(game, state)
            for field, array in state.arrays().items():
                may = SECRETS.get((name, field))
                places = list(np.ndindex(np.shape(array))) if may else []
                for place in places[:: -(-len(places) // size.places**2) or 1]:
                    value = next(altered(np.asarray(array), place))
                    after = heard(game, state.replace(**{field: value}))
                    for seat in before.keys() & after.keys():
                        (row, words), (new, told) = before[seat], after[seat]
                        if not may(game, state, place, seat):
                            count += 1
                            if words != told or not np.array_equal(row, new):
                                found.add(f"{field}{place} is heard by seat {seat} in {more}")
        for f in dataclasses.fields(game):
            if not f.metadata["each"] or game.players == 1:
                continue
            low, *_ = f.metadata["each"]
            values = list(game.of_each(f.name))
            words = [word for word in f.metadata["each"] if word != values[-1]]
            other = words[0] if isinstance(low, str) else values[-1] * 2 or 20
            changed = rules(name, **(more | {f.name: (*values[:-1], other)}))
            one, two = (g.reset(3) for g in (game, changed))
            before, after = heard(game, one), heard(changed, two)
            for seat in set(range(game.players - 1)) & before.keys() & after.keys():
                (row, words), (new, told) = before[seat], after[seat]
                rule = [[w.rules(g, seat) for w in prompts(name)] for g in (game, changed)]
                count += 1
                if words != told or rule[0] != rule[1]:
                    found.add(f"seat {seat} reads of another's {f.name} in {more}")
                if not np.array_equal(row, new):
                    found.add(f"seat {seat} has numbers of another's {f.name} in {more}")
    return count, sorted(found)


OTHERS = r"\b(?:goals?|aim(?! one)|want(?! most)|wish|try to|maximi[sz]e|objective)\b"


def stakes(name):
    """Check that the goal is one sentence in all wordings, and that there is no other goal."""
    found, count = set(), 0
    for more in settings(name):
        game = rules(name, **more)
        for wording in prompts(name):
            for state in played(game):
                for view in views(game, state):
                    if view.question is None:
                        continue
                    count += 1
                    goal, request = wording.goal(game, view.seat), wording.request(view)
                    text = f"{wording.rules(game, view.seat)}\n{wording.report(view)}\n{request}"
                    if request.count(goal) != 1:
                        found.add(f"{wording.version} asks without the goal: {request}")
                    for other in re.findall(OTHERS, text.replace(goal, ""), re.IGNORECASE):
                        found.add(f"{wording.version} has another goal, {other!r}, in {more}")
    return count, sorted(found)


# -- what the goals name, counted from what happened, with exact fractions -------------------------
def pots(game, steps):
    """Yield for each round what everybody has in a game of public goods when it begins and ends."""
    for step in steps:
        given = [int(c) for c in step.record["actions"]]
        share = game.ratio * sum(given) / game.players
        have = [Fraction(float(e)) for e in step.record["endowment"]]
        yield have, [e - c + share for e, c in zip(have, given, strict=True)]


def held(game, steps):
    have = next(pots(game, steps))[0]
    for step in steps:  # what is left over is what there is to begin with
        given = [int(c) for c in step.record["actions"]]
        share = game.ratio * sum(given) / game.players
        have = [h - c + share for h, c in zip(have, given, strict=True)]
    return have


def summed(each):
    return lambda game, steps: [sum(column) for column in zip(*each(game, steps), strict=True)]


def coins(game, steps):
    for bids in (step.record["actions"].tolist() for step in steps):
        yield [bid * (sum(bids) <= game.golds) for bid in bids]


def nights(game, steps):
    for went in (step.record["actions"].tolist() for step in steps):
        full = sum(went) > game.ratio * game.players
        yield [(game.min if full else game.max) if go else game.home for go in went]


def dinners(game, steps):
    for costly in (step.record["actions"].tolist() for step in steps):
        prices = [game.costly_price if c else game.cheap_price for c in costly]
        tastes = [game.costly_utility if c else game.cheap_utility for c in costly]
        yield [taste - Fraction(sum(prices)) / game.players for taste in tastes]


def prizes(game, steps):
    for step in steps:
        legal = [not bad for bad in step.broke]
        chosen = [Fraction(int(x), game.unit) for x in step.record["actions"]]
        counted = [x for x, ok in zip(chosen, legal, strict=True) if ok]
        if not counted or (game.rule_breaker == "void_round" and not all(legal)):
            won = []
        else:
            target = game.ratio * sum(counted) / len(counted)
            best = min(abs(x - target) for x in counted)
            near = [i for i, x in enumerate(chosen) if legal[i] and abs(x - target) == best]
            first = game.tie_rule == "first_number"
            won = [i for i in near if not first or chosen[i] == chosen[near[0]]]
        k = len(won)
        prize = {"split": Fraction(game.prize) / max(k, 1), "exclusive": game.prize * (k == 1)}
        prize = (prize | {"amplified": k * game.prize}).get(game.prize_rule, game.prize)
        yield [(prize if i in won else 0) - game.foul_fee * (not ok) for i, ok in enumerate(legal)]


def markets(game, steps):
    for step in steps:
        prices, sold = step.record["prices"].tolist(), step.record["demands"].tolist()
        margins = [Fraction(p, game.unit) - c for p, c in zip(prices, game.costs, strict=True)]
        yield [margin * Fraction(units) for margin, units in zip(margins, sold, strict=True)]


def sealed(game, steps):
    for step in steps:
        bids, values = step.record["actions"].tolist(), step.record["valuations"].tolist()
        winner, ranked = int(step.record["winner"]), sorted(bids)
        assert bids[winner] == max(bids)
        price = ranked[-1 if game.price == "first" else -2]
        yield [(v - price) * (i == winner) for i, v in enumerate(values)]


def assets(game, steps):
    for step in steps:
        values, legal = step.record["valuations"].tolist(), [not bad for bad in step.broke]
        bids = [
            b if ok else -1 for b, ok in zip(step.record["actions"].tolist(), legal, strict=True)
        ]
        winner, ranked = bids.index(max(bids)), sorted(bids)
        price = max(0, ranked[-1 if game.price == "first" else -2])
        sold = sum(legal) >= game.min_valid_bids
        yield [
            Fraction(v - price, game.unit)
            if sold and i == winner
            else Fraction(-game.entrance_fee * (not legal[i]))
            for i, v in enumerate(values)
        ]


def auction(what):
    """Return what each bidder gets of the items it bought, in the last state."""

    def count(game, steps):
        state = steps[-1].after
        lots = list(enumerate(zip(state.sold_to.tolist(), state.price.tolist(), strict=True)))
        return [
            sum(what(int(state.values[seat, k]), price) for k, (to, price) in lots if to == seat)
            for seat in range(game.players)
        ]

    return count


def survivors(game, steps):
    return steps[-1].after.living.tolist()


def alone(game, steps):
    living = survivors(game, steps)
    return [x and sum(living) == 1 for x in living]


def shares(game, steps):
    living = survivors(game, steps)
    return [Fraction(x, sum(living)) for x in living]


def chests(game, steps):
    last = steps[-1].record
    out = sum(not step.record["passed"] for step in steps if step.record["phase"])
    alone = [0] * (game.players - 1) + [game.gold]
    plan = last["plan"].tolist() if last["passed"] else alone
    return out, plan


def early(game, steps):
    """Return how many of all rounds were left when each had got out, as shares."""
    rounds = steps[-1].after.escape_round.tolist()
    return [Fraction(game.max_rounds + 1 - t, game.max_rounds) if t else 0 for t in rounds]


def points(game, steps):
    out, plan = chests(game, steps)

    def score(coins):
        return game.gold + 1 + coins + Fraction(out, game.players)

    return [score(coins) if seat >= out else 0 for seat, coins in enumerate(plan)]


def claims(game, steps):
    for one, other in (step.record["actions"].tolist() for step in steps):
        sign = (other > one) - (other < one)
        yield [min(one, other) + sign * game.reward, min(one, other) - sign * game.reward]


def cells(game, steps):
    for step in steps:
        paid = game.table.of(step.record["played"])
        yield [game.table.value(units) for units in paid]


def requests(game, steps):
    for one, other in (step.record["actions"].tolist() for step in steps):
        yield [one + game.bonus * (one + 1 == other), other + game.bonus * (other + 1 == one)]


def bargained(game, steps):
    """Return what the last step settled: an accepted offer, what leaving brings, or a breakdown."""
    record = steps[-1].record
    proposer, answer = int(record["proposer"]), int(record["answer"])
    shares = [int(record["offer"])] * 2
    shares[proposer] = game.pie - shares[proposer]
    if answer == 0:
        return [Fraction(amount) for amount in game.breakdown]
    amounts = shares if answer == 1 else game.outside
    worth = [factor ** (int(record["period"]) - 1) for factor in game.discount]
    return [amount * w for amount, w in zip(amounts, worth, strict=True)]


def dealt(game, steps):
    """Return what the accepted offer, or two claims that are all there is, bring to both."""
    record = steps[-1].record
    counts, *values = game.table[int(record["scenario"])].tolist()

    def digits(code):
        return [code // 5**k % 5 for k in reversed(range(len(counts)))]

    if game.at_once:
        parts = [digits(int(code)) for code in steps[-1].after.takes.tolist()]
    else:
        accepted = [int(a) == 5 ** len(counts) for a in record["actions"].tolist()]
        if not any(accepted):
            return [Fraction(0)] * 2
        offer = digits(int(record["standing"]))
        rest = [n - k for n, k in zip(counts, offer, strict=True)]
        parts = [rest if accepts else offer for accepts in accepted]
    if [sum(pieces) for pieces in zip(*parts, strict=True)] != counts:
        return [Fraction(0)] * 2
    factor = game.discount ** max(0, len(steps) - 2)
    pairs = zip(values, parts, strict=True)
    return [sum(v * k for v, k in zip(row, part, strict=True)) * factor for row, part in pairs]


def entrusted(game, steps):
    first, second = game.endowment
    for record in (step.record for step in steps if step.record["returning"]):
        sent, returned = int(record["sent"]), int(record["returned"])
        pay = [first - sent + returned, second + game.multiplier * sent - returned]
        yield pay[::-1] if record["investor"] else pay


def efforts(game, steps):
    for chosen in (step.record["actions"].tolist() for step in steps):
        yield [game.benefit * min(chosen) - game.cost * own + game.base for own in chosen]


TOTAL = "Your goal is the highest total of {} over all {}."
ORDER = "Your goals, the most important first: {}, others overboard."
NAMED = {
    "bargaining": {"Your goal is the highest total of points over the game.": bargained},
    "battle_royale": {
        "Your goal is to be the last player left.": alone,
        "Your goal is the largest part of the win: the fewer players are left with you at the end, "
        "the larger it is.": shares,
    },
    "beauty_contest": {
        TOTAL.format("prizes", "rounds"): summed(prizes),
        TOTAL.format("prizes minus fees", "rounds"): summed(prizes),
    },
    "bertrand_competition": {TOTAL.format("profits", "rounds"): summed(markets)},
    "budget_auction": {TOTAL.format("gains in assets", "rounds"): summed(assets)},
    "deal_or_no_deal": {"Your goal is the highest total of points over the game.": dealt},
    "diners_dilemma": {TOTAL.format("points", "rounds"): summed(dinners)},
    "divide_dollar": {TOTAL.format("coins", "rounds"): summed(coins)},
    "el_farol_bar": {TOTAL.format("points", "rounds"): summed(nights)},
    "emergency_evacuation": {"Your goal is to be out of the room as early as possible.": early},
    "english_auction": {
        TOTAL.format("profits", "items"): auction(lambda value, price: value - price),
        "Your goal is to win as many items as possible.": auction(lambda value, price: 1),
    },
    "matrix_game": {TOTAL.format("points", "rounds"): summed(cells)},
    "minimum_effort": {TOTAL.format("points", "rounds"): summed(efforts)},
    "money_request": {TOTAL.format("points", "rounds"): summed(requests)},
    "pirate_game": {
        ORDER.format("coins, survival"): lambda game, steps: chests(game, steps)[1],
        ORDER.format("survival, coins"): points,
    },
    "public_goods": {
        TOTAL.format("tokens", "rounds"): summed(lambda g, s: (end for _, end in pots(g, s))),
        "Your goal is to hold as many tokens as possible at the end.": held,
    },
    "sealed_bid_auction": {TOTAL.format("profits", "rounds"): summed(sealed)},
    "trust_game": {TOTAL.format("points", "rounds"): summed(entrusted)},
    "travelers_dilemma": {TOTAL.format("points", "rounds"): summed(claims)},
    "water_allocation": {"Your goal is to be alive after the last day.": survivors},
}
PAID = by_game("PAID", [])


class Done(NamedTuple):
    record: dict
    broke: np.ndarray
    after: object


def goals(name):
    """Check that in whole games rewards add up to the quantity that everybody's goal names."""
    found, count = set(), 0
    for more in settings(name) + PAID[name] if name in NAMED else ():
        game = rules(name, **more)
        for seed in range(size.seeds):
            rng, state, steps, paid = np.random.default_rng(seed), game.reset(seed), [], 0
            while not state.over:
                moves = legal_actions(game, state, rng)
                if seed % 2:  # now and then a reply is missing
                    moves = np.where(rng.random(game.players) < 0.1, MISSING, moves)
                state, outcome = game.step(state, moves)
                steps.append(Done(outcome.record, outcome.broke, state))
                paid = paid + outcome.rewards
            for seat in range(game.players):
                count += 1
                goal = prompts(name)[0].goal(game, seat)
                due = NAMED[name][goal](game, steps)[seat]
                if abs(Fraction(float(paid[seat])) - due) > Fraction(1, 10**6):
                    found.add(f"{goal} It is paid {paid[seat]}, not {due}, in {more}")
    return count, sorted(found)


ONES = by_game("ONES", [])
THINGS = "accepts bidders coins days decimals items members players points residents rounds shots "
THINGS += "times tokens units"


def nouns(name):
    """Check that nouns agree with their numbers, and that shares are written as such."""
    found, count, many = set(), 0, rf"(?<![\w.$/-])1 (?:gold )?(?:{'|'.join(THINGS.split())})\b"
    for more in ONES[name]:
        game = rules(name, **more)
        for wording in prompts(name):
            for state in played(game, most=8):
                for view in views(game, state):
                    text = wording.text(view)
                    count += 1
                    for bad in re.findall(rf"{many}|\d/\d+ ?%|\d+e-?\d+|\d\.\d{{7,}}", text):
                        found.add(f"{wording.version} writes {bad!r} in {more}: {text}")
    return count, sorted(found)


class Spy(ScriptedClient):
    """Answers all there is to ask, and keeps it."""

    def __init__(self):
        super().__init__(self.reply)
        self.seen = []

    def reply(self, request):
        self.seen.append(request)
        question = request.question
        if isinstance(question, Bid):
            return question.reply(question.floor if question.floor < 1300 else -1)
        if hasattr(question, "truth"):
            return question.reply({"summary": "So it is."} | dict(question.truth))
        if hasattr(question, "items"):
            return question.reply(dict.fromkeys(question.items, 3))
        if hasattr(question, "sample"):
            return question.reply(sampled(question, np.random.default_rng(request.seed)))
        said = ["Wait."] if question.key == "lessons" else "I do as they do."
        return json.dumps({question.key: said})


@each_row("objective", ["profit", "items"])
@each_row("strategy", ["none", "static", "adaptive"])
def test_a_planning_bidder_has_one_goal(strategy, objective):
    """Plans, moves, beliefs and lessons state the same goal, and only numbers that are known."""
    game = rules("english_auction", players=2, items="items_3", objective=objective)
    spy, wording = Spy(), prompts(game.name)[0]
    policy = PlanningPolicy(spy, Planning(strategy=strategy, learning=True), mind_of)
    episode = play(game, [policy, make_player("rule:2")], seed=3)
    source = (rooms.wordings(game.name) / "planning.j2").read_text("utf-8")
    known, state = literal(source) | written(game.terms()), game.reset(3)
    for step in episode.steps:
        told = game.told(state, 0)
        known |= written(told) | written(sums(source, told)) | written([int(state.profit.max())])
        known |= written([*state.profit.tolist(), len(told["ahead"]) + 1])
        state, _ = game.step(state, step.outcome.record["actions"])
    known |= written(game.told(state, 0))
    kinds = {request.kind for request in spy.seen}
    assert kinds >= {"move", "belief", "learn"} | ({"plan"} if strategy != "none" else set())
    for request in spy.seen:
        asked = request.messages[-1]["content"]
        assert asked.count(wording.goal(game, 0)) == 1, asked
        assert not re.search(OTHERS, asked.replace(wording.goal(game, 0), ""), re.IGNORECASE)
        said = asked.replace(request.question.form(), "")
        assert not set(digits(said)) - known - written(dict(getattr(request.question, "truth", {})))


CHECKS = (parameters, silences, fictions, facts, numbers, secrets, stakes, goals, nouns)


@pytest.mark.parametrize("name", NAMES)
@each_row("check", CHECKS, ids=lambda check: check.__name__)
def test_what_is_said_is_so(check, name):
    count, found = check(name)
    assert not found, "\n".join(found[:5])
    said_of = {secrets: [game for game, _ in SECRETS], goals: NAMED}.get(check, NAMES)
    assert count or name not in said_of or (check is nouns and not ONES[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_what_pays_is_told_or_named_in_all_presets(name, night, monkeypatch, record_property):
    monkeypatch.setattr(sys.modules[__name__], "size", WHOLE)
    for check in night((silences,), (silences, parameters)):
        count, found = check(name)
        record_property(check.__name__, count)
        assert not found, "\n".join(found[:5])


if __name__ == "__main__":
    size = WHOLE
    for check in CHECKS:
        tried = {name: check(name) for name in NAMES}
        counts = {name: count for name, (count, _) in tried.items()}
        print(f"{check.__name__}: {sum(counts.values())} of {counts}")
        for _, found in tried.values():
            print("".join(f"{line}\n" for line in found), end="")
