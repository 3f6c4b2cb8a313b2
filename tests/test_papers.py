"""The experiments of the papers: every file can be planned, and played offline."""

import re
from pathlib import Path

import numpy as np
import pytest
from playing import each_row

from llm_games.baselines.players import asks_model
from llm_games.benchmarks.judge.compare import compare
from llm_games.benchmarks.judge.paper import PAPERS, editions, papers
from llm_games.benchmarks.papers.gamma_bench.page import settings
from llm_games.benchmarks.papers.gamma_bench.published import gpt35
from llm_games.benchmarks.papers.gamma_bench.scores import GAMES
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import load, parse
from llm_games.benchmarks.run.plan import Overrides, RunPlan, players, resolve
from llm_games.registry import rulebook

ROOT = Path(__file__).parents[1]
FILES = sorted(f"{f.parent.name.replace('_', '-')}/{f.stem}" for f in PAPERS.glob("*/*.toml"))
GAMMA = [name for name in FILES if name.startswith("gamma-bench/")]


def planned(name: str, **overrides) -> RunPlan:
    given = Overrides(**overrides)
    return resolve(parse(given.apply(load(name)), name), name, given)


def played(name, path, **overrides) -> RunPlan:
    plan = planned(name, **overrides)
    play_run(lambda: start(plan, path), plan, players(plan))
    return plan


@each_row("name", FILES)
def test_every_file_is_a_plan_for_any_player(name):
    assert planned(name).games
    changed = planned(name, seats=["openai:some-model"], settings={"base_url": "http://host/v1"})
    own = {seat.player for game in changed.games for seat in game.seats}
    assert {player for player in own if asks_model(player)} == {"openai:some-model"}


def test_what_there_is():
    for name in ("vanilla", "variants", "robustness", "reasoning", "fixed_strategies", "published"):
        assert f"gamma-bench/{name}" in GAMMA


@each_row(("name", "settings"), [("variants", 46), ("robustness", 88), ("reasoning", 40)])
def test_every_setting_of_the_paper_has_its_published_score(name, settings):
    games = planned(f"gamma-bench/{name}").games
    assert len(games) == settings
    assert all(gpt35(game.rules(), game.change) is not None for game in games)


def test_settings_reach_the_players_that_ask():
    for game in planned("gamma-bench/robustness").games + planned("gamma-bench/reasoning").games:
        for seat in game.seats:
            assert game.change.items() <= seat.settings.items()


def test_the_scripted_player_stays():
    for game, action in zip(
        planned("gamma-bench/fixed_strategies", seats=["openai:m"]).games,
        ("fixed:91", "fixed:0"),
        strict=True,
    ):
        assert [seat.player for seat in game.seats] == [action, *["openai:m"] * 9]


def test_published_settings():
    plan = planned("gamma-bench/published")
    assert plan.scoring == "published"
    assert [game.game for game in plan.games] == list(GAMES)
    assert all(seat.settings["reading"] == "published" for g in plan.games for seat in g.seats)
    assert all(settings("published", lenient=True)[game] != rulebook(game) for game in GAMES)
    assert (
        settings("published")
        == settings("corrected")
        == {game: rulebook(game, preset="gamma_bench") for game in GAMES}
    )


def test_scoring_can_be_chosen():
    assert planned("gamma-bench").scoring == "corrected"
    assert planned("gamma-bench", scoring="v4").scoring == "v4"


PLANNERS = {"auc-arena/vanilla", "auc-arena/planning", "auc-arena/learning"}  # need models
LONG = {f"shall-we-talk/{name}" for name in ("bertrand", "evacuation", "models", "options")}
"""Files of thousands of steps, which their own test plays in short."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*FILES} - PLANNERS - LONG))
def test_every_file_runs(name, tmp_path):
    plan = played(name, tmp_path / "run.db", seats=["random"], episodes=1)
    with Records.open_readonly(tmp_path / "run.db") as records:
        episodes = records.episodes()
    assert len(episodes) == len(plan.games)
    assert {episode.status for episode in episodes} == {"done"}


def test_fixed_strategies_do_the_same_in_every_round(tmp_path):
    played("gamma-bench/fixed_strategies", tmp_path / "run.db", seats=["rational"])
    with Records.open_readonly(tmp_path / "run.db") as records:
        for episode, move in zip(records.episodes(), (91, 0), strict=True):
            moves = np.array([step.record["actions"] for step in records.steps(episode.id)])
            assert moves.shape == (20, 10)
            assert (moves[:, 0] == move).all()


def test_players_meet_the_same_chance(tmp_path):
    for player in ("random", "rational"):
        played("gamma-bench", tmp_path / f"{player}.db", seats=[player], games=["battle_royale"])
    [found] = compare(tmp_path / "random.db", tmp_path / "rational.db").games
    assert found.scores is not None
    assert (found.scores.pairs, found.alone) == (5, [])


def test_every_room_hands_over_a_paper():
    rooms = [path.parent.name for path in PAPERS.glob("*/__init__.py")]
    assert len(papers()) == len(rooms) == 8
    assert len({paper.title for paper in papers()}) == len(rooms)
    scored = [paper.scoring for paper in papers() if paper.scoring]
    assert [scoring.games for scoring in scored] == [GAMES]
    assert editions() == ("corrected", "published", "v4", "v2")


def test_the_docs_name_every_experiment():
    pages = sorted((ROOT / "docs" / "papers").glob("*.md"))
    text = "\n".join(page.read_text("utf-8") for page in pages)
    groups = {name.partition("/")[0] for name in FILES}
    named = set(re.findall(rf"`((?:{'|'.join(groups)})(?:/\w+)?)`", text))
    whole = {name if "/" in name else f"{name}/vanilla" for name in named}
    assert whole == set(FILES)
    assert "(docs/papers.md)" in (ROOT / "README.md").read_text("utf-8")
