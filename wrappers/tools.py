"""Tools: what a language model may call, or is always told, before it decides.

A call is a JSON object in place of the answer: ``{"tool": "calculator", "arguments": {…}}``, which
works with every server and local model. Where the server lets a model call functions natively, it
may do so: such a call stands in the chat in the same form, its result as a message of role "tool".
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

LONGEST = 2000  #: characters of a call that are kept in the chat
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")

KINDS = {"string": str, "number": int | float | Decimal, "integer": int, "array": list}
"""Kinds of arguments by their names in a JSON schema; fractions in a reply are Decimal."""


class BadCall(LLMGamesError):
    """A tool cannot do what it was called for, which the caller is told; `kind` is for counting."""

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
        """Test whether a JSON value is of the kind, and finite."""
        fits = isinstance(value, KINDS[self.kind]) and not isinstance(value, bool)
        return fits and (not isinstance(value, (float, Decimal)) or isfinite(value))


@dataclass(frozen=True)
class Tool:
    """A function of what a player sees, whose text is told to the player.

    Raises:
        BadParameter: a name is not plain, or a tool that is always told needs arguments.
    """

    name: str  #: how it is called: letters, digits and underscores
    summary: str  #: what it does, in one line; stands in the prompt as it is
    run: Callable[[View, Mapping[str, Any]], str]
    """gets the view, of the game inside where there is talk, and the arguments by name, all of them
    checked. It must depend on nothing else, so that runs can be resumed and replayed. It raises
    `BadCall` if it cannot help"""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)  #: the arguments by name
    always: bool = False  #: it is not called: its text stands before every request

    def __post_init__(self) -> None:
        for name in (self.name, *self.parameters):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                rule = "names of tools and arguments are letters, digits and _"
                raise BadParameter(f"{rule}, got {name!r}")
        if self.always and self._needed():
            needed = ", ".join(self._needed())
            raise BadParameter(f"tool {self.name!r} cannot always be told, it needs {needed}")

    def _needed(self) -> list[str]:
        return [name for name, parameter in self.parameters.items() if not parameter.optional]

    def text(self, view: View, arguments: Any) -> str:
        """Return its output; BadCall if arguments do not fit or it cannot help, else ToolFailed."""
        if not isinstance(arguments, Mapping):
            raise BadCall("the arguments must be a JSON object")
        if odd := [name for name in arguments if name not in self.parameters]:
            raise BadCall(f"{self.name} takes no argument {quoted(odd[0], 40)}")
        for name, parameter in self.parameters.items():
            if name not in arguments and not parameter.optional:
                raise BadCall(f"{self.name} needs the argument {name}: {parameter.meaning}")
            if name in arguments and not parameter.takes(arguments[name]):
                raise BadCall(f"{name} must be of the type {parameter.kind}: {parameter.meaning}")
        try:
            output = self.run(view, arguments)
        except BadCall:
            raise
        except Exception as error:
            raise ToolFailed(f"tool {self.name!r} failed with {error!r}") from error
        if not isinstance(output, str):
            raise ToolFailed(f"tool {self.name!r} must return a str, got {type(output).__name__}")
        return output

    def summary_fields(self) -> dict[str, Any]:
        """Return the tool's description in prompts, as plain values."""
        parameters = [{"name": name} | vars(p) for name, p in self.parameters.items()]
        return {"name": self.name, "summary": self.summary, "parameters": parameters}

    def definition(self) -> dict[str, Any]:
        """Return the tool's definition for servers with native calls."""
        arguments: dict[str, Any] = {
            name: {"type": p.kind, "description": p.meaning} for name, p in self.parameters.items()
        }
        for argument in arguments.values():
            argument |= {"items": {}} if argument["type"] == "array" else {}
        parameters = object_of(arguments, self._needed())
        return {"name": self.name, "description": self.summary, "parameters": parameters}

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        """Return the JSON schema of a call, with an explanation first if asked for."""
        arguments = {name: {"type": p.kind} for name, p in self.parameters.items()}
        call: dict[str, Any] = {"explanation": {"type": "string"}} if reasoning else {}
        call["tool"] = {"type": "string", "enum": [self.name]}
        call["arguments"] = object_of(arguments, self._needed())
        return object_of(call)


def checked(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return the tools of one player: each one a `Tool`, no two with one name."""
    tools = tuple(tools)
    if odd := [tool for tool in tools if not isinstance(tool, Tool)]:
        raise BadParameter(f"tools must be Tool objects, got {odd[0]!r}")
    if len({tool.name for tool in tools}) < len(tools):
        raise BadParameter(f"each tool must have its own name, got {[t.name for t in tools]}")
    return tools


@dataclass(frozen=True)
class ToolCall:
    """A call as a model wrote it: any JSON values."""

    tool: Any
    arguments: Any


class OrCall:
    """A question that may be answered by the call of a tool as well: reads an action or a `Call`.

    A JSON object that is both cannot be read. A model constrained to what it allows makes no calls.
    """

    def __init__(self, question: Question, tools: Sequence[Tool]) -> None:
        self.alone, self._tools = question, tools
        self.replies = dict[Any, Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.alone, name)

    def holds(self, whole: Mapping[str, Any]) -> bool:
        """Return whether it is an answer or a call."""
        return self._call(whole) is not None or self.alone.holds(whole)

    def answer(self, whole: Mapping[str, Any]) -> Any:
        """Read an action or a `Call`."""
        call = self._call(whole)
        if call is None:
            return self.alone.answer(whole)
        if self.alone.holds(whole):
            raise BadReply("format", "it is an answer and the call of a tool at once")
        return call

    def _call(self, whole: Mapping[str, Any]) -> ToolCall | None:
        """Read a call in our form, or one of a tool of ours in the form of native calls."""
        name = whole.get("tool")
        if name is None and whole.get("name") in [tool.name for tool in self._tools]:
            name = whole["name"]
        return None if name is None else ToolCall(name, whole.get("arguments", {}))

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        """Return the schema of answers and calls."""
        calls = [tool.schema(reasoning) for tool in self._tools]
        return {"anyOf": [self.alone.schema(reasoning), *calls]}


class Bench:
    """The tools at one decision.

    There may be `remaining` more calls; `chat` has those so far, with their results. `advice` is
    the text of tools that always speak; `offer` says which can be called, and how ("" if none).
    """

    def __init__(
        self, tools: Sequence[Tool], calls: int, view: View, prompts: Prompts, reasoning: bool
    ) -> None:
        self._tools = {tool.name: tool for tool in tools if not tool.always}
        self._view, self._prompts, self._reasoning = view, prompts, reasoning
        self.remaining = calls if self._tools else 0
        advice = []
        for tool in (tool for tool in tools if tool.always):
            try:
                advice.append(prompts.advice(tool.name, tool.text(view.core, {}), False))
            except BadCall as bad:
                advice.append(prompts.advice(tool.name, str(bad), True))
        self.advice = "\n".join(advice)
        definition = [tool.summary_fields() for tool in self._tools.values()]
        self.offer = prompts.offer(definition, calls) if definition else ""
        self.chat: tuple[Message, ...] = ()

    def add(self, text: str) -> None:
        """Add a text to the last message."""
        *earlier, last = self.chat
        self.chat = (*earlier, {**last, "content": f"{last['content']}\n\n{text}"})

    def question(self, question: Question) -> Question:
        """Return the question as it may be answered now."""
        both: Any = OrCall(question, [*self._tools.values()]) if self.remaining else question
        return cast(Question, both)

    def offers(self) -> tuple[dict[str, Any], ...]:
        """Return the tools that may be called natively now."""
        return tuple(tool.definition() for tool in self._tools.values()) if self.remaining else ()

    def native(self, calls: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
        """Run native calls of one reply, as many as there may be; return as `call` does."""
        tool_calls = [
            ToolCall(call["name"], call["arguments"]) for call in [*calls][: self.remaining]
        ]
        complaints = [self.call(call, native=True) for call in tool_calls]
        return next((bad for bad in complaints if bad[1]), ("", ""))

    def call(self, call: ToolCall, native: bool = False) -> tuple[str, str]:
        """Run a call; return what was wrong with it, in words and in a word, "" if nothing."""
        self.remaining -= 1
        why = kind = ""
        name = call.tool if isinstance(call.tool, str) else ""
        try:
            if name not in self._tools:
                description = f"{quoted(name, 40)}; there are: {', '.join(self._tools)}"
                raise BadCall(f"there is no tool {description}", "unknown_tool")
            output = self._tools[name].text(self._view.core, call.arguments)
        except BadCall as bad:
            output, why, kind = str(bad), str(bad), bad.kind
        question = self._view.question
        assert question is not None
        report = self._prompts.result(output, bool(why), self.remaining, question, self._reasoning)
        words = json.dumps({"tool": call.tool, "arguments": call.arguments}, default=float)
        if native:  # to be shown in the server's form, which takes plain names and objects alone
            fits = isinstance(call.arguments, Mapping) and len(words) <= LONGEST
            shown = {"tool": name if _NAME.fullmatch(name) else "unknown", "arguments": {}}
            words = words if fits and shown["tool"] == name else json.dumps(shown)
        words = words if len(words) <= LONGEST else '{"tool": "...", "arguments": {}}'
        hearing = "tool" if native else "user"
        self.chat += ({"role": "assistant", "content": words}, {"role": hearing, "content": report})
        return why, kind
