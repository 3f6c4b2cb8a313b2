"""Forced prices: who answers them how, on the recorded state, and whether a cut paid."""

import json
from itertools import combinations

import numpy as np
import pytest

import llm_games as lg
from llm_games.benchmarks.judge.impulse_responses import impulse_responses
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.record.store import Records
from llm_games.benchmarks.run.api import probe_prices
from llm_games.benchmarks.run.replay import replay
from llm_games.errors import BadParameter, LLMGamesError

GAME = "bertrand_competition"
RULES = ("grim", "reciprocal", "match", "undercut:0.5", "best_response")


def played(path, seats, **settings):
    params = {"rounds": 16} | settings.pop("params", {})
    game = {"game": GAME, "params": params, "seats": seats}
    lg.run({"games": [game], "episodes": 2} | settings, path)
    return path


def pattern(responses):
    """Return answers by probe, ``{probe: (rounds,)}``."""
    return {of.probe: np.array([cell.mean for cell in of.answers[:4]]) for of in responses}


def test_rules_are_told_apart_by_their_answers_at_rest(tmp_path):
    patterns = {}
    for rule in RULES:
        params = {"rounds": 24, "initial_price": 8}
        run = played(tmp_path / f"{rule}.db", [rule], params=params, episodes=10)
        responses = probe_prices(run, tmp_path / f"{rule}-forced.db", seats=[0], at=15, beside=[])
        assert {of.size.runs for of in responses} == {10}
        patterns[rule] = pattern(responses)
    for one, other in combinations(RULES, 2):
        shared = patterns[one].keys() & patterns[other].keys()
        apart = [np.abs(patterns[one][p] - patterns[other][p]).max() for p in shared]
        assert max(apart) > 0.1, (one, other)
    cuts = {rule: answers["cut"].round(2).tolist() for rule, answers in patterns.items()
            if "cut" in answers}  # fmt: skip
    assert cuts["grim"] == [-2, -2, -2, -2]
    assert cuts["reciprocal"] == [-2, 0, -2, 0]
    assert cuts["match"] == [-1, 0, -1, 0]
    assert cuts["best_response"] == [-0.25, 0, -0.01, 0]
    assert "undercut:0.5" not in cuts  # it rests at cost, below which no price is forced


@pytest.mark.long
@pytest.mark.parametrize(("preset", "unprofitable"), [(None, 19), ("logit", 17)])
def test_a_cut_by_the_best_reply_does_not_pay_among_firms_that_learned(
    tmp_path, preset, unprofitable
):
    params = {"rounds": 80} | ({"preset": preset} if preset else {})
    markets = [
        {"game": GAME, "label": f"market {m}", "params": params, "seats": [f"q_learning:{m}"]}
        for m in range(20)
    ]
    lg.run({"games": markets}, tmp_path / "run.db")
    responses = probe_prices(
        tmp_path / "run.db", tmp_path / "cut.db", seats=[0], by="best", beside=[]
    )
    assert {of.probe for of in responses} == {"cut"}
    assert len(responses) == 20
    assert sum(of.paid.mean == 0 for of in responses) == unprofitable


def test_a_models_price_is_forced_and_the_rest_of_the_game_is_asked(tmp_path):
    talk = {"talk": {"turns": 1}, "rounds": 6}
    run = played(tmp_path / "run.db", ["mock", "match"], params=talk, order="fixed")
    responses = probe_prices(run, tmp_path / "forced.db", at=2, by="0.25", times=2, beside=[])
    assert {(of.player, of.rivals) for of in responses} == {
        ("mock", ("match",)),
        ("match", ("mock",)),
    }
    follows = [of.answers[0].mean for of in responses if of.rivals == ("match",)]
    sizes = [of.size.mean for of in responses if of.rivals == ("match",)]
    assert follows == pytest.approx(sizes)
    with Records.open_readonly(tmp_path / "forced.db") as records:
        assert replay(records).differences == ()
        recorded = games(records)
        assert len(recorded) == len({game.label for game in recorded})
        point = recorded[0].planned["branch"]
        [(seat, price)] = point["moves"].items()
        assert point["recorded"][seat]["move"] == price  # the first one is without force
        asked = [d for e in recorded[0].done for d in e.decisions() if d.step > point["step"]]
        assert asked


def test_the_command_prints_answers_and_plays_its_own_file_no_more(tmp_path, llm_games):
    run = played(tmp_path / "run.db", ["grim"])
    code, out, _ = llm_games("analyse", "collusion", run, "--dry-run", "--json")
    assert code == 0
    assert {row["calls"] for row in json.loads(out)} == {0}
    forced = tmp_path / "forced.db"
    _, out, _ = llm_games("analyse", "collusion", run, "--seat", "0", "--db", forced, "--json")
    rows = json.loads(out)["responses"]
    assert {row["player"] for row in rows} >= {"grim", "match", "q_learning:0"}
    before = forced.read_bytes()
    _, out, _ = llm_games("analyse", "collusion", forced, "--json")
    assert json.loads(out)["responses"] == rows
    assert forced.read_bytes() == before
    _, out, _ = llm_games("analyse", "collusion", forced)
    assert "+4" in out


def test_half_of_the_branches_have_no_answer_of_the_others(tmp_path):
    run = played(tmp_path / "run.db", ["cooperative"], episodes=1)
    probe_prices(run, tmp_path / "forced.db", seats=[0], beside=[])
    with Records.open_readonly(tmp_path / "forced.db") as records:
        free, cut, rise = games(records)
        assert [of.probe for of in impulse_responses([free, rise])] == ["raise"]
        assert impulse_responses([cut, rise]) == []


@pytest.mark.parametrize(
    ("probes", "message"),
    [
        ({"seats": [2]}, "seats 0 to 1, not 2"),
        ({"at": 15}, "0 to 13"),
        ({"by": "0"}, "above 0, or 'best'"),
        ({"by": "0.001"}, "ticks of 1/100"),
        ({"by": "far"}, "above 0, or 'best'"),
        ({"by": "100"}, "can be forced so"),
        ({"beside": ["nobody"]}, "nobody"),
        ({"labels": ["other"]}, "called 'other'"),
        ({"times": 0}, "times"),
    ],
)
def test_what_cannot_be_forced_is_said(tmp_path, probes, message):
    run = played(tmp_path / "run.db", ["undercut:0.5"], episodes=1)
    with pytest.raises(LLMGamesError, match=message):
        probe_prices(run, tmp_path / "forced.db", **probes)
    assert not (tmp_path / "forced.db").exists()


def test_other_games_have_no_prices_to_force(tmp_path):
    lg.run({"games": [{"game": "public_goods", "seats": ["random"]}]}, tmp_path / "run.db")
    with pytest.raises(BadParameter, match="no finished episode of a price competition"):
        probe_prices(tmp_path / "run.db", tmp_path / "forced.db")
