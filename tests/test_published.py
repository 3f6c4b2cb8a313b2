import numpy as np
import pytest
from playing import each_row

from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.papers.gamma_bench import published
from llm_games.benchmarks.papers.gamma_bench.scores import GAMES


def test_leaderboard_is_sorted_and_complete():
    board = published.leaderboard()
    assert [entry.rank for entry in board] == list(range(1, 14))
    assert [entry.overall.mean for entry in board] == sorted(
        (entry.overall.mean for entry in board), reverse=True
    )
    assert all(tuple(entry.cells) == GAMES for entry in board)
    first = board[0]
    assert (first.model, first.overall) == ("Gemini-1.5-Pro", MeanCell(69.8, 1.6, 5))
    assert first.cells["public_goods"] == MeanCell(100.0, 0.0, 5)


def test_the_leaderboard_of_v4_has_twelve_models():
    board, later = published.leaderboard("v4"), published.leaderboard()
    assert [entry.rank for entry in board] == list(range(1, 13))
    assert {one.model for one in later} - {one.model for one in board} == {"GPT-4o-0806"}
    first = board[0]
    assert (first.model, first.overall) == ("Gemini-1.5-Pro", MeanCell(68.1, 1.5, 5))
    assert first.cells == later[0].cells | {"sealed_bid_auction": MeanCell(13.3, 4.6, 5)}
    overall = [entry.overall.mean for entry in board]
    assert overall == sorted(overall, reverse=True)
    assert published.rank_of(68.0, "v4") == 2


@each_row(
    "entry",
    [*published.leaderboard(), *published.leaderboard("v4")],
    ids=lambda entry: f"{entry.model} {entry.overall.mean}",
)
def test_overall_is_the_mean_of_the_cells_up_to_rounding(entry):
    assert np.mean([cell.mean for cell in entry.cells.values()]) == pytest.approx(
        entry.overall.mean, abs=0.11
    )


def test_single_runs():
    runs = published.gpt35_runs()
    assert len(runs) == 214
    experiments = {"runs", "temperature", "prompt_version", "reasoning", "variant"}
    assert {run.experiment for run in runs} == experiments
    assert runs[0] == published.Single("runs", "T1", "beauty_contest", 65.4)


@each_row(("overall", "rank"), [(70, 1), (69.8, 1), (69.7, 2), (62.4, 4), (0, 14)])
def test_rank_of(overall, rank):
    assert published.rank_of(overall) == rank
