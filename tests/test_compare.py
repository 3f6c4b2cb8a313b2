"""Paired comparison of two runs."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import llm_games
from llm_games.baselines.batch_play import play_rules
from llm_games.benchmarks.judge.compare import LEVEL, NothingShared, compare, difference
from llm_games.benchmarks.judge.paired import (
    changes,
    detectable,
    holm,
    needed_episodes,
    paired_t,
    power,
    stratified,
    welch_satterthwaite,
)
from llm_games.benchmarks.judge.paper import score
from llm_games.benchmarks.papers.gamma_bench import published
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.connection import NotARun
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.needed import needed, needed_grids
from llm_games.benchmarks.run.plan import Overrides, plan_of, players, resolve
from llm_games.errors import BadParameter, UnknownName
from llm_games.registry import rulebook

numbers = st.floats(-1e3, 1e3, allow_nan=False).map(lambda x: round(x, 3))


def played(path, games, **settings):
    raw = {"games": [{"game": name, "params": params} for name, params in games]} | settings
    plan = resolve(parse(raw, "test"), "test", Overrides())
    play_run(lambda: start(plan, path), plan, players(plan))
    return path


PUBLIC_GOODS = ("public_goods", {"players": 3, "rounds": 2, "ratio": "3/2"})
BEAUTY = ("beauty_contest", {"players": 3, "rounds": 2})
BATTLE = ("battle_royale", {"players": 3})


def resumed(path, episodes):
    llm_games.resume(path, episodes=episodes)
    return path


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12))
def test_difference_is_antisymmetric(pairs):
    a, b = zip(*pairs, strict=True)
    there, back = difference(a, b), difference(b, a)
    assert there.mean == pytest.approx(-back.mean, abs=1e-9)
    assert (there.p, there.flip, there.note) == (back.p, back.flip, back.note)
    if there.p is None:
        assert there.note in ("1 pair, no test: 2 or more are needed", "no spread, no test")
    else:
        assert there.interval.low == pytest.approx(-back.interval.high, abs=1e-9)
        assert there.interval.low - 1e-9 <= there.mean <= there.interval.high + 1e-9
        assert (there.p <= 0.05) == (there.interval.low > 0 or there.interval.high < 0)


def test_what_is_shown_hangs_on_the_number_of_pairs():
    change = np.array([1.0, 2, 4, 3, 5, 2, 3])
    for pairs in range(1, 8):
        found = difference(np.zeros(pairs), change[:pairs])
        assert (found.p is None) == (found.interval is None) == (pairs < 2)
        assert (found.flip is None) == (pairs < 6)
        assert (found.effect is None) == (pairs < 5)
    assert difference(np.zeros(6), change[:6]).flip == 2 / 2**6


def test_without_spread_there_is_no_test_but_sign_flips():
    found = difference([50] * 5, [100] * 5)
    assert (found.mean, found.p, found.flip, found.note) == (50, None, 2 / 32, "no spread, no test")
    assert difference([1 / 3] * 5, [1 - 2 / 3] * 5).flip == 1  # equal but for rounding
    varied = difference([50, 45, 55, 60, 40], [100] * 5)  # as soon as one run varies
    assert varied.p < 0.001


def test_difference_of_unequal_sides():
    with pytest.raises(BadParameter, match="got 1 and 2"):
        difference([1], [1, 2])
    with pytest.raises(BadParameter, match="one pair or more"):
        difference([], [])


def test_two_runs(tmp_path):
    games = [PUBLIC_GOODS, BATTLE]
    a = played(tmp_path / "a.db", games, episodes=4, seats=["cooperative"])
    b = played(tmp_path / "b.db", games, episodes=4, seats=["rational"])
    found = compare(a, b)
    goods, battle = found.games
    assert (goods.label, goods.alone, goods.notes) == ("public_goods", [], [])
    # All give 20 of 20 and get 30, twice; or all give nothing and keep 20.
    assert goods.scores[:4] == (4, 0, 100, 100)
    assert goods.payoffs[:4] == (4, 60, 40, -20)
    assert goods.scores.p is goods.scores.holm is None
    assert goods.scores.flip == goods.payoffs.flip == 2 / 16
    assert battle.payoffs.a <= 1 / 3
    assert found.families["scores"].overall.b == pytest.approx((100 + battle.scores.b) / 2)
    assert found.families["payoffs"].overall is None
    assert all(game.scores.mean == 0 for game in compare(a, a).games)


def test_tests_of_a_family_are_corrected_together(tmp_path):
    games = [PUBLIC_GOODS, BEAUTY, ("el_farol_bar", {"players": 3, "rounds": 2})]
    a = played(tmp_path / "a.db", games, episodes=6, seats=["random"])
    b = played(tmp_path / "b.db", games, episodes=6, seats=["rational"])
    found = compare(a, b)
    for name, family in found.families.items():
        if name == "measures":  # their paper judges them by scores
            assert (family.tests, family.stratified) == (0, None)
            continue
        made = [game.of(name) for game in found.games]
        assert [one.holm for one in made] == holm([one.p for one in made])
        assert family.tests == sum(one.p is not None for one in made)
        columns = [list(game.changes[name].values()) for game in found.games]
        assert family.stratified == stratified(columns)
    whole = found.families["scores"].overall
    assert whole[:3] == pytest.approx((6, *np.mean([g.scores[1:3] for g in found.games], axis=0)))
    columns = [list(game.changes["scores"].values()) for game in found.games]
    test = welch_satterthwaite(columns)
    assert (whole.p, whole.interval) == (test.p, test.interval)
    assert whole.interval.method == "Welch-Satterthwaite"
    json.dumps(found.plain(), allow_nan=False)
    assert found.plain()["families"]["scores"]["significant"]


def test_an_overall_of_games_that_share_chance_rests_on_means_by_episode(tmp_path):
    alike = [dict(zip(("game", "params", "label"), (*PUBLIC_GOODS, x), strict=True)) for x in "xy"]
    alike.append({"game": BEAUTY[0], "params": BEAUTY[1]})
    runs = []
    for seat in ("random", "rational"):
        raw = {"games": alike, "episodes": 4, "seats": [seat], "common_chance": True}
        runs.append(llm_games.run(raw, tmp_path / f"{seat}.db").path)
    found = compare(*runs)
    x, y, other = (np.array(list(game.changes["scores"].values())) for game in found.games)
    whole = found.families["scores"].overall
    sizes = [np.sqrt((column**2).mean()) for column in (x, y)]
    columns = [x / sizes[0] + y / sizes[1], other]
    assert found.families["scores"].stratified == stratified(columns)  # whatever their units are
    assert whole.mean == pytest.approx(np.mean([x.mean(), y.mean(), other.mean()]))
    assert whole.p == welch_satterthwaite([(x + y) * (2 / 3), other * (2 / 3)]).p
    assert any("games share chance" in note for note in found.families["scores"].notes)


def test_an_overall_of_unequal_games_that_share_chance_adds_up(tmp_path):
    name, params = PUBLIC_GOODS
    each = {"game": name, "params": params, "chance": "one", "series": True}
    games = [each | {"label": str(many), "episodes": many} for many in (5, 3)]
    runs = [
        llm_games.run({"games": games, "seats": [seat]}, tmp_path / f"{seat}.db").path
        for seat in ("random", "rational")
    ]
    found = compare(*runs)
    whole = found.families["scores"].overall
    assert whole.pairs == 3
    assert whole.b - whole.a == pytest.approx(whole.mean)
    assert all("series" in game.notes[0] for game in found.games)


def test_no_overall_of_single_episodes(tmp_path):
    runs = [
        llm_games.run(
            {
                "games": [
                    {"game": name, "params": params, "episodes": 1 + 2 * (name == "battle_royale")}
                    for name, params in (PUBLIC_GOODS, BATTLE)
                ],
                "seats": [seat],
            },
            tmp_path / f"{seat}.db",
        ).path
        for seat in ("random", "rational")
    ]
    found = compare(*runs)
    assert found.families["scores"].overall is None
    assert found.families["scores"].notes == [
        "No Overall: it needs 2 pairs of each game, which is not so of: public_goods."
    ]
    assert found.games[0].scores.note.startswith("1 pair, no test")


def test_an_overall_says_which_differences_it_takes_as_certain(tmp_path):
    def both(goods, beauty):
        games = [
            {"game": name, "params": params, "seats": [{"player": player}], "episodes": 3}
            for (name, params), player in ((PUBLIC_GOODS, goods), (BEAUTY, beauty))
        ]
        return llm_games.run({"games": games}, tmp_path / f"{goods} {beauty}.db").path

    [note] = (
        compare(both("fixed:0", "random"), both("fixed:20", "fixed:50")).families["scores"].notes
    )
    assert note.endswith("which few episodes cannot show: public_goods.")
    assert (
        not compare(both("fixed:7", "random"), both("fixed:7", "fixed:9")).families["scores"].notes
    )


def test_payoff_is_that_of_the_places_that_differ(tmp_path):
    a = played(tmp_path / "a.db", [PUBLIC_GOODS], seats=["fixed:20", "fixed:20", "fixed:20"])
    b = played(tmp_path / "b.db", [PUBLIC_GOODS], seats=["fixed:20", "fixed:0", "fixed:20"])
    [found] = compare(a, b).games
    assert (found.seats, found.notes) == ([1], ["payoffs are of place 1"])
    assert found.payoffs[:5] == (1, 60, 80, 20, None)
    assert found.payoffs.p is None


def test_a_payoff_counts_each_seat_alike_where_seats_are_worth_something(tmp_path):
    pirates = ("pirate_game", {"players": 3})
    seats = (["rational", *["cooperative"] * 2], ["random", *["cooperative"] * 2])
    a, b = (
        played(tmp_path / f"{i}.db", [pirates], episodes=4, order="rotate", seats=names)
        for i, names in enumerate(seats)
    )
    [found] = compare(a, b).games
    [said] = [note for note in found.notes if "counts alike" in note]
    assert said.startswith("payoffs: the lowest seat left proposes")
    with Records.open_readonly(a) as records:
        [game] = games(records)
        paid = {0: [], 1: [], 2: []}
        for episode in game.done:
            paid[episode.row.seating.index(0)].append(episode.payoffs[0])
    assert sorted(map(len, paid.values())) == [1, 1, 2]
    assert found.payoffs.a == pytest.approx(np.mean([np.mean(of) for of in paid.values()]))
    even = compare(a, a).games[0]  # all places, so that it does not matter who sat where
    assert not even.notes
    fixed = [
        played(tmp_path / f"f{i}.db", [pirates], episodes=4, order="fixed", seats=names)
        for i, names in enumerate(seats)
    ]
    assert "nothing is known of seats 1, 2" in compare(*fixed).games[0].notes[-1]


def test_what_does_not_pair_is_said(tmp_path):
    a = played(tmp_path / "a.db", [PUBLIC_GOODS, BATTLE], episodes=3, seats=["random"])
    b = played(tmp_path / "b.db", [PUBLIC_GOODS], episodes=2, seats=["random"])
    d = played(tmp_path / "d.db", [("public_goods", {"players": 4})], seats=["random"])
    goods, battle = compare(a, b).games
    assert (goods.scores.pairs, goods.alone) == (2, ["episode 2 only in A"])
    assert (battle.scores, battle.payoffs) == (None, None)
    assert battle.alone == ["episodes 0, 1, 2 only in A"]
    for game in (PUBLIC_GOODS, BEAUTY):  # of one label and one chance
        raw = {"game": game[0], "params": game[1], "label": "x"}
        llm_games.run({"games": [raw]}, tmp_path / f"{game[0]}.db")
    with pytest.raises(
        NothingShared, match="x: episode 0 of public_goods in A, episode 0 of beauty_contest in B"
    ):
        compare(tmp_path / "public_goods.db", tmp_path / "beauty_contest.db")
    [other_rules] = compare(b, d).games
    assert other_rules.notes == [
        "played with different parameters",
        "played by different numbers of players",
    ]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"seed": 9}, r"A has seed 1, B 9\).*: episodes 0, 1 with another seed in A"),
        ({"order": "fixed"}, "episode 1 with another seating in A, episode 0 pending in B"),
        ({"label": "else"}, "battle_royale: episodes 0, 1 only in A; else: .* only in B"),
    ],
)
def test_runs_that_share_nothing(tmp_path, settings, says):
    raw = {"game": BATTLE[0], "params": BATTLE[1]}
    raw["seats"] = ["random", "rational", "random"]
    label = {"label": settings["label"]} if "label" in settings else {}
    rest = {key: value for key, value in settings.items() if key != "label"}
    a = llm_games.run({"games": [raw], "episodes": 2}, tmp_path / "a.db").path
    b = llm_games.run({"games": [raw | label], "episodes": 2} | rest, tmp_path / "b.db").path
    if "order" in settings:  # as listed is where rotation begins
        assert compare(a, b).games[0].payoffs.pairs == 1
        with closing(sqlite3.connect(b)) as database, database:
            database.execute("UPDATE episodes SET status = 'pending' WHERE number = 0")
    with pytest.raises(NothingShared, match=says) as caught:
        compare(a, b)
    assert "the seed and the order of A" in str(caught.value)


def test_a_guest_is_compared_with_who_sat_there_among_copies(tmp_path):
    seats = ["default", "rational", "rational"]
    game = {"game": BATTLE[0], "params": BATTLE[1], "seats": seats}
    guest, copies, other = (
        llm_games.run(
            {"games": [game], "episodes": 3}, tmp_path / f"{seat[:6]}.db", seats=[seat]
        ).path
        for seat in ("random", "rational", "fixed:strongest")
    )
    runs = []
    for path in (guest, copies, other):
        with Records.open_readonly(path) as records:
            [found] = games(records)
            runs.append([(e.row.seating, e.rewards.sum(axis=0).tolist()) for e in found.done])
    assert [seating[0] for seating, _ in runs[1]] == [0, 0, 0]  # copies do not rotate
    sat = [seating.index(0) for seating, _ in runs[0]]
    assert sorted(sat) == [0, 1, 2]
    for pair, b in (((guest, copies), 1), ((guest, other), 2)):
        [found] = compare(*pair).games
        assert (found.payoffs.pairs, found.alone) == (3, [])
        for side, i in (("a", 0), ("b", b)):
            paid = [total[seat] for seat, (_, total) in zip(sat, runs[i], strict=True)]
            assert getattr(found.payoffs, side) == pytest.approx(np.mean(paid))


def test_a_run_that_was_prolonged_is_noted(tmp_path):
    game = {"game": PUBLIC_GOODS[0], "params": PUBLIC_GOODS[1]}
    a, b = (
        llm_games.run(
            {"games": [game], "episodes": 3, "seats": [seat]}, tmp_path / f"{seat}.db"
        ).path
        for seat in ("random", "rational")
    )
    assert compare(a, b).notes == []
    assert compare(resumed(a, 5), resumed(b, 5)).notes[:2] == [
        "A was prolonged after 3 episodes.",
        "If results had been seen then, p is too small.",
    ]


def test_a_run_that_cannot_go_on_is_not_prolonged(tmp_path):
    game = {"game": PUBLIC_GOODS[0], "params": PUBLIC_GOODS[1]}
    own = {"player": lambda text: {"tokens_contributed": 1}, "name": "mine"}
    path = llm_games.run({"games": [game | {"seats": [own]}]}, tmp_path / "own.db").path
    with pytest.raises(ConfigError, match="Hand them over"):
        llm_games.resume(path, episodes=2)
    with Records.open_readonly(path) as records:
        assert [row.status for row in records.episodes()] == ["done"]
    done = llm_games.resume(path, own={"mine": own["player"]}, episodes=2)
    assert len(done.scores["public_goods"]) == 2


def test_editions_and_errors(tmp_path):
    auction = ("sealed_bid_auction", {"rounds": 3})
    a = played(tmp_path / "a.db", [auction], seats=["random"], scoring="v4")
    b = played(tmp_path / "b.db", [auction], seats=["rational"])
    assert compare(a, b) == compare(a, b, "v4") != compare(a, b, "corrected")
    said = "All episodes have the same valuations: intervals hold for these alone."
    assert compare(a, b).games[0].notes == [said]
    with pytest.raises(UnknownName):
        compare(a, b, "v5")
    with pytest.raises(NotARun):
        compare(a, tmp_path / "nothing.db")


def test_on_the_command_line(llm_games, tmp_path):
    for player in ("random", "rational"):
        played(tmp_path / f"{player}.db", [PUBLIC_GOODS], episodes=2, seats=[player])
    code, out, _ = llm_games("compare", "random.db", "rational.db")
    assert code == 0
    assert "public_goods" in out
    assert "score" in out
    code, out, _ = llm_games("compare", "random.db", "rational.db", "--json")
    found = json.loads(out)
    [game] = found["games"]
    assert (game["scores"]["pairs"], game["scores"]["b"]) == (2, 100)
    assert game["scores"]["interval"]["method"] == "Student t"
    assert found["families"]["scores"]["tests"] == 1
    assert "one file" not in out
    assert "one file" in llm_games("compare", "random.db", "random.db")[1]
    assert llm_games("compare", "random.db", "nothing.db")[0] == 2
    code, _, _ = llm_games("report", "--compare", "random.db", "rational.db", "-o", "out")
    assert code == 0
    assert "Comparison" in (tmp_path / "out/report.html").read_text("utf-8")
    assert llm_games("report", "--compare", "random.db", "-o", "out")[0] == 2
    assert llm_games("report", "random.db", "--scoring", "v9", "-o", "out")[0] == 2


def test_a_plan_says_how_many_episodes_a_difference_needs(llm_games):
    rows = needed(plan_of("gamma-bench"))
    *games, whole = rows
    assert [row.label for row in games] == list(published.GAMES)
    assert {row.of for row in rows} == {"published"}  # a preset is the paper's, too
    stds = [row.cells["el_farol_bar"].std for row in published.leaderboard()]
    bar = next(row for row in games if row.label == "el_farol_bar")
    assert bar.sd == pytest.approx(np.sqrt(np.mean(np.square(stds))))
    assert bar.pairs[10] == (
        needed_episodes(10, bar.sd),
        needed_episodes(10, bar.sd, level=0.05 / 8),
    )
    assert (whole.label, whole.games, whole.episodes) == ("Overall", 8, 5)
    for row in rows:  # where games spread differently, an Overall has fewer degrees of freedom
        sds = [game.sd for game in games] if row is whole else [row.sd]
        assert power(5, row.found, sds, games=row.games) == pytest.approx(0.8)
        for points, (one, corrected) in row.pairs.items():
            assert 2 <= one <= corrected
            assert detectable(one, sds, games=row.games) <= points
    code, out, _ = llm_games("run", "gamma-bench", "--dry-run", "--json", "--game", "pirate_game")
    [told] = json.loads(out)["needed"]
    assert (code, told["label"], told["pairs"]["20"]) == (0, "pirate_game", [9, 9])
    assert "Episodes that each side needs" in llm_games("run", "gamma-bench", "--dry-run")[1]


def drawn(game, rng):
    def among(*values):
        return values[rng.integers(len(values))]

    low, high = {"divide_dollar": (2, 4), "battle_royale": (2, 10)}.get(game, (2, 15))
    params = {"players": int(rng.integers(low, high + 1))}
    if game not in ("battle_royale", "pirate_game"):
        params["rounds"] = int(rng.integers(1, 16))
    more = {
        "beauty_contest": {"ratio": among("1/2", "2/3", "1", "4/3"), "max": among(10, 100, 999)},
        "el_farol_bar": {
            "ratio": among("1/5", "1/2", "4/5"),
            "mode": among("implicit", "explicit"),
        },
        "divide_dollar": {"golds": among(7, 37, 1000)},
        "public_goods": {"tokens": among(1, 8, 50), "ratio": among("1/2", "2", "4")},
        "battle_royale": {"max_shots": among(5, 20, 60), "interval": among(0, 5)},
        "pirate_game": {"gold": among(5, 60, 1000)},
    }
    return params | more.get(game, {})


def delivered(scores, n, by, rng, tries=1000):
    """Return how often the test of a comparison shows a difference between two such sides."""
    found = 0
    for _ in range(tries):
        a, b = rng.choice(scores, n), rng.choice(scores, n) + by
        p = paired_t(changes(a, b)).p
        found += p is not None and p < LEVEL
    same = difference(a, b).p  # which is the one that runs are compared by
    assert same is p is None or same == pytest.approx(p, rel=1e-9)
    return found / tries


@pytest.mark.nightly
@pytest.mark.parametrize("game", published.GAMES)
@pytest.mark.filterwarnings("ignore:no dilemma")
def test_the_power_that_is_promised_is_that_of_this_very_game(game, night, record_property):
    """Random players on both sides, of whom one has the difference that is promised to show."""
    rng, powers = np.random.default_rng(published.GAMES.index(game)), []
    for _ in range(night(2, 60)):
        params, n = drawn(game, rng), int(rng.choice([2, 3, 5, 10, 20]))
        one = {"game": game, "params": params, "seats": ["random"]}
        rows = needed(plan_of({"episodes": n, "games": [one]}))
        rules = rulebook(game, **params)
        side = play_rules(rules, ["random"] * rules.players, range(3000))
        scores = [score(rules, side.records_of(i), "corrected") for i in range(3000)]
        if not rows:
            assert None in scores or np.ptp(scores) == 0, params
            continue
        [row] = rows
        assert row.of == "random"
        promises = [(n, row.found), *((few, by) for by, (few, _) in row.pairs.items() if few < 60)]
        for pairs, by in promises:
            if by is None:  # not even sides that are as far apart as can be
                assert delivered(scores, n, 100, rng) < 0.9, (params, n)
                continue
            powers.append(delivered(scores, pairs, by, rng))
            assert powers[-1] >= 0.7, (params, pairs, by)
            if by is row.found:
                assert powers[-1] <= 0.9, (params, pairs, by)
            elif pairs > 2:
                assert delivered(scores, pairs - 1, by, rng) <= 0.9, (params, pairs, by)
    assert powers
    record_property("promises", len(powers))
    record_property("lowest power of .8", min(powers))


def test_what_no_paper_scores_needs_nothing_known_and_one_episode_shows_nothing():
    assert needed(plan_of("alympics")) == []
    assert list(needed_grids([])) == []
    [row] = needed(plan_of("gamma-bench", Overrides(games=["public_goods"], episodes=1)))
    assert row.found is None


def test_what_cannot_be_detected():
    with pytest.raises(BadParameter, match="n >= 2 pairs"):
        detectable(1, 10)
    with pytest.raises(BadParameter, match="wanted must be between 0 and 1"):
        detectable(5, 10, wanted=1)


def test_no_difference_is_farther_from_0_than_values_can_be_apart(tmp_path):
    """At two pairs the t interval of scores is hundreds of points wide, of a scale of 100."""
    free, cut = (difference([0, 60], [90, 70], widest=w).interval for w in (np.inf, 100))
    assert free.low < -100 < 100 < free.high
    assert cut[:2] == (-100, 100)
    assert cut[2:] == free[2:]
    sides = ("cooperative", "random")
    a, b = (played(tmp_path / n, [PUBLIC_GOODS], episodes=2, seats=[n]) for n in sides)
    [game] = compare(a, b).games
    low, high = rulebook("public_goods", **PUBLIC_GOODS[1]).payable
    for name, width in (("scores", 100), ("payoffs", high - low)):
        interval = game.of(name).interval
        assert -width <= interval.low < interval.high <= width
