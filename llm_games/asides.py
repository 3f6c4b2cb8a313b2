"""Questions beside the moves, such as for a plan; their answers change nothing in the game."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from llm_games.noise import Noise
from llm_games.questions import LONGEST_TEXT, BadReply, Question, read_number
from llm_games.schemas import object_of

MOST_LESSONS = 20
SLACK = 0.011  # by which rounded chances may miss 1
GRADED = "?"  # ends the kinds of graded questions: what they are asked for and noted as


@dataclass(frozen=True)
class Aside:
    """A question beside the moves, of a kind such as ``belief``, with values for its template.

    The words of a game's own aside (`Rulebook.asides`) are its wording's block of that kind. Later
    asides and requests get the answers as ``notes.<kind>``, the latest last.
    """

    kind: str
    question: Question
    values: Mapping[str, Any] = field(default_factory=dict)
    hears: bool = False
    """what was said in the talk before it stands above it"""
    shown_again: int = 1
    """how many of its latest answers are handed on"""

    def content(self, answer: Any) -> dict[str, Any]:
        return answer if isinstance(answer, dict) else {self.question.key: answer}


@dataclass(frozen=True)
class Text(Question):
    """Some sentences, such as a plan in words.

    With `flags` the answer is by name: the text, and true or false for each (None: not said).
    """

    about: str
    """what they are to say, in a few words"""
    flags: tuple[str, ...] = ()
    bare: ClassVar[bool] = False

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        schema = super().schema(reasoning)
        flag_schemas = {flag: {"type": "boolean"} for flag in self.flags}
        return object_of(schema["properties"] | flag_schemas) if flag_schemas else schema

    def answer(self, whole: Mapping[str, Any]) -> Any:
        text = self.read(whole[self.key])
        flags = {flag: whole.get(flag) for flag in self.flags}
        flags = {flag: value if type(value) is bool else None for flag, value in flags.items()}
        return {self.key: text} | flags if flags else text

    def form(self, reasoning: bool = False) -> str:
        flags = "".join(f', "{flag}": <true or false>' for flag in self.flags)
        return f"{super().form(reasoning)[:-1]}{flags}}}"

    def reply(self, action: Any) -> str:
        return json.dumps(action) if self.flags else super().reply(action)

    def value_schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}

    def read(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.strip():
            raise BadReply("format", f'"{self.key}" is no text')
        return value.strip()[:LONGEST_TEXT]

    def sample(self, noise: Noise) -> Any:
        text = str(noise.of("text").integers(100) if self.flags else noise.integers(100))
        flags = {flag: bool(noise.of(flag).integers(2)) for flag in self.flags}
        return {self.key: text} | flags if flags else text

    def wanted(self) -> str:
        return self.about


@dataclass(frozen=True)
class Lessons(Question):
    """A list of sentences to be remembered."""

    bare: ClassVar[bool] = False

    def value_schema(self) -> dict[str, Any]:
        sentence = {"type": "string", "minLength": 1}
        return {"type": "array", "items": sentence, "minItems": 1}

    def read(self, value: Any) -> Any:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(t, str) and t.strip() for t in texts):
            raise BadReply("format", f'"{self.key}" is no list of sentences')
        if not 1 <= len(texts) <= MOST_LESSONS:
            raise BadReply("range", f"it has {len(texts)} sentences, not 1 to {MOST_LESSONS}")
        return [text.strip()[:LONGEST_TEXT] for text in texts]

    def sample(self, noise: Noise) -> Any:
        count = int(noise.of("count").integers(1, 4))
        return [str(lesson) for lesson in noise.integers(100, shape=count)]

    def _value_form(self) -> str:
        return '["<a lesson>", ...]'

    def wanted(self) -> str:
        return f"a list of 1 to {MOST_LESSONS} sentences"


@dataclass(frozen=True)
class Chances(Question):
    """A chance in per cent for each of some options, up to `SLACK` adding up to 100 if `together`.

    The answer is by option, from 0 to 1.
    """

    options: tuple[str, ...]
    together: bool = True
    bare: ClassVar[bool] = False

    def value_schema(self) -> dict[str, Any]:
        percent = {"type": "number", "minimum": 0, "maximum": 100}
        return object_of(dict.fromkeys(self.options, percent))

    def read(self, value: Any) -> dict[str, float]:
        numbers = value if isinstance(value, Mapping) else {}
        percents = {option: read_number(numbers.get(option)) for option in self.options}
        if None in percents.values() or len(numbers) != len(percents):
            raise BadReply("format", f'"{self.key}" is not {self.wanted()}')
        chances = [float(percent or 0) / 100 for percent in percents.values()]
        total = sum(chances)
        if not all(0 <= chance <= 1 for chance in chances):
            raise BadReply("range", "a percentage is below 0 or above 100")
        if self.together and abs(total - 1) > SLACK:
            raise BadReply("range", f"the percentages add up to {total:.0%}, not to 100 %")
        whole = total if self.together else 1
        pairs = zip(self.options, chances, strict=True)
        return {option: chance / whole for option, chance in pairs}

    def value_of(self, action: Any) -> dict[str, float]:
        return {option: 100 * chance for option, chance in action.items()}

    def sample(self, noise: Noise) -> dict[str, float]:
        drawn = noise.random((len(self.options),)) + 1e-9
        whole = drawn.sum() if self.together else 1
        return dict(zip(self.options, (drawn / whole).tolist(), strict=True))

    def _value_form(self) -> str:
        return f"{{{', '.join(f'{json.dumps(option)}: <per cent>' for option in self.options)}}}"

    def wanted(self) -> str:
        adding = " that add up to 100" * self.together
        return f"percentages for {', '.join(self.options)}{adding}"
