"""Every wording of every game: complete, true to the parameters, and in plain characters."""

import copy
import re
import shutil
import time

import numpy as np
import pytest
from playing import NAMES, SMALL, by_game, each_row, every, legal_actions, rows

import llm_games
from llm_games import words
from llm_games.errors import BadParameter, UnknownName
from llm_games.game_rooms import wordings
from llm_games.registry import rulebook
from llm_games.table import Table
from llm_games.view import View
from llm_games.words import PERSONAS, Prompts, _render, listed, number, percent, versions

VERSIONS = ("v1", "v2", "v3", "v4", "v5")

# A change of each of these must change the rules as told: of the defaults, or of other settings.
CHANGES = [
    *(
        (name, {}, {parameter: value})
        for name, told in by_game("TOLD", {}).items()
        for parameter, values in told.items()
        for value in values
    ),
    *rows("TOLD_FROM"),
]


@each_row("name", NAMES)
def test_there_are_five_wordings(name):
    assert versions(name) == list(VERSIONS)


@each_row(("name", "base", "change"), CHANGES, by=lambda row: row[0])
def test_every_parameter_is_in_the_rules(name, base, change):
    for version in VERSIONS:
        before, after = llm_games.rules(name, **base), llm_games.rules(name, **(base | change))
        prompts = Prompts(name, version)
        assert prompts.rules(before, 1) != prompts.rules(after, 1)
        for value in change.values():
            if isinstance(value, int) and not isinstance(value, bool) and name != "battle_royale":
                assert re.search(rf"(?<![\d.]){value}(?![\d.]*\d)", prompts.rules(after, 1)), value


def moments(name, more):
    game = llm_games.rules(name, **more)
    rng = np.random.default_rng(4)
    state, views = game.reset(4), []
    while True:
        views += [View.of(game, state, seat) for seat in range(game.players)]
        if state.over:
            return views
        state, _ = game.step(state, legal_actions(game, state, rng))


@every
def test_every_block_renders_at_every_moment(name, more):
    for version in VERSIONS:
        prompts, asked = Prompts(name, version), 0
        for view in moments(name, more):
            rules, report = prompts.rules(view.game, view.seat), prompts.report(view)
            request = prompts.request(view)
            assert (request == "") == (view.question is None)
            if view.question is not None:
                asked += 1
                assert view.question.form() in request
            for text in (rules, report, request):
                assert text.isascii()
                assert not re.search(r"None|\{\{|\{%|<__|nan|\n\n\n| \n|  |Undefined", text), text
                assert text == text.strip()
        assert asked


@every
def test_cue_and_persona_reach_the_player(name, more):
    for version in VERSIONS:
        prompts = Prompts(name, version)
        view = next(view for view in moments(name, more) if view.question is not None)
        plain = prompts.rules(view.game, view.seat)
        for persona in (*PERSONAS, "You are shy."):
            told = prompts.rules(view.game, view.seat, persona)
            sentence = told.removesuffix(plain)
            assert sentence != told
            assert sentence.endswith(".\n\n")
        request = prompts.request(view, reasoning=True)
        assert view.question.form(reasoning=True) in request
        assert "step by step" in request
        assert "step by step" not in prompts.request(view)


def leaves(value, path=()):
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, inner in pairs for leaf in leaves(inner, (*path, key))]
    return [] if value is None else [path]


def altered(told, path):
    told = copy.deepcopy(told)
    inner = told
    for key in path[:-1]:
        inner = inner[key]
    value = inner[path[-1]]
    change = {bool: lambda: not value, str: lambda: value + "x"}.get(type(value))
    inner[path[-1]] = change() if change else value + (-1 if path[-1] == "fun" else 1)
    return told


def implied(told, path):
    """Tell whether being asked already says it: it is my move, in this phase."""
    mine = ("shooter",), *([("proposer",)] if told.get("phase") == "propose" else [])
    return path in (("phase",), *mine)


@every
def test_everything_a_player_knows_is_said(name, more):
    """Changing any single value that a player is told changes its report or its request."""
    for version in VERSIONS:
        prompts, seen = Prompts(name, version), set()
        for view in moments(name, more):
            if view.question is None:
                continue
            text = prompts.report(view), prompts.request(view)
            for path in leaves(view.told):
                kind = tuple(key for key in path if isinstance(key, str))
                if kind in seen or implied(view.told, path):
                    continue
                other = copy.copy(view)
                other.told = altered(view.told, path)
                if (prompts.report(other), prompts.request(other)) != text:
                    seen.add(kind)
                    continue
                pytest.fail(f"{path} is not said in {text}")


@each_row("name", NAMES)
def test_the_wordings_differ(name):
    view = next(view for view in moments(name, SMALL[name]) if view.question is not None)
    for block in ("rules", "request"):
        texts = {
            prompts.rules(view.game, view.seat) if block == "rules" else prompts.request(view)
            for prompts in (Prompts(name, version) for version in VERSIONS)
        }
        assert len(texts) == len(VERSIONS)


@each_row("name", NAMES)
def test_texts_are_short(name):
    """A tiny model must be able to read them."""
    for version in VERSIONS:
        prompts = Prompts(name, version)
        view = next(view for view in moments(name, SMALL[name]) if view.question is not None)
        assert len(prompts.rules(view.game, view.seat).split()) <= 280
        assert len(prompts.request(view).split()) <= 100


SYMMETRIC = ["beauty_contest", "el_farol_bar", "divide_dollar", "public_goods", "diners_dilemma"]


@each_row("name", SYMMETRIC)
def test_symmetric_games_tell_no_seat(name):
    for version in VERSIONS:
        game = llm_games.rules(name)
        prompts = Prompts(name, version)
        state = game.reset(0)
        texts = {prompts.text(View.of(game, state, seat)) for seat in range(game.players)}
        assert len(texts) == 1
        assert "player_" not in texts.pop()


@each_row(
    ("value", "text"),
    [(3, "3"), (2.5, "2.50"), (0.125, "0.12"), (-0.875, "-0.88"), (60 / 7, "8.57"), (7.0, "7")],
)
def test_numbers_as_people_write_them(value, text):
    assert number(value) == text


def test_ratios_percentages_and_lists():
    ratio = llm_games.rules("public_goods", ratio="2/3").ratio
    assert number(ratio) == "2/3"
    assert number(ratio / 2 * 3 / 8) == "1/8"
    assert percent(ratio * 9 / 10) == "60%"
    assert listed([1, 2.5]) == "1, 2.50"


def test_a_wording_of_ones_own(tmp_path):
    (tmp_path / "divide_dollar").mkdir()
    file = tmp_path / "divide_dollar" / "mine.j2"
    file.write_text(
        "{% block rules %}Share {{ golds }}.{% endblock %}{% block report %}{% endblock %}"
        "{% block request %}{{ form }}{% endblock %}"
    )
    prompts = Prompts("divide_dollar", "mine", tmp_path)
    assert prompts.rules(llm_games.rules("divide_dollar", golds=7), 0) == "Share 7."
    file.with_name("deep.j2").write_text(file.read_text().replace("golds", "a.b.items"))
    deep = Prompts("divide_dollar", "deep", tmp_path)  # a key, not a dict's method
    assert _render(deep._template, {"a": {"b": {"items": 8}}}, "rules") == "Share 8."
    assert "mine" in versions("divide_dollar", tmp_path)
    file.with_name("half.j2").write_text("{% block rules %}{% endblock %}")
    with pytest.raises(BadParameter, match="lacks the block 'report'"):
        Prompts("divide_dollar", "half", tmp_path)
    file.with_name("bad.j2").write_text("{% block rules %}")
    with pytest.raises(BadParameter, match="line 1"):
        Prompts("divide_dollar", "bad", tmp_path)


def test_unknown_wordings_name_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'v1'"):
        Prompts("divide_dollar", "V1")


# -- folders of strangers ------------------------------------------------------------------------

DOUBLED = "{% set a = 'xxxxxxxxxx' %}" + "".join(
    "{% set a = a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a %}" for _ in range(9)
)
HOSTILE = [
    ("{{ 1 / 0 }}", "ZeroDivisionError"),
    ("{{ players + 'a' }}", "TypeError"),
    ("{{ 1 + none }}", "TypeError"),
    ("{{ nobody }}", "nobody"),
    ("{{ players.__class__.__mro__ }}", "__class__"),
    ("{% include 'missing.txt' %}", "missing.txt"),
    ("{% include 'link.txt' %}", "leads out of its folder"),
    ("{{ 'x' * 10**9 }}", "no number"),
    ("{{ [0] * 10**9 }}", "no number"),
    ("{{ 9 ** 9999 }}", "far too large"),
    ("{{ 'x'.ljust(10**9) }}", "ljust"),
    ("{{ '{:>1000000000}'.format(1) }}", "format"),
    ("{{ '%1000000000d' % 1 }}", "width"),
    ("{{ '%1000000000d' | format(1) }}", "width"),
    ("{{ '%*d' | format(1000000000, 1) }}", "width"),
    ("{{ 'x' | center(10**9) }}", "center"),
    ("{{ ('a' ~ 'b') | replace('a', 'b') }}", "replace"),
    ("{{ 5 | round(-1000000000) }}", "round"),
    (DOUBLED + "{{ a }}", "characters"),
    (DOUBLED.replace(" ~ ", " + ") + "{{ a }}", "characters"),
    ("{% for i in s %}{% for j in s %}{% endfor %}{% endfor %}", "steps"),
    ("{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}", "Recursion"),
    (
        "{% macro f(n) %}{% if n %}{{ f(n-1) ~ f(n-1) }}{% endif %}{% endmacro %}{{ f(40) }}",
        "steps",
    ),
    ("{% for i in s %}" + "x" * 100 + "{% endfor %}", "characters"),
    ("{{" * 200_000, "Recursion"),
    ("{{" + "(" * 5000 + "1" + ")" * 5000 + "}}", "Recursion"),
    ("\udc80", "Unicode"),
]


def folder_of(tmp_path, rules):
    folder = tmp_path / "prompts"
    (folder / "public_goods").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("a secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    rules = rules.replace(" s %}", f" '{'x' * 20_000}' %}}")
    text = f"{{% block rules %}}{rules}{{% endblock %}}{{% block report %}}{{% endblock %}}"
    text += "{% block request %}{{ form }}{% endblock %}"
    path = folder / "public_goods" / "mine.j2"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return folder


@pytest.mark.parametrize(("rules", "fault"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_template_of_a_stranger_ends_in_an_error_that_names_it(tmp_path, rules, fault):
    folder, game = folder_of(tmp_path, rules), rulebook("public_goods")
    began = time.process_time()
    with pytest.raises(BadParameter, match=r"public_goods.mine\.j2") as caught:
        Prompts("public_goods", "mine", folder).rules(game, 0)
    assert time.process_time() - began < 20  # a second on a quiet machine; hours were possible
    assert fault.lower() in str(caught.value).lower()
    assert "a secret" not in str(caught.value)


def test_our_own_wordings_can_be_copied_and_read_the_same(tmp_path):
    """What guards a folder changes no word of a template that is well meant."""
    for name in NAMES:
        folder = tmp_path / name
        folder.mkdir()
        for version in versions(name):
            shutil.copy(wordings(name) / f"{version}.j2", folder)
        game = rulebook(name)
        state = game.reset(0)
        seat = int(np.flatnonzero(game.asked(state))[0])
        view = View.of(game, state, seat)
        for version in versions(name):
            ours, copied = Prompts(name, version), Prompts(name, version, tmp_path)
            assert copied.folder is not None
            assert copied.rules(game, seat) == ours.rules(game, seat)
            assert copied.request(view) == ours.request(view)


def test_a_link_to_a_wording_outside_its_folder_is_refused(tmp_path):
    folder = folder_of(tmp_path, "")
    (folder / "public_goods" / "v9.j2").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(BadParameter, match="leads out of its folder"):
        Prompts("public_goods", "v9", folder)


@pytest.mark.parametrize("name", NAMES)
def test_plain_functions_say_what_jinja_says(name, monkeypatch):
    table = Table(rulebook(name))
    table.reset(1)
    views = []
    for _ in range(3):
        table.step({})
        views += [table.sight.view(seat) for seat in (0, 1) if not table.state.over]
    for version in versions(name):
        prompts = Prompts(name, version)
        assert prompts._template.blocks.keys() - words._plain(prompts._template) <= {"rules"}
        said = [prompts.text(view) for view in views]
        with monkeypatch.context() as patch:
            patch.setattr(words, "_plain", lambda template: {})
            assert [prompts.text(view) for view in views] == said
