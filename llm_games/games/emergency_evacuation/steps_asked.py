"""The questions to people in the room: an exit, a step, and their assessment of the exits."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from llm_games.asides import LONGEST_TEXT, Aside
from llm_games.noise import Noise
from llm_games.questions import BadReply, Choice, Question
from llm_games.schemas import object_of


@dataclass(frozen=True)
class Offered(Choice):
    """A choice among the options that are legal now."""

    def samples(self, noise: Noise, view: Any) -> Any:
        legal = view.mask
        rank = noise.integers(legal.sum(axis=-1))
        return (legal.cumsum(axis=-1) <= rank[..., None]).sum(axis=-1)


@dataclass(frozen=True)
class Exit(Offered):
    """An exit by name. The answers to `asides_before` precede it; only the exit counts."""

    asides_before: tuple[Aside, ...] = ()

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        schema = super().schema(reasoning)
        exit_schema = schema["properties"].pop(self.key)
        asides_schema: dict[str, Any] = {}
        for aside in self.asides_before:
            asides_schema |= aside.question.schema()["properties"]
        return object_of(schema["properties"] | asides_schema | {self.key: exit_schema})

    def form(self, reasoning: bool = False) -> str:
        asides_form = "".join(f"{aside.question.form()[1:-1]}, " for aside in self.asides_before)
        return super().form(reasoning).replace(f'"{self.key}"', f'{asides_form}"{self.key}"')

    def legal(self) -> dict[str, Any]:
        return super().schema()

    def beside(self, whole: Mapping[str, Any]) -> Mapping[str, Any]:
        answers = {}
        for aside in self.asides_before:
            if aside.question.holds(whole):
                with suppress(BadReply):  # nothing is noted down of it
                    answers[aside.kind] = aside.content(aside.question.answer(whole))
        return answers


@dataclass(frozen=True)
class StepQuestion(Offered):
    """A step by its letter, or by the name of its direction, of which `ways` are all."""

    ways: Mapping[str, int] = field(default_factory=dict)

    def read(self, value: Any) -> int:
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in self.ways:
            return super().read(value)
        if self.ways[word] not in self.words.values():
            raise BadReply("range", f'"{word}" is no cell you can enter now', self.ways[word])
        return self.ways[word]


@dataclass(frozen=True)
class Assessment(Question):
    """Some words about each of the exits, by name."""

    names: tuple[str, ...]
    bare: ClassVar[bool] = False

    def value_schema(self) -> dict[str, Any]:
        return object_of({name: {"type": "string"} for name in self.names})

    def read(self, value: Any) -> Any:
        texts_given = value if isinstance(value, Mapping) else {}
        texts = {name: texts_given.get(name) for name in self.names}
        if not all(isinstance(text, str) and text.strip() for text in texts.values()):
            raise BadReply("format", f'"{self.key}" has no text for each of {self._all()}')
        return {name: str(text).strip()[:LONGEST_TEXT] for name, text in texts.items()}

    def sample(self, noise: Noise) -> Any:
        drawn = np.asarray(noise.integers(100, shape=len(self.names)))
        return {name: str(text) for name, text in zip(self.names, drawn, strict=True)}

    def _all(self) -> str:
        return ", ".join(self.names)

    def _value_form(self) -> str:
        return "{" + ", ".join(f'"{name}": "<what you think of it>"' for name in self.names) + "}"

    def wanted(self) -> str:
        return f"a text for each of {self._all()}"
