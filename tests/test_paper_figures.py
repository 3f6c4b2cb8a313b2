"""Tables and figures that a paper prints over several games of a run, worked out by hand."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from playing import each_row

from llm_games.benchmarks.judge.means import FREE, estimated
from llm_games.benchmarks.judge.paper import lacking
from llm_games.benchmarks.papers.econ_arena import page as econ_arena
from llm_games.benchmarks.papers.econ_arena.metrics import player_runs
from llm_games.benchmarks.papers.econ_arena.pooled import pooled, pools
from llm_games.benchmarks.papers.gamma_bench import modes, page, published
from llm_games.benchmarks.papers.gamma_bench.page import board, settings
from llm_games.benchmarks.papers.gamma_bench.scores import GAMES
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import Player, games, read
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import load, parse
from llm_games.benchmarks.run.plan import Overrides, players, resolve
from llm_games.benchmarks.show.page import canvas
from llm_games.registry import rulebook


def played(path, source, **overrides):
    given = Overrides(**overrides)
    raw = given.apply(source if isinstance(source, dict) else load(source))
    plan = resolve(parse(raw, "test"), "test", given)
    play_run(lambda: start(plan, path), plan, players(plan))
    return path


# -- γ-Bench, version 2 ----------------------------------------------------------------------------


def test_only_the_auction_of_v2_is_another():
    for lenient in (False, True):
        old, new = settings("v2", lenient), settings("corrected", lenient)
        assert [name for name in GAMES if old[name] != new[name]] == ["sealed_bid_auction"]
        assert old["sealed_bid_auction"].price == "second"


def boards(path, edition):
    with Records.open_readonly(path) as records:
        found = board([read(records, edition)])
        return {grid.title: grid for grid in found.grids}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    names = {"vanilla": "gamma-bench", "v2": "gamma-bench/v2"}
    return {
        key: played(folder / f"{key}.db", name, seats=["random"], episodes=1)
        for key, name in names.items()
    }


def test_v2_has_an_overall_of_its_own(whole):
    [(title, grid)] = boards(whole["v2"], "v2").items()
    [row] = grid.dicts()
    assert title == "arXiv v2"
    assert "this package has no numbers of that version" in grid.note
    assert 0 < row["Overall"] < 100
    assert row["rank"] == ""
    cells = [row[name.replace("_", " ")] for name in GAMES]
    assert row["Overall"] == pytest.approx(np.mean(cells))
    for key, edition in (("v2", "corrected"), ("vanilla", "v2")):  # each with the other's auction
        [grid] = boards(whole[key], edition).values()
        assert [row[2] for row in (*grid.foot, *(grid.rows[n] for n in grid.marked_rows))] == [None]


def test_what_keeps_a_benchmark_from_its_overall_is_said():
    scores = [(name, [] if name == "sealed_bid_auction" else [50.0]) for name in GAMES]
    assert lacking(scores) == ["sealed_bid_auction"]
    assert lacking(scores[:5]) == []  # no whole benchmark


@each_row(("edition", "version", "models"), [("v4", "v4", 12), ("corrected", "v7", 13)])
def test_an_edition_stands_beside_its_own_version(whole, edition, version, models):
    [(title, grid)] = boards(whole["vanilla"], edition).items()
    rows = [*grid.dicts()]
    assert (title, len(rows)) == (f"arXiv {version}", models + 1)
    assert f"2403.11807{version}" in grid.note
    listed = published.leaderboard("v4" if edition == "v4" else "published")
    assert [row["Overall"] for row in rows[:-1]] == [one.overall.mean for one in listed]
    assert not grid.marked_rows  # who is no language model of its own stands in no order with them
    assert [(row[0], row[1].text) for row in grid.foot] == [("", "random")]
    assert "not an LLM" in grid.foot[0][1].small


def test_a_toy_is_none_of_the_ranked():
    for name, toy in (("tiny:constrained", True), ("mock", True), ("openai:m", False)):
        player = Player(name, name)
        assert (player.toy, player.language_model) == (toy, not toy)


BAR = [
    {"actions": [1, 1, 0, 0], "goers": 2, "good": True},
    {"actions": [1, 0, 1, 1], "goers": 3, "good": False},
    {"actions": [1, 0, 1, 1], "goers": 3, "good": False},
]


def test_a_run_at_the_bar():
    rules = rulebook("el_farol_bar", players=4, ratio="1/2")
    found = {name: column.of(rules, BAR) for name, column in modes.BAR.items()}
    assert found == {"went": 2 / 3, "off the ratio": 1 / 6, "crowded": 2 / 3, "changed": 3 / 8}
    assert modes.BAR["changed"].of(rules, BAR[:1]) is None


def test_a_run_of_the_auction():
    records = [
        {"valuations": [200, 0, 50], "actions": [100, 0, 50], "winner": 0},
        {"valuations": [100, 80, 0], "actions": [10, 80, 0], "winner": 1},
    ]
    rules = rulebook("sealed_bid_auction", players=3, price="second", rounds=2)
    found = {name: column.of(rules, records) for name, column in modes.AUCTION.items()}
    assert found == {
        "bid to value": pytest.approx((0.5 + 1 + 0.1 + 1) / 4),
        "at value": 2 / 4,
        "unbid": (100 + 90) / 6,
        "efficient": 1 / 2,
    }


def drawn(sketch):
    axes = Figure().add_subplot()
    return sketch.draw(axes), axes.get_legend_handles_labels()[1]


def test_figure_3_has_both_bars(tmp_path):
    path = played(tmp_path / "bar.db", "gamma-bench/explicit", seats=["random"], episodes=2)
    with Records.open_readonly(path) as records:
        [section] = page.PAPER.sections(read(records, "corrected"))  # and no Table 8
        assert section.title == "Explicit and implicit bar (v2, Figure 3)"
        rows = [*section.grids[0].dicts()]
        said, labels = drawn(section.sketches[0])
    assert [(row["mode"], row["runs"]) for row in rows] == [("implicit", 2), ("explicit", 2)]
    assert all(0 < row["went"] < 1 for row in rows)
    assert rows[0]["went n"] == 2
    assert labels == ["implicit", "explicit", "capacity 6"]
    assert "6.07 on average" in said


def test_figure_7_has_both_prices(tmp_path):
    path = played(tmp_path / "price.db", "gamma-bench/second_price", seats=["truthful"], episodes=1)
    with Records.open_readonly(path) as records:
        [section] = page.PAPER.sections(read(records, "corrected"))
        assert section.title == "First and second price (v2, Figure 7)"
        first, second = section.grids[0].dicts()
        _, labels = drawn(section.sketches[0])
    assert [row["bid to value"] for row in (first, second)] == [1, 1]
    assert (first["S6, v2"], second["S6, v2"], first["S6, corrected"]) == (None, 100, 0)
    assert labels == ["first price", "second price", "own valuation"]


# -- Economics Arena, Figures 1 and 2 --------------------------------------------------------------

GROUPS = {
    "title": "Groups",
    "episodes": 4,
    "seats": ["rational", "cooperative", "random"],
    "games": [
        {
            "game": game,
            "label": f"{game} {group}",
            "params": {"preset": f"econ_arena_{group}", "players": 3},
        }
        for game in ("beauty_contest", "budget_auction")
        for group in "LMH"
    ],
}


@pytest.mark.parametrize(("common", "n"), [(False, {12, 4}), (True, {4})])
def test_groups_are_pooled_session_by_session(tmp_path, common, n):
    """Sessions that meet the same chance are one to the interval, whatever group they are of."""
    path = played(tmp_path / "run.db", GROUPS | {"common_chance": common})
    with Records.open_readonly(path) as records:
        found = games(records)
        contest, auction = pools([(game.name, "melee", game) for game in found])
        assert [len(pool.games) for pool in (contest, auction)] == [3, 3]
        for pool in (contest, auction):
            sessions = [session for game in pool.games for session in game.done]
            for one in pooled(pool):
                seats = [session.seats.index(one.player) for session in sessions]
                runs = [player_runs(e)[0][seat] for e, seat in zip(sessions, seats, strict=True)]
                assert one.sessions == len(runs) == 12
                assert one.payoff.mean == pytest.approx(np.mean([float(r.payoff) for r in runs]))
                assert one.payoff.interval.n == (max(n) if pool is contest else min(n))
                if pool is auction:
                    gains = [float(run.asset_ratio) - 1 for run in runs]
                    assert one.gain.mean == pytest.approx(np.mean(gains))
        found = pooled(contest)
        assert sum(one.payoff.mean for one in found) == pytest.approx(1)
        assert (found[0].gain, found[0].deviation.mean) == (None, 0)  # the rational one names 0


def test_sessions_with_a_history_and_other_players_are_no_pool(tmp_path):
    one, two, *_ = GROUPS["games"]
    longer = {"params": two["params"] | {"rounds": 2}, "label": "longer"}
    others = {"seats": ["random"], "label": "others"}
    raw = GROUPS | {"episodes": 1, "games": [one, two | longer, two | others]}
    with Records.open_readonly(played(tmp_path / "run.db", raw)) as records:
        assert pools([("contest", "melee", game) for game in games(records)]) == []


def test_pooled_payoffs_are_on_the_page(tmp_path):
    with Records.open_readonly(played(tmp_path / "run.db", GROUPS)) as records:
        [section] = econ_arena.sections(read(records, "corrected"))
        [grid] = [grid for grid in section.grids if grid.name == "econ_arena_pooled"]
        figures = {sketch.title: sketch for sketch in section.sketches}
        said, labels = drawn(figures["All groups, payoffs: beauty contest, melee"])
    rows = [*grid.dicts()]
    assert [row["player"] for row in rows] == [*GROUPS["seats"], *GROUPS["seats"]]
    assert {(row["groups"], row["sessions"]) for row in rows} == {(3, 12)}
    assert [row["payoff n"] for row in rows] == [12, 12, 12, 4, 4, 4]
    methods = [row["payoff method"] for row in rows[3:]]
    assert set(methods) <= {"Welch-Satterthwaite", "none"}
    assert "Mean over the 12 sessions of 3 groups, and its 95 % interval (" in said
    assert labels == ["equilibrium"]


def test_captions_speak_of_intervals_where_some_are_drawn():
    lead, one = ", with its 95 % interval", estimated([1.0], FREE)
    assert canvas.resting([one, None], lead) == ""
    assert canvas.resting([one, estimated([1.0, 2.0, 4.0, 3.0], FREE)], lead) == (
        ", with its 95 % interval (Student t; n = 4)"
    )
