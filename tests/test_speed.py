"""Speed figures."""

import random
import subprocess

import pytest

from llm_games.benchmarks.studies.speed import episodes, gate
from llm_games.benchmarks.studies.speed import learner_speed as learners


def test_views_are_measured_beside_loops_of_single_ones(monkeypatch):
    monkeypatch.setattr(episodes, "SECONDS", 0.001)
    monkeypatch.setattr(learners, "RUNS", 1)
    monkeypatch.setattr(learners, "MANY", 2)
    games = [("sealed_bid_auction", "truthful"), ("battle_royale", "random")]
    rows = list(learners.views(games, (1, 2)))
    assert [row["game"] for row in rows] == ["sealed_bid_auction", "battle_royale"]
    for row in rows:
        assert list(row)[2:] == ["1", "1, times a loop", "2", "2, times public goods"]
        assert all(row[name] > 0 for name in list(row)[2:])


class Worker:
    """It takes so many seconds for a work, give or take a twentieth."""

    def __init__(self, cost, seed):
        self.cost, self.rng = cost, random.Random(seed)

    def seconds(self, group, times):
        return times * self.cost * self.rng.uniform(0.95, 1.05)


@pytest.mark.parametrize(("slow", "passes"), [(0, True), (0.2, False)])
def test_a_fifth_slower_is_told_from_noise(slow, passes):
    figures = [gate.ratio(Worker(1 + slow, k), Worker(1, -k - 1), "text") for k in range(20)]
    assert all((figure >= gate.LEAST) is passes for figure in figures)


def test_a_work_is_done_by_workers_in_processes_of_their_own():
    versions = [gate.Version(gate.ROOT, "") for _ in range(2)]
    assert 0.3 < gate.ratio(*versions, "numbers", pairs=1) < 3
    for version in versions:
        version.close()
        assert version.process.returncode == 0


def test_a_clone_without_the_last_release_is_no_green_gate(tmp_path, monkeypatch):
    clone = ["git", "clone", "-q", "--depth=1", f"file://{gate.ROOT}", str(tmp_path / "shallow")]
    subprocess.run(clone, check=True)
    monkeypatch.setattr(gate, "ROOT", tmp_path / "shallow")
    with pytest.raises(SystemExit, match="unshallow"):
        gate.last_release(str(tmp_path))
