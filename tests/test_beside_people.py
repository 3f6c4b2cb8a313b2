"""People's figures: where they are from, where they stand, and that they are no play.

``data/classics_human.csv`` has them as they were published or worked out, conditions and measures
in words; rooms have them by parameters of their game and by its measures.
"""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines import people_data
from llm_games.baselines.people_data import figures_of, people
from llm_games.baselines.play_measures import described, play_measures
from llm_games.benchmarks.judge import beside_people
from llm_games.benchmarks.judge.beside_people import measure_rows
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.run.config import experiments
from llm_games.benchmarks.run.estimate import estimate
from llm_games.benchmarks.run.plan import plan_of, players
from llm_games.benchmarks.show.page import build
from llm_games.game_rooms import ROOMS, file
from llm_games.registry import rulebook

DATA = Path(__file__).parent / "data" / "classics_human.csv"
NAMED = {  # a measure in words, and by our name
    "cooperation round 1": "cooperation in round 1",
    "cooperation all rounds": "cooperation",
    "share of rock": "action 0",
    "share of paper": "action 1",
    "share of scissors": "action 2",
    "share of the less preferred action": "action 1 of seat 0",
    "mean payoff a round": "mean payoff",
    "mean share offered": "mean offer",
    "mean given": "mean offer",
    "share offering exactly half": "offers exactly half",
    "gives half": "offers exactly half",
    "share offering nothing": "offers nothing",
    "gives nothing": "offers nothing",
    "mean smallest accepted offer": "mean smallest accepted",
    "agreed and consistent": "agreement",
    "mean score, no deal = 0": "score",
    "mean score of deals": "score of deals",
    "mean joint score of deals": "joint score",
    "mean best joint score of the same scenarios": "best joint score",
    "deals with equal points": "equal points",
    "mean claim": "mean claim, last five rounds",
    "offers 100..100": "offers 100 %",
}
PREFIXES = {
    "estimated share of two-round trigger": "share of two_round_trigger",
    "estimated share of ": "share of ",
    "row action ": "action ",
    "column action ": "action ",
    "would accept ": "would accept ",
    "offers ": "offers ",
}
LEFT_OUT = ("seconds", "minutes", "utterances", "social history")
"""Words of conditions that no parameter can bring about, and of what talk has measures of."""


def lines(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shipped():
    """Return the rows of all rooms: (game, study, condition, measure) and the row."""
    rows = ((game, line) for game in ROOMS if (path := file(game, "people.csv"))
            for line in lines(path))  # fmt: skip
    return {(game, r["study"], r["condition"], r["measure"]): r for game, r in rows}


def named(measure):
    if measure in NAMED:
        return NAMED[measure]
    if measure.startswith("cooperation after own "):
        own, other = measure.removeprefix("cooperation after own ").split(", other ")
        return f"C after {own}{other}".replace("c", "C").replace("d", "D")
    if measure.startswith("requests "):
        return f"level {20 - int(measure.removeprefix('requests '))}"
    if measure.startswith("would accept "):
        return f"{measure} %"
    if measure.startswith("offers "):
        return f"{measure.replace('..', ' to ')} %"
    seat = {"row": " of seat 0", "column": " of seat 1"}.get(measure.split()[0], "")
    for words, ours in PREFIXES.items():
        if measure.startswith(words):
            return ours + measure.removeprefix(words) + seat
    return measure


def test_figures_are_those_of_the_sources():
    """Every row of the data is in a room, or is left out because of a word; no room has others."""
    rooms, sources = shipped(), [row for row in lines(DATA) if row["game"] != "trust_game"]
    left = [r for r in sources if any(w in r["condition"] + r["measure"] for w in LEFT_OUT)]
    kept = [row for row in sources if row not in left]
    assert len(left) == 41
    for row in kept:
        found = rooms.pop((row["game"], row["study"], row["condition"], named(row["measure"])))
        points = "MobLab" in row["study"] and row["measure"].startswith("mean ")
        value = float(row["value"]) / (100 if points else 1)
        assert float(found["value"]) == pytest.approx(value, abs=1e-9), row
        assert found["n"] == row["n"]
    assert {game for game, *_ in rooms} == {"trust_game"}


def test_what_people_sent_and_returned_is_that_of_the_pairs():
    pairs = {}
    for row in lines(DATA):
        if row["game"] == "trust_game" and row["condition"].startswith("no history"):
            pairs.setdefault(row["condition"], {})[row["measure"]] = int(float(row["value"]))
    game = lg.rules("trust_game", preset="berg")
    plays = []
    for pair in pairs.values():
        steps = {"sent": [pair["sent"]], "returned": [pair["returned"]], "returning": [True]}
        steps |= {"investor": [0], "payoffs": np.zeros((2, 1))}
        plays.append({name: np.array(values) for name, values in steps.items()})
    found = described(game, plays)
    assert len(people(game)) == 5
    for figure in people(game):
        assert figure.value == pytest.approx(found[figure.measure], abs=5e-5)


def test_every_figure_is_a_measure_of_its_game():
    """Under the rules that it is said to be of, within the measure's ends."""
    for (game, *_, name), row in shipped().items():
        rules = lg.rules(game, **json.loads(row["parameters"]))
        measure = play_measures(rules)[name]
        assert measure.ends[0] <= float(row["value"]) <= measure.ends[1]
        assert name in [figure.measure for figure in people(rules)]


DILEMMA = {"payoffs": [[32, 12], [50, 25]], "continuation": "1/2"}
CONDITIONS = [  # rules, and first words of the studies with figures
    ("matrix_game", {"preset": "dal_bo_frechette_1/2_32"}, "Dal"),
    ("matrix_game", DILEMMA, "Dal"),
    ("matrix_game", DILEMMA | {"failed_reply": "void_run"}, "Dal"),
    ("matrix_game", DILEMMA | {"reveal": "payoff"}, ""),
    ("matrix_game", DILEMMA | {"called": "Community Game"}, ""),
    ("matrix_game", DILEMMA | {"talk": {"turns": 1}}, ""),
    ("matrix_game", {"payoffs": [[33, 12], [50, 25]], "continuation": "1/2"}, ""),
    ("matrix_game", {}, ""),
    ("matrix_game", {"preset": "fudenberg_rand_dreber_4", "noise": "1/16"}, "Fudenberg"),
    ("matrix_game", {"preset": "fudenberg_rand_dreber_4", "noise": "1/20"}, ""),
    ("money_request", {}, "Arad Lindner"),
    ("money_request", {"rounds": 2}, ""),
    ("deal_or_no_deal", {"preset": "dialogue"}, "Lewis"),
    ("deal_or_no_deal", {"protocol": "claims"}, ""),
    ("bargaining", {}, "Oosterbeek"),
    ("bargaining", {"preset": "forsythe", "first": 1}, ""),
    ("public_goods", {}, ""),
]


@each_row(("game", "parameters", "studies"), CONDITIONS)
def test_people_stand_where_the_rules_are_theirs(game, parameters, studies):
    found = (f.study.replace(",", "").split()[0] for f in people(lg.rules(game, **parameters)))
    assert [*dict.fromkeys(found)] == studies.split()


# -- in reports ------------------------------------------------------------------------------------


def run(folder, seats, episodes=6, **entry):
    entry = {"game": "matrix_game", "params": {"preset": "dal_bo_frechette_3/4_40"}} | entry
    config = {"title": "A run", "episodes": episodes, "seed": 3, "seats": seats, "games": [entry]}
    lg.run(config, db=folder / "run.db")
    return folder / "run.db"


def rows_of(path):
    with Records.open_readonly(path) as records:
        return [row for game in games(records) for row in measure_rows(game)]


def test_measures_are_of_all_choices_together_by_player(tmp_path):
    path = run(tmp_path, ["tit_for_tat", "all_d"])
    rows = {(row.measure, row.who): row for row in rows_of(path)}
    with Records.open_readonly(path) as records:
        lengths = [len(episode.steps) for game in games(records) for episode in game.done]
    assert len(set(lengths)) > 1
    cell = rows["cooperation", "tit_for_tat"]
    assert (cell.value.mean, cell.n) == (len(lengths) / sum(lengths), sum(lengths))
    assert rows["cooperation", "all_d"].value.mean == 0
    assert rows["cooperation in round 1", "tit_for_tat"].value.mean == 1
    assert rows["share of all_d", "all_d"].value.mean == pytest.approx(1)
    assert ("C after CC", "all_d") not in rows
    for row in rows.values():
        if row.value.interval:
            ends = row.value.interval.low, row.value.interval.high
            assert row.ends[0] <= ends[0] <= ends[1] <= row.ends[1]
    of_people = rows["cooperation", "people"]
    assert (of_people.value.mean, of_people.value.interval, of_people.n) == (0.694, None, 928)
    assert of_people.study.startswith("Dal Bo & Frechette 2011")


def test_a_report_has_people_beside_play_and_in_nothing_else(tmp_path):
    path = run(tmp_path, ["tit_for_tat", "all_d"])
    build([path], tmp_path / "report")
    text = (tmp_path / "report" / "report.html").read_text("utf-8")
    assert "Measures of play" in text
    assert "Dal Bo &amp; Frechette 2011" in text
    tables = {p.stem: lines(p) for p in (tmp_path / "report" / "tables").glob("*.csv")}
    of_people = [row for row in tables.pop("measures") if row["who"] == "people"]
    assert {(row["run"], row["source"]) for row in of_people} == {("", "published")}
    assert {row["measure"] for row in of_people} >= {"cooperation", "share of grim"}
    assert not any("people" in row.values() for rows in tables.values() for row in rows)
    assert (tmp_path / "report" / "figures" / "Measures-of-play.svg").is_file()


def test_terminal_and_json_show_people(tmp_path):
    from llm_games.benchmarks.judge.results import run_results
    from llm_games.benchmarks.show.tables import run_tables

    with Records.open_readonly(run(tmp_path, ["tit_for_tat"])) as records:
        [result] = run_results(records)
    *_, table = run_tables([result], None)
    assert list(table.columns)[:3] == ["matrix_game", "who", "share"]
    shown = {row[0]: row for row in table.rows if row[1].startswith("people: Dal Bo")}
    assert (shown["cooperation"][2].mean, shown["cooperation"][3]) == (0.694, 928)
    assert "coordination" not in [row[0] for row in table.rows]  # of play alone: in the report
    plain = json.loads(json.dumps(result.plain()))["measures"]
    assert {row["study"] for row in plain if row["who"] == "people"} == {
        "Dal Bo & Frechette 2011, late matches"
    }


@each_row(
    ("seats", "entry"),
    [
        (["random"], {"params": {"preset": "goeree_holt_320"}}),
        (["random"], {"game": "money_request", "params": {}}),
        (["random"], {"game": "bargaining", "params": {"preset": "moblab"}}),
        (["rational"], {"game": "deal_or_no_deal", "params": {}}),
        (["reciprocal"], {"game": "trust_game", "params": {}}),
        (["random"], {"game": "minimum_effort", "params": {"cost": 0}}),
        (["random"], {"game": "travelers_dilemma", "params": {"high": 5}}),
        (["random"], {"params": {"players": 3, "by_count": [[2, 2, 2], [0, 4, 4]]}}),
    ],
)
def test_one_episode_has_measures_without_intervals(tmp_path, seats, entry):
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    rows = rows_of(run(folder, seats, 1, **entry))
    assert rows
    own = [row for row in rows if row.who != "people"]
    assert all(row.value.interval is None for row in own)
    assert all(math.isfinite(row.value.mean) for row in own if row.measure != "investor's regret")


def test_games_without_measures_have_no_such_part(tmp_path):
    path = run(tmp_path, ["random"], 2, game="public_goods", params={"rounds": 2})
    assert rows_of(path) == []
    build([path], tmp_path / "report", baselines=False)
    assert "Measures of play" not in (tmp_path / "report" / "report.html").read_text("utf-8")


def test_the_papers_room_reruns_what_people_did():
    """Each game of each file has people's figures under its very rules, but for two rewards."""
    without, reached = [], set()
    for name in experiments()["classics"]:
        for game in plan_of(f"classics/{name}").games:
            figures = people(rulebook(game.game, **game.params))
            reached |= {figure.study for figure in figures}
            without += [] if figures else [game.label]
    assert without == ["reward 25", "reward 50"]
    studies = {figure.study for name in ROOMS for _, figure in figures_of(name)}
    assert studies - reached == {"Wang, Xu & Zhou 2014"}  # 300 rounds


def test_distance_to_people_is_of_each_player_and_study(tmp_path):
    path = run(tmp_path, ["rational"], 3, game="bargaining", params={"preset": "dictator"})
    build([path], tmp_path / "report")
    [row] = lines(tmp_path / "report" / "tables" / "classics_distance.csv")
    assert (row["player"], row["shares"]) == ("rational", "3")
    assert float(row["distance"]) == pytest.approx((0.257 + (1 - 0.2598) + 0.1866) / 3)


def test_a_price_of_a_game_that_chance_ends_is_that_of_its_episodes():
    """Not that of its first one, which may be a single round."""
    plan = plan_of("classics/dal_bo_frechette")
    found = estimate(plan, players(plan))
    for game, row in zip(plan.games, found, strict=True):
        rules = rulebook(game.game, **game.params)
        rounds = [int(rules.reset(seed).last_round) for seed in game.seeds[:20]]
        assert row.decisions == round(2 * sum(rounds) * len(game.seeds) / 20)


# -- what is wrong ---------------------------------------------------------------------------------


@each_row(
    ("row", "words"),
    [
        ("a,b,{},level 0,many,3", "line 2: ValueError: could not convert"),
        ("a,b,{,level 0,.1,3", "line 2: JSONDecodeError"),
        ("a,b,7,level 0,.1,3", "line 2: TypeError"),
        ('a,b,"{""lowest"": 5}",level 0,.1,3', "line 2: UnknownKeyword"),
        ("a,b,{}", "line 2: TypeError"),
    ],
)
def test_bad_rows_of_people_name_file_and_line(tmp_path, monkeypatch, row, words):
    path = tmp_path / "people.csv"
    path.write_text(f"study,condition,parameters,measure,value,n\n{row}\n")
    monkeypatch.setattr(people_data.rooms, "file", lambda game, name: path)
    figures_of.cache_clear()
    try:
        with pytest.raises(lg.BadParameter, match=words):
            figures_of("money_request")
    finally:
        figures_of.cache_clear()


def test_a_figure_of_no_measure_is_an_error(tmp_path, monkeypatch):
    figure = people(lg.rules("money_request"))[0]._replace(measure="level 99")
    monkeypatch.setattr(beside_people, "people", lambda rules: [figure])
    path = run(tmp_path, ["random"], 1, game="money_request", params={})
    with pytest.raises(lg.UnknownName, match="level 99"):
        rows_of(path)
