"""A statistic is declared once, and everything that shows results of games shows it."""

import csv
import json

import numpy as np
import pytest

from llm_games.benchmarks.judge import results
from llm_games.benchmarks.judge.paper import Measure
from llm_games.benchmarks.judge.results import Series, Statistic, measured_by
from llm_games.benchmarks.show.page import build
from llm_games.benchmarks.show.view import run_page
from llm_games.benchmarks.show.view.run_shelf import RunShelf

MEDIAN = Statistic(
    "median payoff",
    lambda episode, seats: float(np.median(episode.payoffs[seats])),
    ends=lambda rules, seats: rules.core.payable_mean(1),
    by_player=True,
)
HIGHEST = Statistic("highest payoff", lambda episode, seats: float(episode.payoffs.max()))
RUN = """\
seed = 1
episodes = 3
[[games]]
game = "public_goods"
params = {players = 3, rounds = 2}
seats = ["rational", "random", "random"]
"""


@pytest.mark.parametrize("statistic", [MEDIAN, HIGHEST], ids=lambda statistic: statistic.name)
def test_one_declaration_shows_a_statistic_everywhere(llm_games, tmp_path, monkeypatch, statistic):
    monkeypatch.setattr(results, "STATISTICS", (*results.STATISTICS, statistic))
    path = tmp_path / "run.db"
    (tmp_path / "run.toml").write_text(RUN)
    code, terminal, _ = llm_games("run", tmp_path / "run.toml", "--db", path)
    assert (code, statistic.title in terminal) == (0, True)

    [game] = json.loads(llm_games("resume", path, "--json")[1])["games"]
    mean = game[statistic.key]["mean"]
    assert all(row[statistic.key]["mean"] is not None for row in game["references"])
    by_player = game.get(f"{statistic.key}_by_player", {})
    assert [*by_player] == (["rational", "random"] if statistic.by_player else [])

    page = build([path], tmp_path / "page")
    assert f">{statistic.title}<" in page.read_text()
    with (page.parent / "tables" / "scores.csv").open() as file:
        numbers = [float(row[statistic.key]) for row in csv.DictReader(file)]
    assert np.mean(numbers) == pytest.approx(mean)

    shelf = RunShelf([path], None)
    shown = run_page.scores(shelf.runs()[0])["grids"]
    shelf.close()
    assert any(statistic.title in grid.columns for grid in shown)


def test_what_a_paper_measures_has_one_interval_everywhere():
    numbers, free = [0.2, 0.9, 0.4, 0.7, 0.5], (-np.inf, np.inf)
    statistic = measured_by(Measure("share", "a share", "higher", lambda episode: None, least=5))
    assert Series(statistic, numbers, (0.0, 1.0)).cell.interval.method == "logit-t"
    assert Series(statistic._replace(least=6), numbers, (0.0, 1.0)).cell.interval is None
    assert Series(statistic, numbers, free).cell.interval.method == "Student t"
