"""Speed figures."""

from llm_games.benchmarks.studies.speed import episodes
from llm_games.benchmarks.studies.speed import learner_speed as learners


def test_what_is_done_inside_something_watched_counts_there(monkeypatch):
    watch, clock = learners.Watch(), iter([1.0, 4.0])
    monkeypatch.setattr(learners.time, "process_time", lambda: next(clock))
    inner = watch.calls(lambda number: number + 1, "other")
    assert watch.calls(lambda number: 2 * inner(number), "rules")(3) == 8
    assert watch.spent == {"rules": 3.0}


def test_views_are_measured_beside_loops_of_single_ones(monkeypatch):
    monkeypatch.setattr(episodes, "SECONDS", 0.001)
    monkeypatch.setattr(learners, "RUNS", 1)
    monkeypatch.setattr(learners, "MANY", 4)
    games = [("sealed_bid_auction", "truthful"), ("battle_royale", "random")]
    rows = list(learners.views(games, (1, 2)))
    assert [row["game"] for row in rows] == ["sealed_bid_auction", "battle_royale"]
    for row in rows:
        assert list(row)[2:] == ["1", "1, times a loop", "2", "own share"]
        assert all(row[name] > 0 for name in list(row)[2:])
