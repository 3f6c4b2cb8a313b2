"""Alympics: indicators by hand, the published table, recorded runs, rating forms and judges."""

import asyncio
import csv
import dataclasses
import re
from fractions import Fraction
from importlib.resources import files

import numpy as np
import pytest
from playing import each_row, efficiency, price_ratio

import llm_games
from llm_games.baselines.games.water_allocation.theory import Play
from llm_games.baselines.players import llm_player, make_player
from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.papers.alympics import human_ratings
from llm_games.benchmarks.papers.alympics import metrics as alympics
from llm_games.benchmarks.papers.alympics.human_ratings import (
    CRITERIA,
    BadForm,
    Rating,
    case_of,
    choose,
    read_form,
    spreads,
    write_form,
)
from llm_games.benchmarks.papers.alympics.metrics import (
    box_plot,
    curves,
    daily_prices,
    indicators,
    living,
    lowest_prices,
    published,
    supply_ratio,
)
from llm_games.benchmarks.papers.alympics.page import PAPER
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games, read
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import load, parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.errors import BadParameter
from llm_games.games.water_allocation.rules import RESIDENTS, WaterAllocation
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.play import play_table

LOW, MEDIUM, HIGH = (llm_games.rules("water_allocation", preset=f"setting_{i}") for i in (1, 2, 3))
SUPPLIES = (17, 12, 20, 10, 15, 19, 11, 14, 18, 13, 16, 20, 10, 12, 15, 17, 11, 19, 14, 13)


def records(game, rule):
    """Play one table by a rule of its purse; return its days as plain values."""
    state, days = game.reset(0), []
    while not state.over:
        state, outcome = game.step(state, rule(state))
        days.append({key: np.asarray(value).tolist() for key, value in outcome.record.items()})
    return days


def half_days():
    game = WaterAllocation(supplies=SUPPLIES)
    return game, records(game, lambda state: game.purse(state) // 2)


def ended(survivors, days=20):
    """Return the days of a game in which only these are alive at the end and nobody bids."""
    alive = [name[0] in survivors for name, _, _ in RESIDENTS]
    blank = {"actions": [-1] * 5, "won": [False] * 5, "price": -1, "over_budget": [False] * 5,
             "hp": [1] * 5, "balance": [0] * 5, "supply": 15}  # fmt: skip
    day = {"alive": alive, "died": [False] * 5} | blank
    last = {"alive": [True] * 5, "died": [not lives for lives in alive]} | blank
    return [last | {"alive": [True] * 5, "died": [False] * 5}] * (days - 1) + [
        last if days else day
    ]


# -- indicators ------------------------------------------------------------------------------------


@each_row(("survivors", "need"), [("ABCDE", 50), ("AD", 19), ("D", 11), ("E", 12), ("", 0)])
def test_supply_ratio(survivors, need):
    alive = [name[0] in survivors for name, _, _ in RESIDENTS]
    for game, mean in ((LOW, 15), (MEDIUM, 20), (HIGH, 25)):
        assert supply_ratio(game, alive) == (Fraction(mean, need) if need else None)


@each_row(("low", "ratio"), [(10, 0.29), (15, 0.39), (20, 0.49)])
def test_supply_ratio_without_the_upper_end(low, ratio):
    game = WaterAllocation(supply_low=low, supply_high=low + 10, supply_upper_inclusive=False)
    assert supply_ratio(game, [True] * 5) == Fraction(str(ratio))


TEN = ("CE", "CD", "DE", "D", "BE", "CD", "CD", "CD", "E", "AD")


def test_ten_games():
    found = indicators(LOW, [ended(alive) for alive in TEN])
    assert found.survival == pytest.approx((0.1, 0.1, 0.5, 0.7, 0.4))
    assert found.survivors == pytest.approx(1.8)
    assert found.ratio_start == 0.3
    assert found.ratio_end == pytest.approx(0.830853, abs=1e-6)
    assert (found.left_out, found.mean_median) == (0, None)
    eleven = indicators(LOW, [ended(alive) for alive in (*TEN, "")])
    assert eleven.survivors == pytest.approx(18 / 11)
    assert eleven.ratio_end == found.ratio_end
    assert (eleven.left_out, eleven.games) == (1, 11)
    assert indicators(LOW, [ended("", 4)]).ratio_end is None


def test_medians_of_prices():
    boxes = daily_prices([[50, 90], [None, 80], [70, 100]])
    assert [found.median for found in boxes] == [60, 90]
    assert daily_prices([[None], [None]]) == (None,)
    assert daily_prices([[3], [None]])[0].size == 1


@each_row(
    ("values", "expected"),
    [
        ([5], (5, 5, 5, 5, 5, (), 1)),
        ([1, 2, 3, 4], (1, 1.75, 2.5, 3.25, 4, (), 4)),
        ([1, 2, 3, 4, 100], (1, 2, 3, 4, 4, (100,), 5)),
        ([Fraction(1, 2), 1], (0.5, 0.625, 0.75, 0.875, 1, (), 2)),
    ],
)
def test_boxes(values, expected):
    assert box_plot(values) == expected


def test_one_game_by_hand():
    game, days = half_days()
    prices = lowest_prices(game, days)
    assert prices[:5] == [60, 120, 112, 140, 270]
    assert prices[12] is None
    assert np.mean(list(map(float, filter(None, prices)))) == pytest.approx(247.2632, abs=1e-4)
    found = indicators(game, [days])
    assert found.ratio_end == pytest.approx(15 / 23)
    assert found.survival == (0, 0, 0, 1, 1)
    assert found.mean_median == pytest.approx(4698 / 19)
    days_survived = [alympics.ending(game, days, seat).days_survived for seat in range(5)]
    assert days_survived == [6, 6, 8, 20, 20]
    assert found.prices[12] is None


def test_curves():
    game, days = half_days()
    found = curves(game, days)
    assert found.bids[0] == [*(day["actions"][0] for day in days[:7]), *[None] * 13]
    assert found.hp[0][6] == -2
    assert found.hp[0][7] is None
    assert found.balance[4][-1] == 251
    assert found.ratio[-1] == pytest.approx(15 / 23)
    silent = records(game, lambda state: np.full(5, -1))
    assert curves(game, silent).bids == [[None] * 4] * 5
    assert curves(game, silent).ratio == [0.3, 0.3, 0.3, None]


def test_bids_above_the_balance_are_counted():
    game = WaterAllocation(days=2)
    days = records(game, lambda state: game.purse(state) + np.eye(5, dtype=int)[0])
    assert [alympics.ending(game, days, seat).over_budget for seat in range(5)] == [2, 0, 0, 0, 0]


def test_money_with_decimals():
    game = WaterAllocation(money_decimals=2, days=1, supplies=[8])
    days = records(game, lambda state: np.array([1250, -1, -1, -1, -1]))
    assert lowest_prices(game, days) == [Fraction(25, 2)]
    assert curves(game, days).balance[0] == [57.5]


def test_recorded_games_can_be_judged():
    game, days = half_days()
    silent = records(game, lambda state: np.full(5, -1))
    plays = [{name: np.stack([np.array(d[name]) for d in x], -1) for name in x[0]}
             for x in (days, silent)]  # fmt: skip
    found = Play.of(game, plays)
    assert found.survived.T.tolist() == [[False] * 3 + [True] * 2, [False] * 5]
    assert found.supplies[:, 0].tolist() == list(SUPPLIES)
    assert found.supplies[4:, 1].tolist() == [15] * 16
    assert found.bids[0, :, 0].tolist() == [35, 37, 50, 60, 60]
    assert found.living[:, 0, 0].tolist() == [True] * 7 + [False] * 13
    assert efficiency(LOW, found) == pytest.approx(1 / 3, abs=0.01)
    assert price_ratio(game, found) > 1


def test_unfinished_games_are_refused():
    _, days = half_days()
    with pytest.raises(BadParameter, match=r"got 2 games, not finished: \[1\]"):
        indicators(LOW, [days, days[:-1]])
    with pytest.raises(BadParameter, match="got 0 games"):
        indicators(LOW, [])


# -- the published table ---------------------------------------------------------------------------


def test_published_table():
    expected = {
        1: ((0.1, 0.1, 0.5, 0.7, 0.4), 1.8, 0.831, 0.83, 185.7),
        2: ((0.8, 0.5, 0.8, 0.8, 0.9), 3.8, 0.537, 0.51, 131.6),
        3: ((1.0, 1.0, 1.0, 1.0, 0.9), 4.9, 0.516, 0.53, 113.8),
        4: ((0.3, 0.1, 0.4, 0.6, 0.7), 2.1, 0.717, 0.72, 177.3),
        5: ((0.6, 0.6, 0.6, 0.5, 0.9), 3.2, 0.652, 0.65, 139.4),
        6: ((1.0, 0.8, 1.0, 1.0, 1.0), 4.8, 0.522, 0.52, 108.8),
    }
    for exact, printed in zip(published("exact"), published("printed"), strict=True):
        rates, survivors, ratio, as_printed, median = expected[exact.setting]
        assert tuple(exact.survival.values()) == rates
        assert exact.survivors == pytest.approx(survivors)
        assert exact.mean_ratio_end == pytest.approx(ratio, abs=5e-4)
        assert printed.mean_ratio_end == as_printed
        assert exact.mean_median == median
        assert exact.persona == (exact.setting > 3)
    with pytest.raises(BadParameter, match="edition must be one of corrected, printed, exact"):
        published("first")


def test_the_exact_table_follows_from_its_own_entries():
    for setting in published("exact"):
        game = llm_games.rules("water_allocation", preset=f"setting_{setting.setting}")
        for column, ratio in enumerate(setting.ratio_end):
            alive = [setting.survived[name][column] for name, _, _ in RESIDENTS]
            assert ratio == pytest.approx(float(supply_ratio(game, alive)), abs=1e-6)
        assert set(setting.ratio_start) == {float(supply_ratio(game, [True] * 5))}
        for name, alive in setting.survived.items():
            assert setting.survival[name] == pytest.approx(np.mean(alive))
        assert setting.mean_ratio_end == pytest.approx(np.mean(setting.ratio_end), abs=1e-6)


def test_what_was_corrected():
    path = files("llm_games.benchmarks.papers.alympics") / "table2.csv"
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 6 * 7 * 11
    changed = [(r["setting"], r["row"], r["game"]) for r in rows if r["is_corrected"] == "1"]
    assert changed == [
        ("1", "Bob", "10"),
        *(("2", "RSR_E", game) for game in ("5", "6", "7", "avg")),
        *(("3", "RSR_E", game) for game in ("8", "9", "10", "avg")),
    ]
    assert all((r["printed"] == r["corrected"]) == (r["is_corrected"] == "0") for r in rows)


def test_own_results_are_the_published_ones():
    found, paper = indicators(LOW, [ended(alive) for alive in TEN]), published("exact")[0]
    assert found.survival == pytest.approx(tuple(paper.survival.values()), abs=1e-6)
    assert found.survivors == pytest.approx(paper.survivors, abs=1e-6)
    assert found.ratio_start == pytest.approx(paper.mean_ratio_start, abs=1e-6)
    assert found.ratio_end == pytest.approx(paper.mean_ratio_end, abs=1e-6)
    assert (found.mean_median, paper.mean_median) == (None, 185.7)


@each_row("number", range(1, 7))
def test_settings_are_recognised(number):
    game = llm_games.rules("water_allocation", preset=f"setting_{number}")
    assert alympics.setting_of(game) == number
    assert alympics.setting_of(WaterAllocation(days=3)) is None


# -- runs ------------------------------------------------------------------------------------------


def planned(name, **raw):
    return resolve(parse(load(name) | raw, name), name)


def test_experiments():
    names = ("alympics", "alympics/no_persona", "alympics/persona", "alympics/rules",
             "alympics/visitor")  # fmt: skip
    games = {name: planned(name).games for name in names}
    assert [len(found) for found in games.values()] == [6, 3, 3, 21, 6]
    vanilla = games["alympics"]
    assert all(len(game.seeds) == 10 for game in vanilla)
    assert [game.rules().mean_supply for game in vanilla] == [15, 20, 25] * 2
    draws = [
        game.rules().reset(game.seeds[3]).supplies.tolist() for game in (vanilla[0], vanilla[3])
    ]
    assert draws[0] == draws[1]  # personas are compared on the same water
    assert [seat.player for seat in games["alympics/visitor"][0].seats].count("even") == 4


@pytest.mark.parametrize("episodes", [4, 6])
def test_survival_has_intervals_over_games(tmp_path, episodes):
    """A game is one draw: a resident's survival is a share of games, N survivor a mean of them."""
    game = {"game": "water_allocation", "params": {"preset": "setting_3"}}
    raw = {"games": [game], "episodes": episodes, "seats": ["random"]}
    plan = resolve(parse(raw, "test"), "test")
    play_run(lambda: start(plan, tmp_path / "run.db"), plan, players(plan))
    with Records.open_readonly(tmp_path / "run.db") as records:
        [one] = PAPER.read(read(records, "corrected")).values()
        numbers = [sum(ended.alive) for ended in one.done]
        [table] = [g for g in PAPER.sections({"x": one})[0].grids if g.name == "alympics_table2"]
    wins = [sum(ended.alive[seat] for ended in one.done) for seat in range(5)]
    assert [cell.interval for cell in one.survival] == [
        intervals.share(won, episodes) for won in wins
    ]
    wanted = intervals.score(numbers, 0, 5) if episodes >= 5 else None
    assert one.survivors.interval == wanted
    assert one.survivors.mean == one.indicators.survivors
    row = next(table.dicts())
    assert (row["SR Alex n"], row.get("N survivor n")) == (episodes, wanted and episodes)


def test_a_recorded_run(tmp_path):
    game = {"game": "water_allocation", "params": {"preset": "setting_6", "days": 3}}
    path = tmp_path / "run.sqlite"
    others = [{"game": "divide_dollar", "seats": ["random"]}]
    plan = planned("alympics", seats=["even"], episodes=2, games=[game, *others])
    play_run(lambda: start(plan, path), plan, players(plan))
    with Records.open_readonly(path) as run:
        found = [game for game in games(run) if PAPER.owns(game)]
        done = {game.label: [(e.seats, e.records) for e in game.done] for game in found}
        rules = found[0].rules
    assert list(done) == ["water_allocation"]
    days = [records for _, records in done["water_allocation"]]
    assert [len(records) for records in days] == [3, 3]
    assert done["water_allocation"][0][0] == ["even"] * 5
    shown = indicators(rules, days)
    assert shown.survivors == 5
    assert shown.ratio_start == 0.5


# -- ratings ---------------------------------------------------------------------------------------


def played(persona="none"):
    game = WaterAllocation(days=4, persona=persona, supplies=[10, 12, 7, 15])
    players = [make_player("even", game)] * 5
    episode = asyncio.run(play_table(game, players, 1))
    return game, episode.records


def replies_of(seat):
    return ["" if seat else f'{{"bid": {day}}}' for day in range(4)]


def cases(count):
    plain, told = played(), played("default")
    return [
        case_of(f"{kind}_{seat}", *game, replies_of(seat), seat)
        for kind, game in (("plain", plain), ("told", told))
        for seat in range(count)
    ]


def test_the_story_of_a_case():
    plain, told = (
        case_of("x", *played(persona), replies_of(0), 0) for persona in ("none", "default")
    )
    assert "Alex needs 8 units of water a day and earns $70." in plain.story
    assert "Day 1: 10 units of water. Bids: Alex $17, Bob $18, Cindy $25" in plain.story
    assert 'Reply: {"bid": 0}' in plain.story
    assert plain.story.count("Day ") == 4
    assert "After it Alex has $70, health 7, 1 dry days in a row." in plain.story
    assert "unemployed" in told.story
    assert "unemployed" not in plain.story
    assert [c.key for c in told.criteria] == ["IU", "LR", "SE", "AD", "LP", "IA"]
    assert plain.criteria == CRITERIA[:5]
    assert living(ended("AD")) == [True, False, False, True, False]


def test_choosing_cases():
    some = cases(5)
    drawn = choose(some, 6, np.random.default_rng(1))
    assert len({case.name for case in drawn}) == 6
    assert sum(case.persona for case in drawn) == 3
    for count in (3, 12, 0):
        with pytest.raises(BadParameter, match="there are 5 and 5"):
            choose(some, count, np.random.default_rng(1))


def filled(path, scores):
    with path.open(newline="") as lines:
        rows = list(csv.reader(lines))
    for row, score in zip(rows[1:], scores, strict=True):
        row[-1] = score
    with path.open("w", newline="") as lines:
        csv.writer(lines).writerows(rows)


def test_forms(tmp_path):
    some = cases(1)
    path = write_form(tmp_path, "judge_1", some)
    assert path.name == "form_judge_1.csv"
    assert "Alex needs" in (tmp_path / "plain_0.txt").read_text()
    filled(path, [str(1 + i % 5) for i in range(11)])
    ratings = read_form(path, some)
    assert len(ratings) == 11
    assert ratings[0] == Rating("judge_1", "plain_0", "IU", 1)
    assert ratings[-1] == Rating("judge_1", "told_0", "IA", 1)


@each_row("score", ["0", "6", "3.5", "", "five", "-1"])
def test_only_1_to_5_is_a_score(tmp_path, score):
    path = write_form(tmp_path, "j", cases(1))
    filled(path, ["3"] * 10 + [score])
    with pytest.raises(BadForm, match=f"line 12: score must be .* 1 to 5, got '{score}'"):
        read_form(path, cases(1))


def test_forms_that_do_not_fit(tmp_path):
    some = cases(1)
    path = write_form(tmp_path, "j", some)
    filled(path, ["3"] * 11)
    with pytest.raises(BadForm, match="told_0 IU is not asked for"):
        read_form(path, some[:1])
    with pytest.raises(BadForm, match="plain_1 IU is missing"):
        read_form(path, [*some, cases(2)[1]])
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[-1]]))
    with pytest.raises(BadForm, match="told_0 IA is there twice"):
        read_form(path, some)
    path.write_text("judge,case\n")
    with pytest.raises(BadForm, match="columns criterion, score are missing"):
        read_form(path, some)
    with pytest.raises(BadParameter, match="letters, digits"):
        write_form(tmp_path, "../j", some)


def test_spreads_and_what_the_paper_prints():
    ratings = [Rating("a", "x", "IU", score) for score in (1, 2, 3, 4)] + [
        Rating("a", "x", "LP", 5)
    ]
    found = spreads(ratings)
    assert found["IU"] == (1.75, 2.5, 3.25, 2.5, pytest.approx(1.29099, abs=1e-5))
    assert found["LP"] == (5, 5, 5, 5, None)
    printed = human_ratings.published()
    assert printed["model"]["LP"] == (3, 4, 4, 3.88, 0.88)
    assert printed["human"]["AD"] == (3, 3.5, 4.75, 3.7, 1.06)
    assert "IA" not in printed["human"]
    assert list(printed["model"]) == [criterion.key for criterion in CRITERIA]


def test_the_command_writes_forms_and_reads_them(llm_games, tmp_path):
    game = {"game": "water_allocation", "params": {"players": 2, "days": 2}}
    plan = resolve(parse({"games": [game], "seats": ["even"]}, "test"), "test")
    play_run(lambda: start(plan, tmp_path / "a.db"), plan, players(plan))
    code, out, _ = llm_games("analyse", "rate", "a.db", "--judge", "ann", "-o", "forms")
    assert code == 0
    assert "form_ann.csv" in out.replace("\n", "")
    assert "2.00" not in out
    filled(tmp_path / "forms" / "form_ann.csv", ["2"] * 10)
    code, out, _ = llm_games("analyse", "rate", "a.db", "--judge", "ann", "-o", "forms")
    assert re.search(r"information utilisation +this run +2.00 +2.00 +2.00 +2.00 +0.00", out)
    assert re.search(r"published, human players +3.00 +3.50 +4.00 +3.30 +0.82", out)


def test_what_a_resident_came_to():
    game = WaterAllocation(players=2, days=2, hp_start=2, supply_low=10, supply_high=10)
    first = {
        "alive": [True, True], "died": [False, False], "won": [True, False],
        "effective": [50, 40], "balance": [20, 75], "over_budget": [False, True],
    }  # fmt: skip
    second = first | {"died": [False, True], "effective": [30, -1], "balance": [10, 150]}
    days = [first, second]
    assert alympics.ending(game, days, 0) == (2, 2, 80, 10, 0)
    assert alympics.ending(game, days, 1) == (1, 0, 0, 0, 2)
    kept = dataclasses.replace(game, reset_balance_on_death=False)
    assert alympics.ending(kept, days, 1).balance == 150


def test_replies_of_players_that_look_back_are_not_moves(tmp_path):
    seats = [{"player": "openai:m", "learning": True}] * 2
    game = {"game": "water_allocation", "params": {"players": 2, "days": 2}}
    models = {"m": {"base_url": "http://127.0.0.1:9/v1"}}
    raw = {"seats": seats, "models": models, "games": [game], "episodes": 1}
    plan, path = resolve(parse(raw, "test"), "test"), tmp_path / "a.db"
    client = ScriptedClient(
        lambda request: '{"bid": 5}' if request.kind == "move" else '{"lessons": ["Wait."]}'
    )
    made = {key: llm_player(client, {"learning": True}) for key in players(plan)}
    play_run(lambda: start(plan, path), plan, made)
    with Records.open_readonly(path) as run:
        stories = [case.story for case in human_ratings.cases(games(run)[0])]
    assert len(stories) == 2
    assert all(story.count('Reply: {"bid": 5}') == story.count("Reply: ") == 2 for story in stories)
