"""Pages that the site makes from the rooms and from dated results."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from playing import each_row

from llm_games.benchmarks.studies import costs
from llm_games.benchmarks.studies.dated import read
from llm_games.benchmarks.studies.gains_by_game import COPIES, STEPS, learned, points
from llm_games.game_rooms import ROOMS
from llm_games.registry import game_class, rulebook

ROOT = Path(__file__).parents[1]
GAMES = sorted(name for name, room in ROOMS.items() if room.rules.startswith("llm_games.games."))

SECTIONS = "Rules", "Parameters", "Spaces", "Columns", "Prompts", "Equilibrium", "Players"


@pytest.fixture(scope="module")
def made():
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    import deviations
    import rooms

    yield rooms, deviations
    sys.path.remove(str(ROOT / "docs" / "_ext"))


@each_row("name", GAMES)
def test_a_page_says_all_that_is_declared(made, name):
    rooms, _ = made
    page, rules = rooms.game_page(name, "what the figure shows"), rulebook(name)
    for section in SECTIONS:
        assert f"\n## {section}\n" in page
    for parameter in rules.terms().keys() & {*game_class(name).__dataclass_fields__}:
        assert f"| `{parameter}` |" in page
    for fact in rules.facts:
        assert f"| `{fact.columns(rules.players)[0].name}`" in page
    for version in ("v1", "v2", "v3", "v4", "v5"):
        assert f"<summary>{version}</summary>" in page
    assert "The player `rational` is" in page
    assert "what the figure shows" in page
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        bars = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(bars) == 1, table
        assert not re.search(r", +\|", table), table  # a sentence without its end


def test_files_are_written_when_their_text_has_changed(made, tmp_path, monkeypatch):
    rooms, _ = made
    pages = {"games/one.md": "one", "reference/two.md": "two"}
    monkeypatch.setattr(rooms, "all_pages", lambda: pages.items())
    rooms.write(tmp_path)
    before = (tmp_path / "games/one.md").stat().st_mtime_ns
    (tmp_path / "games/gone.md").write_text("a game that is no more")
    pages["reference/two.md"] = "another"
    rooms.write(tmp_path)
    assert (tmp_path / "games/one.md").stat().st_mtime_ns == before
    assert (tmp_path / "reference/two.md").read_text() == "another"
    assert not (tmp_path / "games/gone.md").exists()


def test_gains_are_those_of_the_game(made):
    """A token given costs its owner 1 - ratio / players in each of 20 rounds."""
    _, deviations = made
    gains = deviations.gains(rulebook("public_goods"), ["fixed:0", "fixed:5"], 40)
    np.testing.assert_allclose(gains, [[0.0] * 40, [-5 * 0.8 * 20] * 40])


def test_a_paying_deviation_is_named(made):
    _, deviations = made
    table = np.array([[3.0, -1.0], [5.0, -2.0], [4.0, 1.0]])
    text = deviations.sentence(["bold", "meek"], table, rulebook("public_goods"))
    assert "What pays here: `bold` (+4)." in text
    text = deviations.sentence(["meek"], table[:, 1:], rulebook("public_goods"))
    assert "None of the 1 replies" in text


@each_row("name", sorted({point.game for point in points()}))
def test_what_a_learner_came_to_is_of_the_rules_of_today(made, name):
    """If not, train it again: ``benchmarks.studies.gains_by_game --games NAME``."""
    _, deviations = made
    found = deviations.learning(rulebook(name))
    assert found is not None
    last = [point.gain for point in points() if point.game == name][-1]
    assert f"ends at {last:+.4g} " in found.sentence


@pytest.mark.slow
def test_a_learner_gains_as_it_learns():
    pytest.importorskip("sb3_contrib")
    first, *_, last = learned("diners_dilemma", seed=0, updates=8)
    assert (first.steps, last.steps) == (0, 8 * STEPS * COPIES)
    assert first.gain < last.gain <= 0  # the best reply is the dominant strategy, rational's own


def test_a_learner_of_other_rules_is_not_shown(made, monkeypatch):
    _, deviations = made
    before = [point._replace(edition=0) for point in points()]
    monkeypatch.setattr(deviations, "points", lambda: before)
    assert deviations.learning(rulebook("public_goods")) is None


def test_what_python_says_of_fields_is_left_out(made):
    rooms, _ = made
    text = ["Alias for field number 0", ""]
    rooms.own_words(None, "property", "name", None, None, text)
    assert text == []


@each_row("said", ["what it was asked for: a move", "a move", "`a`: b\n\nMore: c."])
def test_no_docstring_of_an_attribute_tells_a_type(made, said):
    napoleon = pytest.importorskip("sphinx.ext.napoleon", reason="the extra docs is not installed")
    rooms, _ = made
    text = napoleon.GoogleDocstring(said, what="attribute", name="kind").lines()
    rooms.own_words(None, "attribute", "kind", None, None, text)
    assert "\n".join(text).strip() == said


@each_row(
    ("page", "link", "leads"),
    [
        ("start", "../tests/a.py", "https://github.com/llm-games/llm-games/blob/main/tests/a.py"),
        ("papers/x", "../../LICENSE", "https://github.com/llm-games/llm-games/blob/main/LICENSE"),
        ("papers/x", "../games/y.md", "../games/y.md"),
        ("start", "papers/x.md", "papers/x.md"),
    ],
)
def test_only_links_out_of_the_documents_lead_to_the_repository(made, page, link, leads):
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    import outside

    source = [f"See [it]({link})."]
    outside.lead_out(None, page, source)
    assert source == [f"See [it]({leads})."]


def test_names_of_the_reference_can_be_imported(made):
    rooms, _ = made
    for _, modules in rooms.REFERENCE.values():
        for name in modules.split():
            __import__(f"llm_games.{name}")


def test_the_costs_are_of_all_experiments():
    rows = read(costs.RunCost, costs.FILE)
    assert [row.run for row in rows] == [name.removesuffix("/vanilla") for name in costs.named()]


def test_a_row_of_costs_is_what_is_asked():
    row = costs.row("gamma-bench/second_price")
    assert (row.run, row.games, row.episodes) == ("gamma-bench/second_price", 2, 10)
    assert row.calls == 2 * 5 * 10 * 20  # of each player in each round


def test_every_file_of_results_has_its_page(made):
    import results

    pages = dict(results.pages())
    shown = {f"results/{path.stem}.md" for path in results.RESULTS.iterdir()}
    assert shown - pages.keys() == {"results/q_learning_gaps.md"}  # on the page of solvers
    assert "# PSRO\n" in pages["results/psro_rounds.md"]
    assert "2026-11-23. All rows: [psro_rounds.csv](" in pages["results/psro_rounds.md"]
    assert "| 1 | 1 | 12800 |" in pages["results/psro_rounds.md"]
