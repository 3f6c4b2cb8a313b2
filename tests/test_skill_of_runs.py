"""How well players of runs played of references, and what both say of known players."""

import json

import numpy as np
import pytest

import llm_games as lg
from llm_games.benchmarks.judge import references
from llm_games.benchmarks.judge.player_skill import StackedEpisode, measured
from llm_games.benchmarks.show.page import build
from llm_games.benchmarks.studies.skill_accuracy import reference_players
from llm_games.files import cache_folder
from llm_games.game_rooms import ROOMS
from llm_games.registry import rulebook

SAFE = {"walker": "greedy", "injury": "off"}
SMALL = {
    "bertrand_competition": {"rounds": 6},
    "emergency_evacuation": {"layout": "small", "players": 12, "max_rounds": 20, **SAFE},
    "english_auction": {"items": "items_1", "players": 3},
    "battle_royale": {"players": 4},
    "money_request": {"rounds": 200},
    "deal_or_no_deal": {"open_values": True},
    "matrix_game": {"rounds": 20},
    "beauty_contest": {"players": 4, "max": 20},
    "sealed_bid_auction": {"players": 4, "rounds": 8, "valuation_draw": "random"},
}


def run(folder, game, seats, **more):
    short = {"rounds": 3} if hasattr(rulebook(game), "rounds") else {}
    entry = {"game": game, "params": short | SMALL.get(game, {}), "seats": seats, **more}
    return lg.run({"title": "A run", "episodes": 4, "games": [entry]}, db=folder / "run.db")


# -- players that are known ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ROOMS if name != "water_allocation"])
def test_players_known_to_differ_are_told_apart(name):
    """Among some others, a player that draws its moves gives more away than another one."""
    game = rulebook(name, **SMALL.get(name, {}))
    assert any(
        told_apart(list(reference_players(game, range(6), [field])))
        for field in ("random", "rational")
    )


def told_apart(rows):
    found = {row.player: row.skill for row in rows}
    drawn, solved = found["random"], found["rational"]
    if drawn.interim:  # it holds no luck
        return min(drawn.interim) > max(solved.interim) < np.mean(drawn.interim) / 5
    if drawn.gap is None:  # regret is by decision
        return np.mean(drawn.regret) > 0 == max(solved.regret)
    return drawn.gap.low > min(skill.gap.high for skill in found.values())


def test_at_a_mixed_equilibrium_all_are_equal_and_away_from_it_they_are_not():
    """Beside rational guests of the bar nothing is to be gained; beside random ones, by going."""
    rows = {
        (row.field, row.player): row.skill
        for row in reference_players(rulebook("el_farol_bar"), range(8))
    }
    for player in ("rational", "random", "fixed:go", "fixed:stay"):
        assert rows["rational", player].gap.low == 0
    seen = [rows["random", player].gap for player in ("fixed:go", "rational", "fixed:stay")]
    assert seen[0].high < seen[1].gap < seen[2].gap
    assert seen[1].low > 0
    # In hindsight the three lose alike among rational guests; their mixes tell them apart.
    lost = [np.mean(rows["rational", player].regret) for player in ("rational", "fixed:stay")]
    assert abs(lost[0] - lost[1]) < 0.5
    mixes = [rows["rational", p].exploitability.plug for p in ("rational", "random", "fixed:stay")]
    assert mixes[0] < mixes[1] < mixes[2] == 5


# -- runs ------------------------------------------------------------------------------------------


def test_a_dominated_player_by_hand(tmp_path):
    """Ten guests, of whom one orders cheap: 4 a round less, whatever the others do."""
    found = run(tmp_path, "diners_dilemma", ["cooperative"] + ["rational"] * 9)
    cheap, costly = found.skill["diners_dilemma"]
    assert (cheap.player, cheap.per, cheap.solver, cheap.best) == (
        "cooperative", "round", "rational", "rational",
    )  # fmt: skip
    assert cheap.gain == cheap.regret == [4.0] * 4
    assert (cheap.gap.gap, cheap.gap.low, cheap.gap.high) == (4.0, 4.0, 4.0)
    assert (costly.gain, costly.gap.gap, costly.best) == ([0.0] * 4, 0.0, "")
    assert cheap.efficiency == [0.1] * 4  # one of ten does its part
    assert cheap.anarchy == np.inf  # all dine dearly in equilibrium, and have nothing of it
    assert cheap.plain()["anarchy"] is None
    assert cheap.distance == pytest.approx([0.1] * 4)
    assert found.skill["diners_dilemma"][0].plain()["best-reply gap"]["mean"] == 4.0


def test_players_are_followed_to_their_seats(tmp_path):
    """Where players change seats, what they give away goes with them."""
    names = ["cooperative"] + ["rational"] * 9
    for order in ("fixed", "shuffled"):
        folder = tmp_path / order
        folder.mkdir()
        cheap, costly = run(folder, "diners_dilemma", names, order=order).skill["diners_dilemma"]
        assert cheap.gain == [4.0] * 4
        assert costly.gain == [0.0] * 4
        assert (cheap.exploitability.gain, costly.exploitability.gain) == (4.0, 0.0)


def test_what_is_not_paid_again_has_no_replies():
    """Files of other rules are measured without playing them again."""
    game, actions = rulebook("diners_dilemma", rounds=1), np.zeros((10, 1), np.int64)
    steps = {"actions": actions}
    episode = StackedEpisode(game, 1, None, ["one"] * 10, range(10), steps, np.full(10, 5.0))
    (found,) = measured([episode], ["one"] * 10)
    assert found.gain == [0.0 + 4.0]
    (found,) = measured([episode._replace(payoffs=np.full(10, 7.0))], ["one"] * 10)
    assert (found.gain, found.gap, found.solver) == ([], None, "")
    assert found.regret == [4.0]


def test_files_of_other_editions_have_no_replies(tmp_path, monkeypatch):
    found = run(tmp_path, "diners_dilemma", ["random"])
    assert found.skill["diners_dilemma"][0].gain
    monkeypatch.setattr(type(rulebook("diners_dilemma")), "edition", 99)
    (after,) = found.skill["diners_dilemma"]
    assert (after.gain, after.gap) == ([], None)
    assert len(after.regret) == 4


def test_measures_are_in_the_report(tmp_path):
    found = run(tmp_path, "diners_dilemma", ["cooperative"] + ["rational"] * 9)
    page = build([found.path], tmp_path / "report").read_text("utf-8")
    assert "Measures of skill" in page
    table = (tmp_path / "report" / "tables" / "skill.csv").read_text("utf-8").splitlines()
    assert table[0].startswith("run,game,player,per,regret")
    assert len(table) == 3
    without = build([found.path], tmp_path / "bare", baselines=False).read_text("utf-8")
    assert "Measures of skill" not in without
    assert "offline" in page
    assert "offline" not in without


# -- references ------------------------------------------------------------------------------------


def test_a_game_that_cannot_be_solved_costs_only_its_own_measures(tmp_path, monkeypatch):
    large = {"game": "battle_royale", "params": {"players": 13, "interval": 4}, "seats": ["random"]}
    table = {"game": "diners_dilemma", "seats": ["rational"], "params": {"rounds": 2}}
    entries = {"title": "Two", "episodes": 2, "games": [large, table]}
    both = lg.run(entries, db=tmp_path / "run.db")
    (row,) = both.skill["battle_royale"]
    assert "exact solution takes 2..12" in row.why
    assert row.plain()["regret"] is None
    assert both.skill["diners_dilemma"][0].regret == [0, 0]
    rows = {row.player: row for row in both.references["battle_royale"]}
    assert (rows["rational"].n, rows["random"].n) == (0, references.EPISODES)
    assert rows["random"].regret == []
    assert row.why in build([both.path], tmp_path / "page").read_text()

    def broken(game, record):
        raise KeyError("bids")

    monkeypatch.setattr("llm_games.baselines.games.diners_dilemma.theory.deviation", broken)
    assert both.skill["diners_dilemma"][0].why == "KeyError: 'bids'"
    monkeypatch.setattr(references, "remember", lambda name, compute: compute())
    assert {row.why for row in both.references["diners_dilemma"]} == {"KeyError: 'bids'"}


def test_what_is_not_defined_is_no_number(tmp_path):
    given = {"players": 2, "rounds": 1, "valuations": [[5, 60]]}  # whose law is unknown
    game = {"game": "sealed_bid_auction", "params": given, "seats": ["random"] * 2}
    bids = lg.run({"title": "Given", "episodes": 2, "games": [game]}, db=tmp_path / "run.db")
    (row,) = bids.skill["sealed_bid_auction"]
    assert row.exploitability is None
    json.dumps(row.plain(), allow_nan=False)


def test_auctions_that_rules_would_never_end_are_left(tmp_path, monkeypatch):
    monkeypatch.setattr("llm_games.baselines.batch_play.LONGEST", 30)
    slow = {"items": [["A", 100, 300]], "increment_pct": 0, "players": 3}
    game = {"game": "english_auction", "params": slow, "seats": ["fixed:-1", "random", "random"]}
    auction = lg.run({"title": "Slow", "episodes": 2, "games": [game]}, db=tmp_path / "run.db")
    assert auction.references["english_auction"][0].why == "rational take more than 30 turns"
    row = auction.skill["english_auction"][0]
    assert (row.gain, row.gap, len(row.regret)) == ([], None, 2)


def test_of_very_many_seats_only_some_are_measured(tmp_path):
    game = {"game": "diners_dilemma", "params": {"players": 600, "rounds": 1}, "seats": ["random"]}
    many = lg.run({"title": "Many", "episodes": 2, "games": [game]}, db=tmp_path / "run.db")
    (row,) = many.skill["diners_dilemma"]
    assert (len(row.gain), row.exploitability) == (2, None)


def test_references_take_the_models_seats(tmp_path):
    """Rule players stay; where there are none but these, a reference takes all seats."""
    mixed = run(tmp_path, "diners_dilemma", ["tiny"] + ["cooperative"] * 9)
    rational, cooperative, random = mixed.references["diners_dilemma"]
    assert (rational.player, rational.claim, rational.n) == ("rational", "equilibrium", 2)
    # Alone among cheap guests the costly dish brings 9 a round; the others have 4.
    assert list(rational.own) == [3 * 9.0] * 2
    assert list(rational.payoffs) == [3 * (9 + 9 * 4) / 10] * 2
    assert list(cooperative.own) == list(cooperative.payoffs) == [3 * 5.0] * 2
    assert list(rational.regret) == pytest.approx([3 * 9 * 4 / 10] * 2)
    assert 3 * 5 <= random.own[0] <= 3 * 9
    (tmp_path / "all").mkdir()
    (rational, *_) = run(tmp_path / "all", "diners_dilemma", ["random"]).references[
        "diners_dilemma"
    ]
    assert list(rational.own) == [0.0] * 2


def test_the_best_response_is_a_reference_beside_who_always_does_the_same(tmp_path):
    mixed = run(tmp_path, "divide_dollar", ["fixed:91"] + ["tiny"] * 9)
    rows = {row.player: row for row in mixed.references["divide_dollar"]}
    assert [*rows] == ["rational", "best_response", "cooperative", "random"]
    assert list(rows["rational"].own) == [0.0] * 2
    # From the second of three rounds on each of the nine bids 1, which is what 91 leaves them.
    assert list(rows["best_response"].own) == [2.0] * 2


@pytest.mark.parametrize("name", ROOMS)
def test_every_game_has_references(name, tmp_path):
    found = run(tmp_path, name, ["random"]).references[name]
    players = [reference.player for reference in found]
    assert players == ["rational", "cooperative", "random"][-len(found) :]
    assert len(found) == 3 - (name == "water_allocation")  # see `few_references`
    assert not [reference.why for reference in found if reference.why]
    assert {reference.n for reference in found} == {2}


def test_references_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path / "kept"))
    found = run(tmp_path, "diners_dilemma", ["random"])
    first = found.references
    names = {path.name for path in cache_folder().iterdir()}
    assert len(names) == 3
    monkeypatch.setattr(references, "play_rules", lambda *a: pytest.fail("played again"))
    assert found.references == first
    monkeypatch.setattr(references, "EPISODES", 3)
    with pytest.raises(pytest.fail.Exception, match="played again"):
        _ = found.references


def test_a_game_without_players_has_no_references(tmp_path, monkeypatch):
    found = run(tmp_path, "diners_dilemma", ["random"])
    monkeypatch.setattr(references, "rule_of", lambda kind, game: None)
    assert found.references == {"diners_dilemma": []}


def test_why_there_is_no_reference_is_said(tmp_path, monkeypatch):
    from llm_games.errors import BadParameter

    def refuse(*args):
        raise BadParameter("too many players")

    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path / "kept"))
    found = run(tmp_path, "diners_dilemma", ["random"])
    monkeypatch.setattr(references, "play_rules", refuse)
    rows = found.references["diners_dilemma"]
    assert {row.why for row in rows} == {"too many players"}
    assert build([found.path], tmp_path / "report").exists()


def test_the_terminal_shows_references(tmp_path, llm_games):
    path = str(run(tmp_path, "diners_dilemma", ["random"]).path)
    code, out, _ = llm_games("resume", path)  # which is complete, and shown again
    assert code == 0
    assert "rational (equilibrium)" in out
    assert "2 offline" in out
    code, out, _ = llm_games("resume", path, "--no-baselines")
    assert "offline" not in out
    code, out, _ = llm_games("resume", path, "--json")
    (game,) = json.loads(out)["games"]
    assert [row["player"] for row in game["references"]] == ["rational", "cooperative", "random"]
    assert game["references"][0]["payoff"]["interval"]["n"] == game["references"][0]["n"] == 2
