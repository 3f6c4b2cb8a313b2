"""Shall We Talk: its metrics and statements, its files, its page, and the contest's personas."""

from __future__ import annotations

import csv
import json
import math
import re
from functools import partial

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines.games.bertrand_competition import collusion
from llm_games.baselines.games.emergency_evacuation.escape import balance
from llm_games.benchmarks.judge.intervals import Interval
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.model_labels import label_run, rubric
from llm_games.benchmarks.judge.results import run_results, total
from llm_games.benchmarks.papers.shall_we_talk import cells, metrics
from llm_games.benchmarks.papers.shall_we_talk import page as page_of
from llm_games.benchmarks.papers.shall_we_talk.plans import agreed_price, joint_plan
from llm_games.benchmarks.papers.shall_we_talk.statements import (
    Clause,
    ContestRun,
    Escape,
    Market,
    statements,
)
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import read as read_run
from llm_games.benchmarks.run.config import load
from llm_games.benchmarks.show.page import build, figures
from llm_games.benchmarks.show.tables import run_tables
from llm_games.errors import BadParameter
from llm_games.registry import rulebook
from llm_games.view import View
from llm_games.words import Prompts
from llm_games.wrappers.clients.scripted import ScriptedClient

# -- the worked examples ---------------------------------------------------------------------------

EXAMPLES = [  # numbers, their sum, winners, what each gets under the three rules, %RSD
    ([33] * 24, 792, [*range(24)], (0, 1, 24), 0),
    ([20] * 12 + [30] * 12, 600, [*range(12)], (0, 1, 12), 20),
    ([*range(1, 25)], 300, [7], (1, 1, 1), 55.377492),
    ([33] * 23 + [22], 781, [23], (1, 1, 1), None),
    ([0] * 24, 0, [*range(24)], (0, 1, 24), 0),
]


@each_row(("numbers", "total", "winners", "prizes", "rsd"), EXAMPLES)
def test_contests_of_24(numbers, total, winners, prizes, rsd):
    assert sum(numbers) == total
    for rule, prize in zip(("exclusive", "independent", "amplified"), prizes, strict=True):
        game = rulebook("beauty_contest", preset="shall_we_talk", prize_rule=rule).core
        _, outcome = game.step(game.reset(0), np.array(numbers))
        assert outcome.rewards.tolist() == [prize * (seat in winners) for seat in range(24)]
    if rsd is not None:
        assert metrics.rsd(numbers) == pytest.approx(rsd, abs=1e-6)


def test_mean_rsd():
    found = [metrics.rsd(numbers) for numbers, *_, rsd in EXAMPLES if rsd is not None]
    assert sum(found) / 4 == pytest.approx(18.844373, abs=1e-6)
    runs = [20, 20, 20, 20], [10, 20, 30, 40], [0, 0, 0, 0], [0, 0, 0, 8]
    found = [metrics.rsd(run) for run in runs]
    assert found == pytest.approx([0, 44.721359549995796, 0, 173.20508075688772], abs=1e-9)
    assert sum(found) / 4 == pytest.approx(54.481610076720884, abs=1e-9)


def test_variance_over_runs():
    curves = np.array([[0, 2, 5, 9], [0, 3, 5, 10], [1, 3, 8, 10]])
    assert curves.mean(axis=0).tolist() == pytest.approx([1 / 3, 8 / 3, 6, 29 / 3])
    assert metrics.variance(curves).tolist() == pytest.approx([1 / 3, 1 / 3, 3, 1 / 3])
    pseudo = metrics.pseudo_variances(curves)
    assert sum(pseudo) / 3 == pytest.approx(1)  # the mean of the four variances
    assert metrics.pseudo_variances(curves[:2]) is None


def test_price_index_and_profit_gain():
    game = rulebook("bertrand_competition")
    pairs = [(6, 6), (7, 7), (8, 8), (6.5, 8), (7.2, 6.8)]
    ticks = np.rint(100 * np.array(pairs)).astype(np.int64).T
    _, profits = game.market(ticks)
    index = collusion.price_index(game, ticks.mean(axis=0) / 100)
    assert index.tolist() == pytest.approx([0, 0.5, 1, 0.625, 0.5])
    gain = collusion.profit_gain(game, profits.mean(axis=0))
    assert gain.tolist() == pytest.approx([0, 0.75, 1, 0.4375, 0.72])


def test_exit_balance():
    counts = [(30, 35, 35), (43, 43, 14), (50, 45, 5), (100, 0, 0)]
    found = [balance(np.array(one)) for one in counts]
    assert found == pytest.approx([0.997683, 0.911213, 0.778881, 0], abs=1e-6)


def test_modal_share_and_windows():
    assert metrics.modal_share([33] * 23 + [22]) == 23 / 24
    prices = [2.0] * 100 + [4.0] * 100
    assert metrics.mean_in(prices, 101, 200) == 4
    assert metrics.mean_in(prices, 101, 201) is None
    assert metrics.slope_in([float(x) for x in range(200)], 11, 60) == pytest.approx(100)


def test_differences():
    found = metrics.difference([3, 4, 5], [1, 2, 3])
    assert found.mean == pytest.approx(2)
    half = 2.7764451 * math.sqrt(2 / 3)  # t of 4 degrees of freedom
    assert found.interval[:2] == pytest.approx((2 - half, 2 + half))
    assert metrics.difference([1, 1], [0, 0]).interval.method == "none"
    assert metrics.difference([], [1]) is None
    assert metrics.difference([2], [1]) == MeanCell(1, None, 1)
    found = metrics.share_difference([True] * 7 + [False] * 3, [True] * 5 + [False] * 5)
    assert found.mean == pytest.approx(0.2)
    p, q = 8 / 12, 6 / 12
    half = 1.959964 * math.sqrt(p * (1 - p) / 12 + q * (1 - q) / 12)
    assert found.interval[:2] == pytest.approx((p - q - half, p - q + half), abs=1e-6)


def test_kappa():
    pairs = [("a", "a")] * 4 + [("b", "b")] * 3 + [("a", "b")] * 2 + [("b", "a")]
    assert metrics.kappa(pairs) == pytest.approx((0.7 - 0.5) / (1 - 0.5))
    assert metrics.kappa([("a", "a")] * 3) is None
    assert metrics.kappa([]) is None


# -- labels by a rule ------------------------------------------------------------------------------

WIN = "Let us all choose 33, so that we win together."
PLANS = [
    ([], "none"),
    ([(0, "Good luck to you.")], "none"),
    ([(0, WIN)], "none"),  # nobody takes it up
    ([(0, WIN), (0, WIN)], "none"),
    ([(0, WIN), (1, "I agree.")], "win_seeking"),
    ([(0, WIN), (1, "I do not agree, and I promise nothing.")], "none"),
    ([(0, WIN), (1, "If everybody picks 33, all of us win.")], "win_seeking"),
    ([(0, "I will choose 20."), (1, "I will choose 31.")], "none"),
    ([(0, "We should all pick different numbers."), (1, "Good idea.")], "risk_avoiding"),
    ([(0, "Avoid the same number, or nobody gets a prize."), (1, "Yes.")], "risk_avoiding"),
    ([(0, WIN), (1, "Let's spread out instead."), (2, "Okay."), (3, "Agreed.")], "risk_avoiding"),
]


@each_row(("messages", "label"), PLANS)
def test_joint_plans(messages, label):
    assert joint_plan(messages) == label


AGREEMENTS = [
    ([], None),
    ([(0, "Shall we both set 7.5?")], None),
    ([(0, "Let us both set 7.5."), (1, "Agreed.")], 7.5),
    ([(0, "I propose $7.50."), (1, "7.5 is fine.")], 7.5),
    ([(0, "I propose 8."), (1, "No deal.")], None),
    ([(0, "I propose 8."), (1, "I propose 7."), (0, "Okay, 7 it is.")], 7),
    ([(0, "Let us keep prices high."), (1, "I agree.")], None),
]


@each_row(("messages", "price"), AGREEMENTS)
def test_agreed_prices(messages, price):
    assert agreed_price(messages, 2) == price


# -- statements ------------------------------------------------------------------------------------


clause = partial(Clause, "", "")


@each_row(
    ("part", "verdict", "region"),
    [
        (Clause("", "", None, 0), "", "above 0"),
        (clause(MeanCell(1, None, 1), 0), "yes, no interval", "above 0"),
        (clause(MeanCell(1, None, 5, Interval(0.5, 2, "", 5)), 0), "yes", "above 0"),
        (clause(MeanCell(1, None, 5, Interval(-1, 2, "", 5)), 0), "yes, not clear", "above 0"),
        (clause(MeanCell(0, None, 5, Interval(-1, 2, "", 5)), 0), "no, not clear", "above 0"),
        (clause(MeanCell(0, None, 5, Interval(-1, 0, "", 5)), high=0, closed=True), "yes",
         "at most 0"),
        (clause(MeanCell(9, None, 5, Interval(8, 9, "", 5)), 6.5, 7.5), "no", "6.5 to 7.5"),
    ],
)  # fmt: skip
def test_verdicts(part, verdict, region):
    assert (part.verdict, part.region) == (verdict, region)


def test_statements_without_runs_have_no_effect():
    parts = statements({})
    assert {part.of for part in parts} == set(metrics.findings())
    assert not any(part.verdict for part in parts)


def made_up():
    rng = np.random.default_rng(5)
    say = {"KBC-talk": 7, "KBC-independent": 4, "KBC-exclusive": 0, "KBC-agreeable": 10}
    say |= {"KBC-disagreeable": 2, "KBC-mixed": 10, "KBC-silent": 0}
    runs = {}
    for cell, many in say.items():
        spread = {"KBC-exclusive": 14, "KBC-agreeable": 1}.get(cell, 4)
        plans = ["win_seeking"] * many + ["risk_avoiding" * (cell == "KBC-exclusive") or "none"] * 9
        middles = 45 if cell == "KBC-silent" else rng.integers(20, 80, 10)
        middles = np.broadcast_to(middles, 10).tolist()
        numbers = [rng.normal(m, min(spread, 4 * m), 24).round().clip(0, 100) for m in middles]
        if cell == "KBC-talk":
            numbers[:4] = [np.full(24, 33)] * 4
        zipped = zip(numbers, plans, strict=False)
        runs[cell] = [ContestRun(list(map(int, own)), plan) for own, plan in zipped]
    rounds = np.arange(1, 1001)
    late = {"BC-silent": np.clip(rounds / 100 + 2, 6, 7), "BC-talk": np.clip(rounds / 80, 5, 8)}
    late["BC-uncooperative"] = np.where(rounds <= 400, rounds / 80 + 2, 8 - rounds / 250)
    for cell, prices in late.items():
        curves = prices + rng.normal(0, 0.02, (5, 1000))
        runs[cell] = [Market(own.tolist(), early=cell == "BC-talk") for own in curves]
    for cell, mean, noise, right in (("silent", 30, 3, 0.1), ("talk", 22, 1, 0.15),
                                     ("uncooperative", 26, 2, 0.3)):  # fmt: skip
        runs[f"EE-{cell}"] = [
            Escape(
                25 * np.clip(rng.normal(0, noise / 50, (4, 1)) + np.arange(1, 51) / 50, 0, 1),
                time=int(mean + 12 + i % 3),
                mean_round=mean + 0.1 * i,
                shares=(0.6 - right + 0.001 * i, 0.4, right + 0.001 * i),
                balance={"silent": 0.8, "talk": 0.9}.get(cell, 0.85) + 0.001 * i,
            )
            for i in range(5)
        ]
    return runs


def test_statements_of_runs_that_say_what_the_paper_says():
    parts = [part for part in statements(made_up()) if part.of != "G1"]
    assert {part.verdict.partition(",")[0] for part in parts} == {"yes"}, [
        (part.of, part.what, part.value, part.verdict) for part in parts
    ]
    assert all(part.value.interval for part in parts)


def test_statements_of_runs_that_say_the_opposite():
    runs = made_up()
    for one, other in (("EE-talk", "EE-silent"), ("KBC-talk", "KBC-silent"),
                       ("BC-talk", "BC-silent")):  # fmt: skip
        runs[one], runs[other] = runs[other], runs[one]
    said = {(part.of, part.what): part.verdict for part in statements(runs)}
    for statement in ("E1", "E3", "B4", "B5", "K3"):
        assert any(v.startswith("no") for (of, _), v in said.items() if of == statement), statement


@pytest.mark.filterwarnings("error")
def test_statements_leave_out_runs_without_a_number_or_of_few_rounds():
    """Some run of each cell has no readable answer; then all have none, and games end early."""
    runs = made_up()
    contests = [cell for cell in runs if cell.startswith("KBC")]
    some = runs | {cell: [*runs[cell], ContestRun([])] for cell in contests}
    values = {(part.of, part.what): part.value for part in statements(runs)}
    assert values == {(part.of, part.what): part.value for part in statements(some)}
    early = {
        cell: [ContestRun([])] * 5
        if cell in contests
        else [one._replace(prices=one.prices[:5]) for one in found]
        if cell.startswith("BC")
        else [one._replace(curves=one.curves[:, :5]) for one in found]
        for cell, found in runs.items()
    }
    known = {part.of for part in statements(early) if part.value}
    assert not known & {"K1", "K2", "K3", "K5", "B1", "B4", "E2"}


# -- personas --------------------------------------------------------------------------------------


@each_row(
    ("players", "third"), [(24, 8), (10, 3), (2, 0), (30, 10)]
)  # the text of the paper has thirty
def test_mixed_personas(players, third):
    game = rulebook("beauty_contest", players=players, personas="mixed")
    batch = game.reset(4, (3,))
    for table in range(3):
        counts = np.bincount(batch.persona[:, table], minlength=3)
        assert counts.tolist() == [players - 2 * third, third, third]
        alone = game.reset(4 + table)
        assert alone.persona.tolist() == batch.persona[:, table].tolist()
    if third:
        assert len({tuple(batch.persona[:, table]) for table in range(3)}) > 1


def test_everybody_is_told_its_own_persona_alone():
    personas = ["agreeable", "none", "disagreeable"]
    game = rulebook("beauty_contest", players=3, personas=personas)
    state = game.reset(1)
    for version in ("v1", "v2", "v3", "v4", "v5"):
        texts = [Prompts("beauty_contest", version).text(View.of(game, state, s)) for s in range(3)]
        for persona, text in zip(personas, texts, strict=True):
            said = [word for word in text.replace(".", " ").split() if word.endswith("agreeable")]
            assert said == [persona] * (persona != "none")
    assert game.observe(state)[:, list(game.column_index).index("persona")].tolist() == [1, 0, 2]
    assert "persona" not in rulebook("beauty_contest").column_index


def test_a_persona_is_told_before_the_talk_too():
    game = rulebook("beauty_contest", preset="shall_we_talk", players=3, personas="agreeable")
    state = game.reset(1)
    speaker = int(np.flatnonzero(game.asked(state))[0])
    assert "You are an agreeable player." in Prompts("beauty_contest").text(
        View.of(game, state, speaker)
    )


@each_row(
    ("personas", "words"),
    [
        ("kind", "personas must be one of 'none', 'agreeable', 'disagreeable', 'mixed'"),
        (["none", "mixed", "none"], "personas must be one of"),
        (["none"], "personas must be a word, or 3"),
        (7, "personas must be one of"),
    ],
)
def test_bad_personas(personas, words):
    with pytest.raises(BadParameter, match=words):
        rulebook("beauty_contest", players=3, personas=personas)


def test_personas_change_no_number_and_no_draw():
    plain, told = (
        rulebook("beauty_contest", max_draw=(10, 1000), personas=p) for p in ("none", "mixed")
    )
    assert plain.reset(3).limit == told.reset(3).limit


# -- players that talk -----------------------------------------------------------------------------


def played(names, **more):
    policies = [lg.player(name) for name in names]
    return lg.play("beauty_contest", policies, seed=3, preset="shall_we_talk", **more)


def spoken(episode):
    """Return what was said, in order, with the speakers."""
    steps = [step.outcome.record for step in episode.steps[:-1]]
    return [(seat, text) for step in steps for seat, text in enumerate(step["actions"]) if text]


@each_row(
    ("player", "label", "numbers"),
    [("agreeable", "win_seeking", {50}), ("disagreeable", "none", {33})],
)
def test_personas_as_players(player, label, numbers):
    episode = played([player] * 24)
    said = spoken(episode)
    assert len(said) == 48
    assert joint_plan(said) == label
    assert {*episode.steps[-1].outcome.record["actions"].tolist()} == numbers


def test_mixed_players_are_what_they_are_told_to_be():
    episode = played(["mixed"] * 24, personas="mixed")
    numbers = episode.steps[-1].outcome.record["actions"]
    assert np.bincount(numbers)[[33, 50]].tolist() == [8, 16]  # who is neither goes along
    assert joint_plan(spoken(episode)) == "win_seeking"
    assert len(spoken(episode)) == 2 * 16


def test_agreeable_players_follow_what_is_named_most():
    episode = played(["announcer:fixed:20"] * 3 + ["agreeable"] * 2, players=5)
    numbers = episode.steps[-1].outcome.record["actions"].tolist()
    assert numbers[:3] == [20] * 3
    assert set(numbers) == {20}


def test_they_play_in_silence_and_by_symbols():
    for talk in ({"turns": 0}, {"turns": 1, "alphabet": 5}):
        episode = played(["agreeable", "disagreeable", "mixed"], players=3, talk=talk)
        assert episode.steps[-1].outcome.record["actions"][0] == 50


# -- the files -------------------------------------------------------------------------------------


@each_row(
    ("game", "labels"),
    [
        ("beauty_contest", ["silent", "talk", "independent", "exclusive", "agreeable",
                            "disagreeable", "mixed"]),
        ("bertrand_competition", ["silent", "talk", "uncooperative"]),
        ("emergency_evacuation", ["silent", "talk", "uncooperative"]),
    ],
)  # fmt: skip
def test_every_cell_has_its_game_in_a_file(game, labels):
    found = cells.cells(game)
    assert [label.partition("-")[2] for label in found] == labels
    assert len(set(found.values())) == len(labels)
    for label, rules in found.items():
        assert cells.cell_of(rules) == label
        assert (rules.core is not rules) == (not label.endswith("silent"))


SHORT = {
    "beauty_contest": {},
    "bertrand_competition": {"rounds": 5, "switch_round": 3},
    "emergency_evacuation": {"players": 5, "max_rounds": 4, "moves": "simultaneous"},
}


@pytest.mark.parametrize("name", ["bertrand", "evacuation", "models", "options"])
def test_the_long_files_run_in_short(name, tmp_path):
    raw = load(f"shall-we-talk/{name}")
    games = []
    for game in raw["games"]:
        more = SHORT[game["game"]]
        switches = game["params"]["preset"].endswith("bc_uncooperative")
        more = {k: v for k, v in more.items() if k != "switch_round" or switches}
        games.append({**game, "params": game["params"] | more})
    changed = {**raw, "episodes": 1, "seats": ["random"], "games": games}
    run = lg.run(changed, db=tmp_path / "run.db")
    with Records.open_readonly(run.path) as records:
        assert [episode.status for episode in records.episodes()] == ["done"] * len(games)


def lines_of(run, title, name, sketches=None):
    """Return the lines of a figure of the first game of that name, by their labels."""
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    [game] = [one for one in run.games if one.name == name]
    drawn = page_of.moves(page_of.Read(run), game) if sketches is None else sketches(game)
    {sketch.title: sketch for sketch in drawn}[title].draw(axes)
    return {line.get_label(): line for line in axes.lines}


@pytest.mark.figures
def test_figures_of_each_firm_and_each_exit(tmp_path):
    """Figure 5 has a line for each firm, and Figure 8 one for each side's exits."""
    games = [
        {"game": "bertrand_competition", "label": "BC", "seats": ["fixed:6", "fixed:7.5"],
         "params": {"preset": "shall_we_talk_bc_silent", "rounds": 5}},
        {"game": "emergency_evacuation", "label": "EE", "seats": ["nearest"],
         "params": {"preset": "shall_we_talk_ee_silent", "walker": "greedy"}},
    ]  # fmt: skip
    ran = lg.run(
        {"title": "t", "episodes": 2, "games": games, "order": "fixed"}, db=tmp_path / "run.db"
    )
    with Records.open_readonly(ran.path) as records:
        run = read_run(records, "corrected")
        lines = lines_of(run, "Prices of each firm", "bertrand_competition")
        for firm, price in (("BC: firm 1", 6), ("BC: firm 2", 7.5)):
            assert lines[firm].get_xdata().tolist() == [1, 2, 3, 4, 5]
            assert lines[firm].get_ydata()[1:].tolist() == [price] * 4
        regret = lines_of(run, "Regret", "bertrand_competition", figures.moves)
        assert regret["sum over players"].get_xdata().tolist() == [
            2,
            3,
            4,
            5,
        ]  # the first is forced
        sides = lines_of(run, "Escaped by exit", "emergency_evacuation")
        ends = [sides[f"EE: {side}"].get_ydata()[-1] for side in ("bottom", "left", "right")]
        whole = lines_of(run, "Escaped by group", "emergency_evacuation")
        groups = [line.get_ydata()[-1] for name, line in whole.items() if "," in name]
        assert sum(ends) == pytest.approx(sum(groups))
        assert min(ends) > 0


# -- the page --------------------------------------------------------------------------------------

SMALL = [
    *(
        {"game": "beauty_contest", "label": label, "params": {"preset": "shall_we_talk", **more}}
        for label, more in (("silent", {"talk": {"turns": 0}}), ("talk", {}), ("odd", {"prize": 3}))
    ),
    *(
        {
            "game": "bertrand_competition",
            "label": f"prices, {kind}",
            "params": {"preset": f"shall_we_talk_bc_{kind}", "rounds": 12},
            "seats": ["proposer"],
        }
        for kind in ("silent", "talk")
    ),
    *(
        {
            "game": "emergency_evacuation",
            "label": f"escape, {kind}",
            "params": {
                "preset": f"shall_we_talk_ee_{kind}",
                "players": 6,
                "walker": "greedy",
            },
            "seats": ["nearest"],
        }
        for kind in ("silent", "talk")
    ),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Play all three cases with rule players, let one judge label them, and write the page."""
    folder = tmp_path_factory.mktemp("talk")
    run = lg.run(
        {"title": "Talk", "episodes": 3, "games": SMALL, "seats": ["mixed"]}, db=folder / "run.db"
    )
    for name, label in (("plan", "risk_avoiding"), ("agreement", "agreement")):
        reply = json.dumps({"label": label})
        client = ScriptedClient(lambda request, reply=reply: reply)
        found = label_run(run.path, rubric(f"shall-we-talk/{name}"), client)
        assert {row.answer for row in found} == {label}
    build([run.path], folder, baselines=False)
    return folder


def table(folder, name):
    with (folder / f"tables/shall_we_talk_{name}.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.figures
def test_contests_stand_beside_the_table(page):
    rows = {(row["game"], row["source"]): row for row in table(page, "kbc")}
    assert rows["talk", "this run"]["cell"] == "KBC-talk"
    assert rows["silent", "this run"]["cell"] == "KBC-silent"
    assert rows["odd", "this run"]["cell"] == ""  # other rules than those of any cell
    assert float(rows["talk", "this run"]["avoid equals %"]) == 100  # the judge's label
    assert rows["silent", "this run"]["avoid equals %"] == ""
    assert float(rows["KBC-exclusive", "published"]["%RSD"]) == 38.13
    assert float(rows["KBC-exclusive", "published"]["avoid equals %"]) == 50
    assert float(rows["KBC-mixed", "published"]["win together %"]) == 100


@pytest.mark.figures
def test_each_case_is_judged_by_a_measure_of_its_own(page):
    with Records.open_readonly(page / "run.db") as records:
        found = run_results(records)
    shown = {
        name: grid
        for grid in run_tables(found, total(found))
        for name in ("spread of numbers", "price index", "escaped")
        if name in grid.columns
    }
    assert [len(grid.rows) for grid in shown.values()] == [3, 2, 2]
    rows = {row["game"]: row for row in table(page, "kbc") if row["source"] == "this run"}
    for line in shown["spread of numbers"].dicts():
        assert line["spread of numbers"] == pytest.approx(float(rows[line["game"]]["%RSD"]))
        assert line["spread of numbers n"] in (3, None)
    assert [line["price index"] for line in shown["price index"].dicts()][1] == 1
    assert [line["escaped"] for line in shown["escaped"].dicts()] == [1, 1]
    text = (page / "report.html").read_text("utf-8")
    assert text.index("Spread of numbers</h3><svg") < text.index("<table")


@pytest.mark.figures
def test_prices_and_escapes_have_tables(page):
    rows = {row["game"]: row for row in table(page, "bc") if row["source"] == "this run"}
    assert {row["cell"] for row in rows.values()} == {"BC-silent", "BC-talk"}
    assert float(rows["prices, talk"]["price index"]) == 1  # both ask for the cartel's price
    assert float(rows["prices, talk"]["early agreement %"]) == 100
    assert rows["prices, silent"]["early agreement %"] == ""
    rows = {row["game"]: row for row in table(page, "ee")}
    assert {row["cell"] for row in rows.values()} == {"EE-silent", "EE-talk"}
    for row in rows.values():
        assert float(row["escaped %"]) == 100
        assert sum(
            float(row[f"{side} %"]) for side in ("bottom", "left", "right")
        ) == pytest.approx(100)
        assert 0 <= float(row["exit balance"]) <= 1


@pytest.mark.figures
def test_statements_and_labels_on_the_page(page):
    rows = table(page, "findings")
    said = {(row["id"], row["measured here"]): row["these runs"] for row in rows}
    assert {of for of, _ in said} == set(metrics.findings())
    assert said["B1", "mean price of rounds 401-600, silent"] == "not played"
    assert said["E3", "balance of the exits, talk less silent"].startswith(("yes", "no,"))
    labels = {(row["game"], row["label by"]): row for row in table(page, "labels")}
    assert labels["talk", "rule"]["win_seeking"] == "3"
    assert labels["talk", "judge"]["risk_avoiding"] == "3"
    assert float(labels["talk", "judge"]["same label %"]) == 0
    assert float(labels["prices, talk", "judge"]["same label %"]) == 100
    text = (page / "report.html").read_text("utf-8")
    assert "Shall We Talk" in text
    assert not re.search(r"\bnan\b", text)
    pictures = {path.name for path in (page / "figures").glob("*.png")}
    assert {"talk.png", "prices-talk.png", "escape-talk.png"} <= pictures
