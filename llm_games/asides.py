"""What a player is asked beside its moves, such as a plan: questions whose answers are no moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from llm_games.noise import Noise
from llm_games.questions import BadReply, Question

LONGEST_TEXT = 4000  # characters of a text that are kept
MOST_LESSONS = 20


@dataclass(frozen=True)
class Aside:
    """A question beside the moves, of a kind such as ``belief``, with values for its words."""

    kind: str
    question: Question
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Text(Question):
    """Some sentences, such as a plan in words."""

    about: str
    """what they are to say, in a few words"""
    bare: ClassVar[bool] = False

    def value_schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}

    def read(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.strip():
            raise BadReply("format", f'"{self.key}" is no text')
        return value.strip()[:LONGEST_TEXT]

    def sample(self, noise: Noise) -> Any:
        return str(noise.integers(100))

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
