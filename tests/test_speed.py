"""Speed figures."""

import sys

import pytest

from llm_games.benchmarks.studies.speed import __main__ as speed
from llm_games.benchmarks.studies.speed import episodes
from llm_games.benchmarks.studies.speed import learner_speed as learners


def test_a_peer_that_is_not_installed_is_named(monkeypatch, capsys):
    for missing in ("textarena", "pettingzoo.classic"):
        monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(episodes, "SECONDS", 0.001)
    monkeypatch.setattr(speed, "measure", lambda games: {})
    monkeypatch.setattr(sys, "argv", ["speed"])
    speed.main()
    assert capsys.readouterr().out.count("peer not installed") == 2


def test_what_is_done_inside_something_watched_counts_there(monkeypatch):
    watch, clock = learners.Watch(), iter([1.0, 4.0])
    monkeypatch.setattr(learners.time, "process_time", lambda: next(clock))
    inner = watch.calls(lambda number: number + 1, "other")
    assert watch.calls(lambda number: 2 * inner(number), "rules")(3) == 8
    assert watch.spent == {"rules": 3.0}


@pytest.fixture
def briefly(monkeypatch):
    """Measure for a moment, few copies."""
    monkeypatch.setattr(episodes, "SECONDS", 0.001)
    for name, value in {"RUNS": 1, "MANY": 4, "FEW": 16}.items():
        monkeypatch.setattr(learners, name, value)


def test_views_are_measured_beside_loops_of_single_ones(briefly):
    games = [("sealed_bid_auction", "truthful"), ("battle_royale", "random")]
    rows = list(learners.views(games, (1, 2)))
    assert [row["game"] for row in rows] == ["sealed_bid_auction", "battle_royale"]
    for row in rows:
        assert list(row)[2:] == ["1", "1, times a loop", "2", "own share"]
        assert all(row[name] > 0 for name in list(row)[2:])


@pytest.mark.slow
def test_the_environments_share_of_training(briefly):
    (row,) = learners.training([("el_farol_bar", "level_k:1")])
    assert 0 < row["env"] < 1
    assert 0 < row["DummyVecEnv"] < 1


PEER = """#!{python}
import sys
for line in sys.stdin:
    print("some:game=3" if line == "names\\n" else "1e12 2e12", flush=True)
"""


def test_a_peer_is_asked_in_a_process_of_its_own(briefly, tmp_path):
    peer = tmp_path / "python"
    peer.write_text(PEER.format(python=sys.executable), "utf-8")
    peer.chmod(0o755)
    (row,) = learners.peers(str(peer), [("divide_dollar", "rational")])
    assert (row["players"], row["peer"]) == (3, "some:game")
    assert row["times it, stepped"] == pytest.approx(row["decisions"] / 1e12)
    assert row["times it, as a rollout"] == pytest.approx(row["decisions"] / 2e12)
