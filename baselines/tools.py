"""Tools that a language model can be given by name: calculators.

Adding a `Tool` to `TOOLS` adds one; settings name them, see `equipped`.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.baselines import models
from llm_games.baselines.games.beauty_contest import theory as beauty_contest
from llm_games.baselines.games.divide_dollar import theory as divide_dollar
from llm_games.baselines.games.el_farol_bar import theory as el_farol_bar
from llm_games.baselines.games.sealed_bid_auction import theory as sealed_bid_auction
from llm_games.baselines.policies import best_response, rational
from llm_games.baselines.policies.base import Rule, decision
from llm_games.errors import BadParameter, unknown
from llm_games.questions import Action, BadReply, Question
from llm_games.rulebook import Array
from llm_games.view import View
from llm_games.wrappers.tools import BadCall, Parameter, Tool

DRAWS = 100
"""How often a rule that plays by chance is drawn, to tell its chances."""
MIXED = ("el_farol_bar", "battle_royale", "sealed_bid_auction")
"""Games in which the rules may play by chance."""
LONGEST = 200
"""Characters of an expression."""


# -- what a rule player would do ------------------------------------------------------------------


def _best_response(view: View, arguments: Mapping[str, Any]) -> str:
    game = view.game.name
    if "others" not in arguments:
        said = _said(view, best_response.RULES)
        return f"the best response, {_ASSUMED[game]}: {said}"
    if game not in _REPLIES:
        raise BadCall(f"no best response to given actions is defined for {game}; leave out others")
    others = _others(view, arguments["others"])
    reply = int(np.clip(_REPLIES[game](view, others), view.low, view.high))
    return f"the best response to these actions: {_written(view, reply)}"


def _equilibrium(view: View, arguments: Mapping[str, Any]) -> str:
    return f"what a player does who expects everybody to be rational: {_said(view, rational.RULES)}"


_FIRST = "while that is not known, if all are rational"
_ASSUMED = {
    "beauty_contest": f"if the others name the same sum again ({_FIRST})",
    "el_farol_bar": f"if as many others go again ({_FIRST})",
    "divide_dollar": f"if the others bid the same sum again ({_FIRST})",
    "public_goods": "whatever the others do",
    "diners_dilemma": "whatever the others do",
    "sealed_bid_auction": f"if the highest rival bid comes again ({_FIRST})",
    "battle_royale": "if the others always shoot at the strongest",
    "pirate_game": "if the others are rational",
    "water_allocation": "if the others spread their money evenly over the days they can survive",
    "english_auction": "if the highest bid was the others' last",
}
"""What `best_response` takes the others to do, by game; see the player of that name."""


def _said(view: View, rules: Mapping[str, Rule]) -> str:
    """Say what a rule does, with the chances of each action if it plays by chance."""
    if view.game.name not in rules:
        raise BadCall(f"it is not defined for {view.game.name}; it is for {', '.join(rules)}")
    rng, rule = np.random.default_rng(0), rules[view.game.name]
    drawn = (decision(view, rule(view, rng)).action for _ in range(_draws(view)))
    counts = Counter(_written(view, action) for action in drawn)
    if len(counts) == 1:
        return next(iter(counts))
    likely = (f"{action} in {n / DRAWS:.0%}" for action, n in counts.most_common(5))
    return f"by chance: {', '.join(likely)} of {DRAWS} draws"


def _draws(view: View) -> int:
    return DRAWS if view.game.name in MIXED else 1


def _written(view: View, action: Action) -> str:
    """Write an action as in an answer, without the quotes and braces."""
    question = _asked(view)
    return f"{question.key} {json.dumps(question.value_of(action))}".replace('"', "")


def _asked(view: View) -> Question:
    assert view.question is not None, "tools are for seats that are asked"
    return view.question


# -- replies to actions that the caller gives -----------------------------------------------------


def _others(view: View, values: list[Any]) -> Array:
    """Return the others' actions, in the order of seats."""
    if len(values) != view.game.players - 1:
        raise BadCall(
            f"others must be {view.game.players - 1} actions, one for each other player, "
            f"got {len(values)}"
        )
    try:
        return np.array([_asked(view).read(value) for value in values], np.int64)
    except BadReply as bad:
        raise BadCall(f"others: {bad}") from None


def _with_own(view: View, others: Array) -> Array:
    return np.insert(others, view.seat, view.low)


def _guess(view: View, others: Array) -> int:
    contest = dataclasses.replace(
        models.contest(view.game),  # type: ignore[arg-type]
        low=int(view.low),
        high=int(view.high),
    )
    return int(beauty_contest.best_response(_with_own(view, others), contest)[0][view.seat])


def _go(view: View, others: Array) -> int:
    bar = models.bar(view.game)  # type: ignore[arg-type]
    return int(el_farol_bar.best_response(_with_own(view, others), bar)[view.seat])


def _share(view: View, others: Array) -> int:
    game: Any = view.game
    return int(divide_dollar.best_response(_with_own(view, others), game.golds)[view.seat])


def _bid(view: View, others: Array) -> int:
    game: Any = view.game
    values = np.full(game.players, np.rint(float(view.number("valuation")) * game.unit), np.int64)
    bids = np.insert(others, view.seat, 0)
    return int(sealed_bid_auction.best_response(values, bids, game.price)[view.seat])


def _dominant(view: View, others: Array) -> int:
    action = best_response.RULES[view.game.name](view, np.random.default_rng(0))
    return int(np.asarray(action))


_REPLIES: dict[str, Callable[[View, Array], int]] = {
    "beauty_contest": _guess,
    "el_farol_bar": _go,
    "divide_dollar": _share,
    "sealed_bid_auction": _bid,
    "public_goods": _dominant,
    "diners_dilemma": _dominant,
}


# -- arithmetic -----------------------------------------------------------------------------------

_SIGNS = re.compile(r"[0-9.+\-*/() ]+")
_OPERATORS: dict[type, Callable[..., Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def _calculate(view: View, arguments: Mapping[str, Any]) -> str:
    text: str = arguments["expression"].strip()
    if len(text) > LONGEST or not _SIGNS.fullmatch(text):
        raise BadCall(f"an expression is up to {LONGEST} digits, points, spaces and + - * / ( )")
    try:
        value = _value(ast.parse(text, mode="eval").body, text)
    except ZeroDivisionError:
        raise BadCall("it divides by zero") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadCall("it is no expression of numbers, + - * / and parentheses") from None
    return f"{text} = {_number(value)}"


def _value(node: ast.expr, text: str) -> Fraction:
    """Return the exact value; numbers are read from the text, so that 0.1 is a tenth.

    Raises:
        ValueError: there is something else than arithmetic in it.
    """
    if isinstance(node, ast.Constant):
        return Fraction(ast.get_source_segment(text, node) or "")
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, text), _value(node.right, text))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.operand, text))
    raise ValueError


def _number(value: Fraction) -> str:
    """Write a whole number or a short decimal exactly, anything else as a ratio and about."""
    if value.denominator == 1:
        return str(value.numerator)
    for places in range(1, 13):
        if (value * 10**places).denominator == 1:
            digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}}"
            return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    return f"{value.numerator}/{value.denominator}, about {float(value):.6g}"


# -- by name --------------------------------------------------------------------------------------

_ACTIONS = Parameter(
    "array",
    "what each other player does, in the order of the players and as in an answer; if left out, "
    "what can be expected of them",
    optional=True,
)
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "best_response",
            "works out your best action against what the others do",
            _best_response,
            {"others": _ACTIONS},
        ),
        Tool("equilibrium", "tells what a fully rational player would do now", _equilibrium),
        Tool(
            "calculator",
            "works out an expression exactly",
            _calculate,
            {"expression": Parameter("string", "numbers with + - * / and parentheses")},
        ),
    )
}
"""All tools by name."""
ALWAYS = "always"


def tool_named(name: str) -> Tool:
    """Return a tool by its name, or ``name:always``: told before every request, not called.

    Raises:
        UnknownName: there is no such tool; names the nearest.
        BadParameter: it cannot always be told.
    """
    kind, colon, how = name.partition(":")
    if kind not in TOOLS:
        raise unknown("tool", name, TOOLS)
    if not colon:
        return TOOLS[kind]
    if how != ALWAYS:
        raise BadParameter(f"a tool is {kind} or {kind}:{ALWAYS}, got {name!r}")
    return dataclasses.replace(TOOLS[kind], always=True)


def equipped(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of `LLMPolicy` with tools in place of their names.

    Raises:
        UnknownName, BadParameter: see `tool_named`.
    """
    tools: Iterable[Tool | str] = settings.get("tools", ())
    found = tuple(tool_named(tool) if isinstance(tool, str) else tool for tool in tools)
    return {**settings, "tools": found} if "tools" in settings else dict(settings)
