"""Tools that a language model can call, by name: a `Tool` in `TOOLS` adds one, see `equipped`."""

from __future__ import annotations

import ast
import dataclasses
import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.baselines.players import games_of, handed, rule_of
from llm_games.baselines.regret import has, rational
from llm_games.baselines.rules import decision
from llm_games.errors import BadParameter, unknown
from llm_games.import_names import is_named, named
from llm_games.noise import Noise
from llm_games.questions import Action, BadReply, Question
from llm_games.view import View
from llm_games.wrappers.tools import BadCall, Parameter, Tool

DRAWS = 100  # of a rule that plays by chance, to tell its chances
LONGEST = 200  # characters of an expression


# -- what a rule player would do ------------------------------------------------------------------


def _best_response(view: View, arguments: Mapping[str, Any]) -> str:
    room = handed(view.game.name)
    if "others" not in arguments:
        return f"the best response, {room.assumed}: {_rule_text(view, 'best_response')}"
    name, others, answers = view.game.name, view.game.players - 1, arguments["others"]
    if room.reply_to is None:
        raise BadCall(f"no best response to given actions is defined for {name}; leave out others")
    if len(answers) != others:
        rule = f"others must be {others} actions, one for each other player"
        raise BadCall(f"{rule}, got {len(answers)}")
    question = _question(view)
    try:
        actions = np.array([question.read(value) for value in answers], np.int64)
    except BadReply as bad:
        raise BadCall(f"others: {bad}") from None
    reply = int(np.clip(room.reply_to(view, actions), view.low, view.high))
    return f"the best response to these actions: {_action_text(view, reply)}"


_KINDS = {
    "equilibrium": "what a player does who expects everybody to be rational",
    "best known": "what comes next to that of rational players, as far as is known",
    "heuristic": "no equilibrium is known here; by a rule of thumb",
}
"""How the tool introduces what the player ``rational`` does, by what it claims to be."""


def _equilibrium(view: View, arguments: Mapping[str, Any]) -> str:
    does = _rule_text(view, "rational")
    kind = rational(view.game).kind if has(view.game.name, "rational") else "heuristic"
    return f"{_KINDS[kind]}: {does}"


def _rule_text(view: View, kind: str) -> str:
    """Return a rule player's action in words, with the chances of each if it plays by chance."""
    game = view.game.name
    kind_and_rule = rule_of(kind, game)
    if kind_and_rule is None:
        raise BadCall(f"it is not defined for {game}; it is for {', '.join(games_of(kind))}")
    noise, draws = Noise(0), DRAWS if handed(game).mixed else 1
    drawn = (decision(view, kind_and_rule[1](view, noise.of(i))).action for i in range(draws))
    counts = Counter(_action_text(view, action) for action in drawn)
    if len(counts) == 1:
        return next(iter(counts))
    likely = (f"{action} in {n / DRAWS:.0%}" for action, n in counts.most_common(5))
    return f"by chance: {', '.join(likely)} of {DRAWS} draws"


def _action_text(view: View, action: Action) -> str:
    """Write an action as in an answer, without the quotes and braces."""
    question = _question(view)
    return f"{question.key} {json.dumps(question.value_of(action))}".replace('"', "")


def _question(view: View) -> Question:
    """Return the question of now, or once all have talked; `BadCall` if there is none."""
    if view.question is None:
        raise BadCall("it is about a move of your own, and you are not to move next")
    return view.question


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
    """Return the exact value; numbers are read from the text, so that 0.1 is a tenth."""
    if isinstance(node, ast.Constant):
        return Fraction(ast.get_source_segment(text, node) or "")
    if isinstance(node, ast.BinOp | ast.UnaryOp) and type(node.op) in _OPERATORS:
        parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.operand,)
        return _OPERATORS[type(node.op)](*(_value(part, text) for part in parts))
    raise ValueError("something else than arithmetic")


def _number(value: Fraction) -> str:
    """Write a whole number or a short decimal exactly, others as a ratio and a rounded decimal."""
    for places in range(13):
        scaled = value * 10**places
        if scaled.denominator == 1:
            return f"{Decimal(f'{scaled.numerator}E-{places}'):f}"
    return f"{value.numerator}/{value.denominator}, about {float(value):.6g}"


# -- by name --------------------------------------------------------------------------------------

_ACTIONS = Parameter(
    "array",
    "what each other player does, in the order of the players and as in an answer; if left out, "
    "what can be expected of them",
    optional=True,
)
_SUM = Parameter("string", "numbers with + - * / and parentheses")
_REPLY = "works out your best action against what the others do"
_PLAN = "tells what a fully rational player would do now, as far as is known"
_TOOLS = (
    Tool("best_response", _REPLY, _best_response, {"others": _ACTIONS}),
    Tool("equilibrium", _PLAN, _equilibrium),
    Tool("calculator", "works out an expression exactly", _calculate, {"expression": _SUM}),
)
TOOLS: dict[str, Tool] = {tool.name: tool for tool in _TOOLS}
SPEAK_AS_ASKED = frozenset(tool.run for tool in _TOOLS)
"""Those that name moves as the question does, also in other words."""


def tool_named(name: str) -> Tool:
    """Return a tool by its name, ``name:always`` or as a user's ``module:Name``, see `named`.

    Raises:
        UnknownName: there is no such tool; names the nearest.
        BadParameter: it is no `Tool`, or takes arguments and so cannot open requests.
    """
    kind, colon, how = name.partition(":")
    if kind in TOOLS and colon and how != "always":
        raise BadParameter(f"a tool is {kind} or {kind}:always, got {name!r}")
    bare = name.removesuffix(":always")
    if bare not in TOOLS and not is_named(bare):
        raise unknown("tool (or module:Name)", name, TOOLS)
    tool = TOOLS[bare] if bare in TOOLS else named(bare, "tool")
    if not isinstance(tool, Tool):
        raise BadParameter(f"{bare} is no Tool, but {tool!r}: NAME = Tool(name, summary, function)")
    return tool if bare == name else dataclasses.replace(tool, always=True)


def equipped(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of `LLMPolicy` in which tools replace their names, see `tool_named`."""
    if "tools" not in settings:
        return dict(settings)
    tools = (tool_named(tool) if isinstance(tool, str) else tool for tool in settings["tools"])
    return {**settings, "tools": tuple(tools)}
