"""Prompts are data: one template a wording, rendered in a sandbox from what a player is told.

A template ``prompts/<game>/<version>.j2`` has three blocks: ``rules`` (told once), ``report``
(what happened since this player last decided) and ``request`` (the question, the goal and the
form of the answer). ``prompts/common.j2`` has what all games share: personas, the cue to
reason step by step, and the note that goes with a question asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llm_games.errors import BadParameter, unknown
from llm_games.questions import Question
from llm_games.rulebook import Rulebook
from llm_games.views import View

FOLDER = Path(__file__).parent / "prompts"
BLOCKS = ("rules", "report", "request")
PERSONAS = ("cooperative", "selfish", "mathematician")


def number(value: Any) -> str:
    """Write a number as people do: whole without a point, a ratio as 2/3, else two decimals."""
    if isinstance(value, Fraction):
        return number(float(value)) if 100 % value.denominator == 0 else str(value)
    rounded = round(float(value), 2)
    return str(int(rounded)) if rounded == int(rounded) else f"{rounded:.2f}"


def percent(value: Any) -> str:
    """Write a ratio as a percentage."""
    return f"{number(Fraction(value) * 100)}%"


def listed(values: Any) -> str:
    """Write numbers one after another."""
    return ", ".join(number(value) for value in values)


def named(values: Mapping[str, Any], none: str = "none") -> str:
    """Write values by name, such as ``player_0: 40, player_1: 12.5``; `none` stands for None."""
    return ", ".join(f"{k}: {none if v is None else v}" for k, v in values.items())


class Prompts:
    """One wording of one game.

    Args:
        game: the game's name, such as ``"public_goods"``.
        version: ``"v1"`` … ``"v5"``, or a file of your own.
        folder: a folder of your own with ``<game>/<version>.j2`` files, used before ours.

    Raises:
        UnknownName: there is no such wording.
        BadParameter: the template has a syntax error or lacks a block.
    """

    def __init__(self, game: str, version: str = "v1", folder: str | Path | None = None) -> None:
        self.game, self.version, self.folder = game, version, folder
        self._template = _template(game, version, str(folder) if folder else None)
        self._common = _template("", "common", str(folder) if folder else None)

    def __reduce__(self) -> tuple[type[Prompts], tuple[str, str, str | Path | None]]:
        """Pickle what it is made of; a compiled template cannot be pickled."""
        return Prompts, (self.game, self.version, self.folder)

    def rules(self, game: Rulebook, player: int, persona: str | None = None) -> str:
        """Return the rules as this seat hears them, the persona's sentence first.

        `persona` is one of `PERSONAS` or a sentence of your own.
        """
        rules = self._block("rules", game.terms() | {"me": game.names()[player], "seat": player})
        if not persona:
            return rules
        named = f"persona_{persona}"
        sentence = self._common_block(named, {}) if persona in PERSONAS else persona.strip()
        return f"{sentence}\n\n{rules}"

    def report(self, view: View) -> str:
        """Return what happened since this player last decided; empty at the start."""
        return self._block("report", self._known(view))

    def request(self, view: View, reasoning: bool = False) -> str:
        """Return the question that is asked now, with the cue to reason if wanted."""
        if view.question is None:
            return ""
        form = view.question.form(reasoning)
        request = self._block("request", self._known(view) | {"form": form})
        return f"{request}\n{self._common_block('reasoning', {})}" if reasoning else request

    def again(self, why: str, question: Question, reasoning: bool = False) -> str:
        """Return the note that goes with a question asked again: what was wrong."""
        return self._common_block("again", {"why": why, "form": question.form(reasoning)})

    def text(self, view: View, rules: str | None = None) -> str:
        """Return the whole view as one self-contained text: rules, report and request."""
        parts = (rules or self.rules(view.game, view.seat), self.report(view), self.request(view))
        return "\n\n".join(part for part in parts if part)

    def _known(self, view: View) -> dict[str, Any]:
        assert view.told is not None, "a batch of tables has no words"
        me = view.game.names()[view.seat]
        return view.game.terms() | view.told | {"me": me, "seat": view.seat}

    def _block(self, name: str, values: Mapping[str, Any]) -> str:
        return _render(self._template, name, values)

    def _common_block(self, name: str, values: Mapping[str, Any]) -> str:
        return _render(self._common, name, values)


def versions(game: str, folder: str | Path | None = None) -> list[str]:
    """Return the wordings that exist for a game."""
    roots = [Path(folder)] if folder else []
    return sorted({p.stem for root in (*roots, FOLDER) for p in (root / game).glob("*.j2")})


def _render(template: jinja2.Template, block: str, values: Mapping[str, Any]) -> str:
    text = "".join(template.blocks[block](template.new_context(dict(values))))
    return "\n".join(line.strip() for line in text.strip().splitlines())


@cache
def _template(game: str, version: str, folder: str | None) -> jinja2.Template:
    folders = [str(FOLDER)] if folder is None else [folder, str(FOLDER)]
    environment = ImmutableSandboxedEnvironment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": percent, "listed": listed, "named": named}
    path = f"{game}/{version}.j2" if game else f"{version}.j2"
    try:
        template = environment.get_template(path)
    except jinja2.TemplateNotFound:
        raise unknown(f"wording of {game}", version, versions(game, folder)) from None
    except jinja2.TemplateSyntaxError as error:
        raise BadParameter(f"{error.filename}, line {error.lineno}: {error.message}") from None
    missing = [block for block in BLOCKS if game and block not in template.blocks]
    if missing:
        raise BadParameter(f"{template.filename} lacks the block {missing[0]!r} (needs {BLOCKS})")
    return template
