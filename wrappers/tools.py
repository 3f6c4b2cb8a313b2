"""Tools: what a language model may call, or is always told, before it decides.

A call is a JSON object in place of the answer: ``{"tool": "calculator", "arguments": {…}}``. Calls
in plain text work with every server and local model, and a recorded run plays them again word for
word; function calling, as some servers have it, works with these alone and differs between them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import Any, cast

from llm_games.errors import BadParameter, LLMGamesError, unknown
from llm_games.questions import BadReply, Question
from llm_games.schemas import object_of
from llm_games.view import View
from llm_games.words import Prompts, quoted
from llm_games.wrappers.clients.base import Message

LONGEST = 2000
"""Characters of a call that are kept in the chat."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")

KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float, Decimal),
    "integer": (int,),
    "array": (list,),
}
"""Kinds of arguments by their names in a JSON schema; fractions in a reply are Decimal."""


class BadCall(LLMGamesError):
    """A tool cannot do what it was called for; the message is told to the one who called.

    Attributes:
        kind: why, in a word, for counting.
    """

    def __init__(self, message: str, kind: str = "bad_call") -> None:
        super().__init__(message)
        self.kind = kind


class ToolFailed(LLMGamesError):
    """There is an error in a tool itself; names the tool."""


@dataclass(frozen=True)
class Parameter:
    """An argument of a tool: one of `KINDS`, what it means in a few words, whether it may lack."""

    kind: str
    meaning: str
    optional: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of argument", self.kind, KINDS)

    def takes(self, value: Any) -> bool:
        """Return whether a JSON value is of the kind, and finite."""
        fits = isinstance(value, KINDS[self.kind]) and not isinstance(value, bool)
        return fits and (not isinstance(value, (float, Decimal)) or isfinite(value))


@dataclass(frozen=True)
class Tool:
    """A function of what a player sees, whose text is told to the player.

    Attributes:
        name: how it is called: letters, digits and underscores.
        summary: what it does, in one line; stands in the prompt as it is.
        run: gets the view and the arguments by name, all of them checked. It must depend on
            nothing else, so that runs can be resumed and replayed. It raises `BadCall` if it
            cannot help.
        parameters: the arguments by name.
        always: it is not called: what it says, without arguments, stands before every request.

    Raises:
        BadParameter: a name is not plain, or a tool that is always told needs arguments.
    """

    name: str
    summary: str
    run: Callable[[View, Mapping[str, Any]], str]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    always: bool = False

    def __post_init__(self) -> None:
        for name in (self.name, *self.parameters):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise BadParameter(
                    f"names of tools and arguments are letters, digits and _, got {name!r}"
                )
        if self.always and self._needed():
            needed = ", ".join(self._needed())
            raise BadParameter(f"tool {self.name!r} cannot always be told, it needs {needed}")

    def _needed(self) -> list[str]:
        return [name for name, parameter in self.parameters.items() if not parameter.optional]

    def text(self, view: View, arguments: Any) -> str:
        """Return what it says.

        Raises:
            BadCall: the arguments are not what it takes, or it cannot help.
            ToolFailed: there is an error in it.
        """
        self._check(arguments)
        try:
            said = self.run(view, arguments)
        except BadCall:
            raise
        except Exception as error:
            raise ToolFailed(f"tool {self.name!r} failed with {error!r}") from error
        if not isinstance(said, str):
            raise ToolFailed(f"tool {self.name!r} must return a str, got {type(said).__name__}")
        return said

    def _check(self, arguments: Any) -> None:
        if not isinstance(arguments, Mapping):
            raise BadCall("the arguments must be a JSON object")
        for name in arguments:
            if name not in self.parameters:
                raise BadCall(f"{self.name} takes no argument {quoted(name, 40)}")
        for name, parameter in self.parameters.items():
            if name not in arguments and not parameter.optional:
                raise BadCall(f"{self.name} needs the argument {name}: {parameter.meaning}")
            if name in arguments and not parameter.takes(arguments[name]):
                raise BadCall(f"{name} must be of the type {parameter.kind}: {parameter.meaning}")

    def told(self) -> dict[str, Any]:
        """Return what a prompt says of it, as plain values."""
        parameters = [{"name": name} | vars(p) for name, p in self.parameters.items()]
        return {"name": self.name, "summary": self.summary, "parameters": parameters}

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        """Return the JSON schema of a call, with an explanation first if asked for."""
        arguments = {name: {"type": p.kind} for name, p in self.parameters.items()}
        call: dict[str, Any] = {"explanation": {"type": "string"}} if reasoning else {}
        call["tool"] = {"type": "string", "enum": [self.name]}
        call["arguments"] = object_of(arguments, self._needed())
        return object_of(call)


def checked(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return the tools of one player.

    Raises:
        BadParameter: one is no `Tool`, or two have one name.
    """
    tools = tuple(tools)
    for tool in tools:
        if not isinstance(tool, Tool):
            raise BadParameter(f"tools must be Tool objects, got {tool!r}")
    if len({tool.name for tool in tools}) < len(tools):
        raise BadParameter(f"each tool must have its own name, got {[t.name for t in tools]}")
    return tools


@dataclass(frozen=True)
class Call:
    """A call as a model wrote it: any JSON values."""

    tool: Any
    arguments: Any

    def canonical(self) -> str:
        """Write it in the form that was asked for, a very long one without its content."""
        text = json.dumps({"tool": self.tool, "arguments": self.arguments}, default=float)
        return text if len(text) <= LONGEST else '{"tool": "...", "arguments": {}}'


class OrCall:
    """A question that may be answered by the call of a tool as well: reads an action or a `Call`.

    A JSON object that is both cannot be read. All else is as the question has it; a model that is
    constrained to what it allows makes no calls.
    """

    def __init__(self, question: Question, tools: Sequence[Tool]) -> None:
        self._question, self._tools = question, tools

    def __getattr__(self, name: str) -> Any:
        return getattr(self._question, name)

    def holds(self, whole: Mapping[str, Any]) -> bool:
        """Return whether it is an answer or a call."""
        return whole.get("tool") is not None or self._question.holds(whole)

    def answer(self, whole: Mapping[str, Any]) -> Any:
        """Read an action or a `Call`."""
        if whole.get("tool") is None:
            return self._question.answer(whole)
        if self._question.holds(whole):
            raise BadReply("format", "it is an answer and the call of a tool at once")
        return Call(whole["tool"], whole.get("arguments", {}))

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        """Return the schema of answers and calls."""
        calls = [tool.schema(reasoning) for tool in self._tools]
        return {"anyOf": [self._question.schema(reasoning), *calls]}


class Bench:
    """The tools at one decision.

    Args:
        tools: all that the player has.
        calls: how many calls there may be.
        view: what the player sees.
        prompts: the wording.
        reasoning: whether the answer holds an explanation.

    Attributes:
        left: how many calls there may still be.
        advice: what the tools say that are always told.
        offer: which tools can be called, and how; empty if none.
        said: the calls and their results so far.
    """

    def __init__(
        self, tools: Sequence[Tool], calls: int, view: View, prompts: Prompts, reasoning: bool
    ) -> None:
        self._tools = {tool.name: tool for tool in tools if not tool.always}
        self._view, self._prompts, self._reasoning = view, prompts, reasoning
        self.left = calls if self._tools else 0
        self.advice = "\n".join(self._advice(tool) for tool in tools if tool.always)
        offered = [tool.told() for tool in self._tools.values()]
        self.offer = prompts.offer(offered, calls) if offered else ""
        self.said: tuple[Message, ...] = ()

    def question(self, question: Question) -> Question:
        """Return the question as it may be answered now."""
        both: Any = OrCall(question, [*self._tools.values()]) if self.left else question
        return cast(Question, both)

    def call(self, call: Call) -> tuple[str, str]:
        """Run a call; return what was wrong with it, in words and in a word, "" if nothing.

        Raises:
            ToolFailed: there is an error in the tool.
        """
        self.left -= 1
        why = kind = ""
        try:
            said = self._run(call)
        except BadCall as bad:
            said, why, kind = str(bad), str(bad), bad.kind
        question = self._view.question
        assert question is not None
        told = self._prompts.result(said, bool(why), self.left, question, self._reasoning)
        self.said += (
            {"role": "assistant", "content": call.canonical()},
            {"role": "user", "content": told},
        )
        return why, kind

    def _run(self, call: Call) -> str:
        if not isinstance(call.tool, str) or call.tool not in self._tools:
            asked = quoted(call.tool if isinstance(call.tool, str) else "", 40)
            known = ", ".join(self._tools)
            raise BadCall(f"there is no tool {asked}; there are: {known}", "unknown_tool")
        return self._tools[call.tool].text(self._view, call.arguments)

    def _advice(self, tool: Tool) -> str:
        try:
            said, failed = tool.text(self._view, {}), False
        except BadCall as bad:
            said, failed = str(bad), True
        return self._prompts.advice(tool.name, said, failed)
