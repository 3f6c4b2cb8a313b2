"""The same game in other words: a seeded disguise of what players read and of what replies mean.

It stands where words are made (`Prompts`) and where questions are asked (`Sight`), nowhere else:
rules, numeric observations, moves and records are those of the plain game. A game declares its
`Surface` once; its wordings mark as ``<<word>>`` what has other words, and without the marks they
are the plain wordings. By its seed a disguise has

- words: of each group of the surface another row. A word in capitals (``<<Go>>``) stays so,
  ``<<bid:past>>`` is the form of that name, and ``<<100:numbers>>`` a number that counts numbers.
- units: what players are told is multiplied by a power of two for each thing that it counts.
  Floats take that exactly, so that a disguised report is to the letter the report of the game
  in which everything is so many times as large. Replies are divided by it.
- order: of the options in a question, and of the names of seats. Seats themselves stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import jinja2
from jinja2 import nodes

from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.questions import Choice, Integer, Question, Real, Speech

Q = TypeVar("Q", bound=Question | None)

UNITS = (2, 4, 8, 16, 32, 64)
PLAIN_KINDS = ("seats", "rounds", "shares", "words", "names", "settings")  # what has no unit
STEMS = ("agent", "member", "seat", "person", "entrant", "guest")
MARK = re.compile(r"<<([A-Za-z0-9_]+(?::[a-z]+)?)>>")
_WORD = re.compile(r"[A-Za-z]+")
MOST_QUESTIONS = 1024


def unmarked(source: str) -> str:
    """Return a wording in its plain words."""
    return MARK.sub(lambda mark: mark[1].partition(":")[0], source)


class Surface(NamedTuple):
    """What a game's words are about, so that they can be others.

    `words` are groups of rows of forms, parted by blanks; the first row is the plain one, and its
    forms are the marks: ``("go going went", "sail sailing sailed")``. ``bid:past`` is one of two
    forms that are spelled alike, ``at_camp`` has a blank. `counts` are the told values by what
    they count: a thing that gets a unit, or one of `PLAIN_KINDS`. `action` is the thing that an
    answer in numbers counts.
    """

    words: tuple[tuple[str, ...], ...]
    counts: Mapping[str, str]
    action: str = ""


@dataclass(frozen=True)
class Disguise:
    """Instance `seed` of a game in other words; see the module."""

    game: str
    seed: int
    surface: Surface = field(compare=False, repr=False)

    @cached_property
    def _noise(self) -> Noise:
        return Noise(self.seed).of("disguise")

    def _drawn(self, name: str, count: int) -> int:
        return int(self._noise.of(name).integers(count))

    @cached_property
    def words(self) -> dict[str, str]:
        """The word in place of each mark."""
        words: dict[str, str] = {}
        for plain, *others in self.surface.words:
            row = (plain, *others)[self._drawn(plain, 1 + len(others))]
            forms = (form.partition(":")[0].replace("_", " ") for form in row.split())
            words |= zip(plain.split(), forms, strict=True)
        return words

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """What each told value counts, by its name."""
        return {name: kind for kind, names in self.surface.counts.items() for name in names.split()}

    @cached_property
    def units(self) -> dict[str, int]:
        """How many of the told units is one of the rules', by what is counted."""
        scaled = (kind for kind in self.surface.counts if kind not in PLAIN_KINDS)
        return {kind: UNITS[self._drawn(kind, len(UNITS))] for kind in scaled}

    # -- words ---------------------------------------------------------------------------------

    def fill(self, source: str, file: str) -> str:
        """Return a wording in this disguise's words; BadParameter: it cannot be renamed."""

        def word(mark: re.Match[str]) -> str:
            plain, _, form = mark[1].partition(":")
            if plain.isdigit() and form in self.units:
                return str(int(plain) * self.units[form])
            named = self.words.get(mark[1].lower())
            if named is None:
                raise BadParameter(
                    f"{file} marks <<{mark[1]}>>, for which {self.game} has no other word: "
                    f"known: {', '.join(self.words)}"
                )
            return named[0].upper() + named[1:] if plain[0].isupper() else named

        self._check_marked(source, file)
        return MARK.sub(word, source)

    def _check_marked(self, source: str, file: str) -> None:
        plain = {word.partition(":")[0] for word in self.words if len(word) > 1}
        rest = MARK.sub(lambda mark: "0" * mark[1][0].isdigit(), source)
        words = _WORD.findall(" ".join(_visible_texts(rest)).lower())
        if bare := next((word for word in words if word in plain), None):
            raise BadParameter(
                f"{file} cannot be renamed: it says {bare!r}, of which {self.game} has other "
                f"words; mark it as <<{bare}>>, or leave isomorphs out"
            )

    def text(self, plain: str) -> str:
        """Return a key, a unit or an option with its words replaced."""
        return _WORD.sub(lambda word: self.words.get(word[0], word[0]), plain)

    def names(self, plain: list[str]) -> list[str]:
        """Return the names of seats in words."""
        stem, order = STEMS[self._drawn("stem", len(STEMS))], self._noise.of("names")
        return [f"{stem}_{number}" for number in order.order(len(plain)).tolist()]

    # -- what is told --------------------------------------------------------------------------

    def scale(self, values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
        """Return told values in this disguise's units; `names` are those of seats, by the plain."""
        return {name: self._scale(name, value, names) for name, value in values.items()}

    def _scale(self, name: str, value: Any, names: Mapping[str, str]) -> Any:
        if isinstance(value, Mapping):  # by name of what is told, or by seats'
            parts = ((k, k if k in self._kinds else name, part) for k, part in value.items())
            return {names.get(k, k): self._scale(inner, part, names) for k, inner, part in parts}
        if isinstance(value, list | tuple):
            return [self._scale(name, item, names) for item in value]
        kind = self._kinds.get(name)
        if isinstance(value, str):
            named = names.get(value, value) if kind == "names" else value
            return self.text(value) if kind == "words" else named
        if isinstance(value, bool | None):
            return value
        if kind is None and isinstance(value, int | float | Fraction):
            raise BadParameter(
                f"{self.game} tells {name!r}, and its surface does not say what that counts: it "
                "cannot be renamed"
            )
        return value * self.units.get(kind or "", 1)

    # -- what is asked -------------------------------------------------------------------------

    @cached_property
    def _questions(self) -> dict[int, tuple[Question, Question]]:
        return {}

    def question(self, question: Q) -> Q:
        """Return what is asked in these words; the actions that it reads stay the rules'."""
        if question is None or isinstance(question, Speech):
            return question
        if id(question) not in self._questions:
            if len(self._questions) >= MOST_QUESTIONS:
                self._questions.clear()
            self._questions[id(question)] = question, self._renamed(question)
        return self._questions[id(question)][1]  # type: ignore[return-value]

    def _renamed(self, question: Question) -> Question:
        same: dict[str, Any] = {
            "key": self.text(question.key),
            "units": tuple(map(self.text, question.units)),
            "also": tuple((self.text(word), value) for word, value in question.also),
        }
        if isinstance(question, Choice):
            options = list(question.words.items())
            order = self._noise.of("options").order(len(options)).tolist()
            words = {self.text(options[i][0]): options[i][1] for i in order}
            if len(words) < len(options):
                raise BadParameter(f"options of {self.game} cannot be renamed: {question.wanted()}")
            return replace(question, words=words, **same)
        if isinstance(question, Integer | Real) and self.surface.action:
            return replace(question, scale=self.units[self.surface.action], **same)
        raise BadParameter(f"a question of {self.game} cannot be renamed: {question.wanted()}")


def _visible_texts(source: str) -> Iterable[str]:
    """Yield the texts of a template that can reach a reader."""

    def walk(node: nodes.Node) -> Iterable[str]:
        if isinstance(node, nodes.TemplateData):
            yield node.data
        elif isinstance(node, nodes.Const) and isinstance(node.value, str):
            yield node.value
        elif not isinstance(node, nodes.Compare | nodes.Getitem):
            for child in node.iter_child_nodes():
                yield from walk(child)
        elif isinstance(node, nodes.Getitem):
            yield from walk(node.node)

    return walk(jinja2.Environment().parse(source))
