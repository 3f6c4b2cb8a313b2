"""Prompts are data: one template a wording, rendered in a sandbox from what a player is told.

``wordings/<version>.j2`` in a game's room has the blocks ``rules`` (told once), ``report`` (what
happened since this player last decided) and ``request`` (the question, the goal, the form of the
answer); it may have one for each kind of its asides, ``talk``, what a speaker is shown, or
``scene``, what one is shown who talks before another's move. What several blocks say can be one,
too, which another says as ``{{ self.name() }}``.
``wordings/common.j2`` beside this file has what all games share, ``talk.j2`` stands around a game's
words where there is talk, ``graded.j2`` has the words of graded questions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import sandbox

from llm_games import game_rooms as rooms
from llm_games.asides import GRADED, Aside
from llm_games.disguise import Disguise, unmarked
from llm_games.errors import BadParameter, unknown
from llm_games.foreign_templates import FolderLoader, Guarded
from llm_games.plain_blocks import plain_blocks
from llm_games.questions import LONGEST_SPEECH, Question
from llm_games.rulebook import Goal, Rulebook
from llm_games.view import Sight, View

FOLDER = Path(__file__).parent / "wordings"
BLOCKS = ("rules", "report", "request")
LONGEST = 2000  # characters of what a tool says that are told
LONGEST_TALK, LEAST_SHOWN = 20_000, 80  # characters of all speeches that are told, and of each
PERSONAS = ("cooperative", "selfish", "mathematician")
THOUGHTS = ("plan", "replan", "status", "belief", "learn")
_NEEDED: dict[str, tuple[str, ...]] = {"": (), "planning": THOUGHTS}


@lru_cache(4096, typed=True)  # 1/8 and 0.125 are equal, but written differently
def number(value: Any, decimals: int = 2) -> str:
    """Write a number as people do: whole without a point, a ratio as 2/3, else with decimals."""
    if isinstance(value, Fraction):
        return number(float(value)) if 100 % value.denominator == 0 else str(value)
    rounded = round(float(value), decimals)
    return str(int(rounded)) if rounded == int(rounded) else f"{rounded:.{decimals}f}"


def exact(value: Any) -> str:
    """Write a number with all its digits and never as 1e-06; a ratio without an end as 1/3."""
    ratio = Fraction(str(value))
    written = Decimal(ratio.numerator) / ratio.denominator
    return format(written.normalize(), "f") if Fraction(written) == ratio else str(ratio)


def counted(value: Any, singular: str, plural: str = "") -> str:
    """Write a count with its noun: 1 coin, 2 coins."""
    written = number(value)
    return f"{written} {singular if written == '1' else plural or f'{singular}s'}"


def percent(value: Any) -> str:
    """Write a share as a percentage, or as a ratio such as 2/3 where that has no few decimals."""
    share = Fraction(value)
    return f"{number(share * 100)}%" if 10_000 % share.denominator == 0 else str(share)


def listed(values: Any) -> str:
    return ", ".join(map(number, values))


def named(values: Mapping[str, Any], none: str = "none") -> str:
    """Write values by name, such as ``player_0: 40, player_1: 12.5``; `none` stands for None."""
    return ", ".join(f"{k}: {none if v is None else exact(v)}" for k, v in values.items())


def quoted(text: str, limit: int = 500) -> str:
    """Quote what another player said as one JSON string, cut at `limit`: it cannot pass for rules.

    Escaped is what is no plain text, and brackets of chats' marks, as ``<|im_start|>`` or
    ``[INST]``.
    """
    text = text if len(text) <= limit else f"{text[:limit]}…"
    plain = (c if c.isprintable() and c not in '"\\' else json.dumps(c)[1:-1] for c in text)
    return f'"{_MARKS.sub(_escaped, "".join(plain))}"'


_MARKS = re.compile(r"\x7f|<(?=[^\s\d<=>])|\[(?=/?[A-Z][A-Z_]*\])")


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


_OURS = (number, exact, counted, percent, listed, named, quoted)
FILTERS: dict[str, Any] = {function.__name__: function for function in _OURS}


class Notes(dict[str, tuple[Any, ...]]):
    """A seat's answers to asides, by kind, the latest last; () for other kinds."""

    def __missing__(self, kind: str) -> tuple[Any, ...]:
        return ()

    def plus(self, kind: str, answer: Any, limit: int) -> Notes:
        return Notes({**self, kind: (*self[kind], answer)[-limit:] if limit else ()})


NO_NOTES = Notes()


class Prompts:
    """One wording of a game: ``"v1"`` … ``"v5"``, or a file of your own.

    A `folder` with ``<game>/<version>.j2`` files is used before ours. Raises UnknownName, or
    BadParameter for no such folder, a syntax error or a block that lacks.
    """

    def __init__(self, game: str, version: str = "v1", folder: str | Path | None = None) -> None:
        if folder is not None and not Path(folder).is_dir():
            raise BadParameter(f"there is no folder of prompts {str(folder)!r} in {Path.cwd()}")
        self.game, self.version, self.folder = game, version, folder
        path = str(folder) if folder else None
        self._template = _template(game, version, path)
        shared = ("common", "talk", "graded")
        self._common, self._talk, self._graded = (_template("", name, path) for name in shared)
        self._game: Rulebook | None = None
        self._terms: list[dict[str, Any]] = []

    def __reduce__(self) -> tuple[type[Prompts], tuple[str, str, str | Path | None]]:
        """Pickle what it is made of; a compiled template cannot be pickled."""
        return Prompts, (self.game, self.version, self.folder)

    def rules(self, game: Rulebook, seat: int, persona: str | None = None) -> str:
        """Return the rules as this seat hears them, after one of `PERSONAS` or your own words."""
        core = game.core
        rules = _render(self._template_of(core), self._terms_of(core)[seat], "rules")
        if core is not game:
            rules = "\n".join(filter(None, (rules, self._talk_rules(game, seat))))
        if not persona:
            return rules
        if persona in PERSONAS:
            persona = _render(self._common, {}, f"persona_{persona}")
        return f"{persona.strip()}\n\n{rules}"

    def _talk_rules(self, game: Any, seat: int) -> str:
        """Return the rules of the talk around a game; "" if it is not announced."""
        talk, names = game.talk, game.names_in_words()
        if not talk.announce:
            return ""
        reach, seats = talk.reach(game.players), range(game.players)
        names_in_block = vars(talk) | {"me": names[seat], "mute": [names[k] for k in talk.silent]}
        if isinstance(talk.speakers, tuple):
            names_in_block["speakers"] = [names[k] for k in talk.speakers]
        if reach is not None:
            names_in_block["hearers"] = [names[k] for k in seats if reach[seat, k]]
            names_in_block["heard"] = [names[k] for k in seats if reach[k, seat]]
        return _render(self._talk, names_in_block, "rules")

    def report(self, view: View, notes: Notes = NO_NOTES) -> str:
        """Return what happened since this player last decided; empty at the start."""
        return _render(self._template_of(view.core.game), self._names(view, notes), "report")

    def request(self, view: View, reasoning: bool = False, notes: Notes = NO_NOTES) -> str:
        """Return the question that is asked now, with the cue to reason if wanted.

        Where there is talk, it begins with the messages heard. `notes` are answers to asides.
        """
        if view.question is None:
            return ""
        form = view.question.form(True) if reasoning else view.question.plain_form
        request = self._request(view, self._names(view, notes), form, notes)
        return f"{request}\n{_render(self._common, {}, 'reasoning')}" if reasoning else request

    def _request(
        self, view: View, names: dict[str, Any], form: str, notes: Notes = NO_NOTES
    ) -> str:
        names["form"], template = form, self._template_of(view.core.game)
        if view.core is view:
            return _render(template, names, "request")
        messages = self.heard(view)
        if not view.sight.talking:
            return _join(messages, _render(template, names, "request"))
        if "talk" in template.blocks:
            scene = _render(template, names, "talk")
        else:
            scene = self.situation(view.core, notes)
        about = "" if scene or "scene" not in template.blocks else _render(template, names, "scene")
        extra = {name: names[name] for name in ("me", "goal", "form")} | {"scene": scene}
        extra["round"] = int(view.sight.state.round) + 1
        question_text = _render(self._talk, vars(view.game.talk) | extra, "request")
        return _join(about, scene, messages, question_text)

    def heard(self, view: View) -> str:
        """Return the messages that this seat heard, quoted; "" where no talk may precede.

        Too many speeches are cut to their beginnings.
        """
        core = view.core
        messages = () if core is view or view.told is None else view.told["talk"]["heard"]
        if not messages or not (view.sight.talking or core.game.talks(core.sight.state)):
            return ""
        flooded = sum(len(message["text"]) for message in messages) > LONGEST_TALK
        longest = max(LEAST_SHOWN, LONGEST_TALK // len(messages)) if flooded else LONGEST_SPEECH
        names: dict[str, Any] = {"heard": messages, "longest": longest}
        names |= {"round": int(view.sight.state.round) + 1, "alphabet": view.game.talk.alphabet}
        return _render(self._talk, names, "heard")

    def aside(
        self, view: View, aside: Aside, reasoning: bool = False, notes: Notes = NO_NOTES
    ) -> str:
        """Return a game's aside in words; BadParameter if there is no block of its kind."""
        names = self._names(view, notes)
        names.update({"form": aside.question.form(reasoning)} | dict(aside.values))
        text = _render(self._template_of(view.core.game), names, aside.kind)
        text = _join(self.heard(view) if aside.hears else "", text)
        return f"{text}\n{_render(self._common, {}, 'reasoning')}" if reasoning else text

    def graded(
        self, view: View, aside: Aside, reasoning: bool = False, notes: Notes = NO_NOTES
    ) -> str:
        """Return a graded question, the same words in all games, below the situation."""
        names = {"form": aside.question.form(reasoning)} | dict(aside.values)
        blocks = ("head", aside.kind.removesuffix(GRADED), "foot")
        text = _join(self.situation(view, notes), _render(self._graded, names, *blocks))
        return f"{text}\n{_render(self._common, {}, 'reasoning')}" if reasoning else text

    def situation(self, view: View, notes: Notes = NO_NOTES) -> str:
        """Return the request without the form of the answer: the situation and the goal."""
        if view.question is None:
            return ""
        form, lines = view.question.plain_form, self.request(view, False, notes).splitlines()
        return "\n".join(line for line in lines if form not in line)

    def again(self, why: str, question: Question, reasoning: bool = False) -> str:
        return _render(self._common, {"why": why, "form": question.form(reasoning)}, "again")

    def summary(self, form: str) -> str:
        return _render(self._common, {"form": form}, "summary")

    def offer(self, tools: list[dict[str, Any]], calls: int) -> str:
        """Return the description of the tools that may be called, and how often."""
        return _render(self._common, {"tools": tools, "calls": calls}, "offer")

    def result(
        self, output: str, failed: bool, remaining: int, question: Question, reasoning: bool = False
    ) -> str:
        values = {"said": quoted(output, LONGEST), "failed": failed, "left": remaining}
        return _render(self._common, values | {"form": question.form(reasoning)}, "result")

    def advice(self, name: str, output: str, failed: bool = False) -> str:
        """Return the output of a tool that is always shown, as a quotation."""
        values = {"name": name, "said": quoted(output, LONGEST), "failed": failed}
        return _render(self._common, values, "advice")

    def goal(self, game: Rulebook, seat: int) -> str:
        return _goal(self._common, _told_goal(game, seat))

    def text(self, view: View) -> str:
        """Return the whole view as one self-contained text: rules, report and request."""
        return self.texts(view.sight, (view.seat,), {})[0]

    def texts(self, sight: Sight, seats: Iterable[int], rules: dict[int, str]) -> list[str]:
        """Return what seats are told, each in one text that begins with its `rules`.

        Those that lack are added.
        """
        texts, core, terms = list[str](), sight.core, self._terms_of(sight.core.game)
        tell, question_to, template = core.tell, sight.question, self._template_of(core.game)
        for seat in seats:
            if seat not in rules:
                rules[seat] = self.rules(sight.game, seat)
            names = terms[seat] | self._in_words(core.game, tell(seat))
            question = question_to(seat)
            if question and core is sight:
                names["form"] = question.plain_form
                told = _render(template, names, "report", "request")
            else:
                view, told = sight.view(seat), _render(template, names, "report")
                form = question and question.plain_form
                told = _join(told, self._request(view, names, form) if form else self.heard(view))
            head = rules[seat]
            texts.append(f"{head}\n\n{told}" if told and head else told or head)
        return texts

    def _names(self, view: View, notes: Notes = NO_NOTES) -> dict[str, Any]:
        """Return the names that blocks can use: the seat's knowledge over the game's terms."""
        core = view.core
        assert core.told is not None, "a batch of tables has no words"
        told = self._in_words(core.game, core.told)
        return self._terms_of(core.game)[view.seat] | told | {"notes": notes}

    def _template_of(self, game: Rulebook) -> jinja2.Template:
        """Return the template in the words of a game without talk."""
        if game.disguise is None:
            return self._template
        path = str(self.folder) if self.folder else None
        return _template(self.game, self.version, path, game.disguise)

    def _in_words(self, game: Rulebook, values: dict[str, Any]) -> dict[str, Any]:
        if game.disguise is None:
            return values
        names = dict(zip(game.names(), game.names_in_words(), strict=True))
        return game.disguise.scale(values, names)

    def _terms_of(self, game: Rulebook) -> list[dict[str, Any]]:
        """Return the names that stay in a game, by seat."""
        if self._game is not game:
            terms = self._in_words(game, game.terms()) | {"notes": NO_NOTES}
            self._terms = [
                terms | {"me": name, "seat": seat, "goal": self.goal(game, seat)}
                for seat, name in enumerate(game.names_in_words())
            ]
            self._game = game
        return self._terms


class Blocks:
    """The prompts beside moves, from ``planning/<name>.j2``; errors as `Prompts`."""

    def __init__(self, name: str, folder: str | Path | None = None) -> None:
        path = str(folder) if folder else None
        self._templates = _template("planning", name, path), _template("", "common", path)

    def goal(self, game: Rulebook, seat: int) -> str:
        return _goal(self._templates[1], _told_goal(game, seat))

    def say(self, block: str, /, **values: Any) -> str:
        """Return a block with these values; one that it lacks is that of ``common.j2``."""
        template, common = self._templates
        return _render(template if block in template.blocks else common, values, block)


def _join(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _told_goal(game: Rulebook, seat: int) -> Goal:
    goal = game.goal(seat)
    return goal._replace(unit=game.disguise.text(goal.unit)) if game.disguise else goal


@lru_cache(64)
def _goal(common: jinja2.Template, goal: Goal) -> str:
    return _render(common, goal._asdict(), f"goal_{goal.kind}")


def versions(game: str, folder: str | Path | None = None) -> list[str]:
    folders = [rooms.wordings(game), Path(folder) / game if folder else None]
    names = {path.stem for root in folders if root for path in root.glob("*.j2")}
    return sorted(names - {"planning"})


class _Environment(sandbox.ImmutableSandboxedEnvironment):
    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is dict and attribute in obj:  # ``a.b.items`` is a key, not a method
            return obj[attribute]
        return super().getattr(obj, attribute)


class _ForeignEnvironment(Guarded, _Environment):
    pass


def _render(template: jinja2.Template, values: dict[str, Any], *blocks: str) -> str:
    """Return blocks in words, an empty line between them."""
    plain, text = _plain(template), ""
    try:
        for block in blocks:
            part = plain[block](values).strip()
            text = f"{text}\n\n{part}" if text and part else text or part
    except Exception:  # jinja's own functions say it, or what is wrong
        text = _join(*(_rendered(template, values, block) for block in blocks))
    # Indented lines are the templates' way of being legible; backwards is the faster search.
    if text.rfind("\n ") >= 0 or text.rfind(" \n") >= 0:
        text = "\n".join(map(str.strip, text.splitlines()))
    return text


def _rendered(template: jinja2.Template, values: dict[str, Any], block: str) -> str:
    if block not in template.blocks:
        raise BadParameter(f"{template.filename} lacks the block {block!r}")
    environment = template.environment
    try:
        pieces = template.blocks[block](template.new_context(values, shared=True))
        pieces = environment.pieces(pieces) if isinstance(environment, Guarded) else pieces
        return "".join(pieces).strip()
    except Exception as error:  # whatever a template does wrong
        raise BadParameter(f"{template.filename}, block {block!r}: {_fault(error)}") from error


@lru_cache(64)
def _plain(template: jinja2.Template) -> dict[str, Any]:
    """Return a template's plain functions by block; none of a stranger's, who has limits."""
    environment = template.environment
    if isinstance(environment, Guarded) or not environment.loader or not template.name:
        return {}
    source = environment.loader.get_source(environment, template.name)[0]
    return plain_blocks(environment.parse(source), FILTERS)


def _fault(error: Exception) -> str:
    if isinstance(error, jinja2.TemplateNotFound):
        return f"there is no template {error.name!r} in its folder"
    if isinstance(error, jinja2.TemplateError):
        return str(error.message)
    return f"{type(error).__name__}: {error}"


def _ours(path: str) -> tuple[str, str, None] | None:
    game, _, name = path.rpartition("/")
    game, name = (name.removesuffix(".j2"), "planning.j2") if game == "planning" else (game, name)
    folder = (rooms.wordings(game) if game else None) or FOLDER
    file = folder / name
    return (file.read_text("utf-8"), str(file), None) if file.is_file() else None


class _Filled(jinja2.BaseLoader):
    """Wordings with the words in place that they mark: those of a disguise, or the plain ones."""

    def __init__(self, loader: jinja2.BaseLoader, disguise: Disguise | None) -> None:
        self.loader, self.disguise = loader, disguise

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, Any, Any]:
        source, file, fresh = self.loader.get_source(environment, template)
        if self.disguise is None:
            return unmarked(source), file, fresh
        return self.disguise.fill(source, file or template), file, fresh


@lru_cache(1024)
def _template(
    game: str, version: str, folder: str | None, disguise: Disguise | None = None
) -> jinja2.Template:
    settings: dict[str, Any] = {"undefined": jinja2.StrictUndefined}
    settings |= {"trim_blocks": True, "lstrip_blocks": True}
    environment: jinja2.Environment
    ours = jinja2.FunctionLoader(_ours)
    if folder:
        loader = _Filled(jinja2.ChoiceLoader([FolderLoader(folder), ours]), disguise)
        environment = _ForeignEnvironment(FILTERS.values(), loader=loader, **settings)
    else:
        environment = _Environment(loader=_Filled(ours, disguise), **settings)
        environment.filters |= FILTERS
    path = f"{game}/{version}.j2" if game else f"{version}.j2"
    try:
        template = environment.get_template(path)
    except jinja2.TemplateNotFound:
        existing = versions(game, folder)
        if not existing and game and game != "planning":
            raise BadParameter(
                f"{game} has no words for players who read: write wordings/{version}.j2 with the "
                f"blocks {', '.join(BLOCKS)} beside the module of its rules, or "
                f"<prompt_folder>/{game}/{version}.j2"
            ) from None
        raise unknown(f"wording of {game}", version, existing) from None
    except jinja2.TemplateSyntaxError as error:
        raise BadParameter(f"{error.filename}, line {error.lineno}: {error.message}") from None
    except Exception as error:  # no text, a link that leads out, too deep to be read
        raise BadParameter(f"{path} in {folder}: {_fault(error)}") from error
    needed = _NEEDED.get(game, BLOCKS)
    for block in needed:
        if block not in template.blocks:
            raise BadParameter(f"{template.filename} lacks the block {block!r} (needs {needed})")
    return template
