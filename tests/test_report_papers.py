import re

import numpy as np
import pytest
from PIL import Image
from test_auc_arena import PLANNERS, Bidders, play_scripted
from test_report import Text, rows_of, write_run

from llm_games.benchmarks.papers.auc_arena.page import bandwidth, density
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import Overrides, players, resolve
from llm_games.benchmarks.show.page import build

ALYMPICS = {"game": "water_allocation", "params": {"preset": "setting_1"}}


def played(folder, games, **config):
    raw = {"title": "A run", "games": games, "episodes": 2, "seats": ["even"]} | config
    plan = resolve(parse(raw, "test"), "test", Overrides())
    play_run(lambda: start(plan, folder / "run.db"), plan, players(plan))
    return Text(build([folder / "run.db"], folder).read_text("utf-8"))


def check_figures(folder, shown):
    pictures = [link for link in shown.loads if link.endswith(".png")]
    assert pictures
    for link in pictures:
        pixels = np.asarray(Image.open(folder / link).convert("L"))
        assert (pixels < 200).mean() > 0.005, link
        assert (folder / link.replace(".png", ".svg")).stat().st_size > 3000
    return pictures


def table(folder, name):
    return rows_of(folder / f"tables/{name}.csv")


@pytest.mark.figures
def test_alympics_stands_beside_its_table(tmp_path):
    shown = played(tmp_path, [ALYMPICS | {"label": "low"}])
    assert re.search(r"low this run 2 [\d.]+ ", shown.text)
    ends = r"( [\d.]+ to [\d.]+)?( \w)? "  # our own intervals of its ten games
    rates = ["0.10", "0.10", "0.50", "0.70", "0.40"]
    row = ["published 10", *rates, "1.8", "0.300", "0.831", "185.7", "0"]
    assert re.search("setting 1 " + ends.join(map(re.escape, row)), shown.text)
    assert "γ-Bench scores" not in shown.text
    assert "leaderboard" not in shown.text
    assert not re.search(r"\bnan\b", shown.text)
    assert len(check_figures(tmp_path, shown)) == 1 + 2 + 7


def test_files_of_alympics(tmp_path):
    played(tmp_path, [ALYMPICS | {"label": "low"}])
    own, published = table(tmp_path, "alympics_table2")
    assert (own["run"], own["source"], own["games"]) == ("run", "this run", "2")
    assert (published["run"], published["source"]) == ("", "published")
    assert float(published["SR David"]) == 0.7
    days = table(tmp_path, "alympics_days")
    assert len(days) == 5 * 20
    assert days[0]["resident"] == "Alex"
    assert [float(days[0][key]) for key in ("games", "day")] == [2, 1]
    prices = table(tmp_path, "alympics_prices")
    assert all(float(row["q1"]) <= float(row["median"]) <= float(row["q3"]) for row in prices)


@pytest.mark.figures
def test_residents_are_counted_where_they_sit(tmp_path):
    residents = [["A", 1, 100], ["B", 40, 1]]
    params = {"players": 2, "residents": residents, "days": 12}
    game = {"game": "water_allocation", "label": "two", "params": params, "order": "shuffled"}
    shown = played(tmp_path, [game | {"seats": ["even", "urgent"]}], episodes=8)
    [row] = table(tmp_path, "alympics_table2")
    assert (row["SR A"], row["SR B"]) == ("1.0", "0.0")
    players = {row["resident"]: row["player"] for row in table(tmp_path, "alympics_days")}
    assert {name: {*who.split(" / ")} for name, who in players.items()} == {
        "A": {"even", "urgent"},
        "B": {"even", "urgent"},
    }
    check_figures(tmp_path, shown)


ARENA = [
    {"game": game, "label": f"{game} five", "params": {"preset": "econ_arena", "players": 5}}
    for game in ("beauty_contest", "sealed_bid_auction")
]
FIVE = ["rational", "best_response", "cooperative", "random", "tiny:constrained"]


@pytest.mark.figures
def test_econ_arena_stands_beside_its_tables(tmp_path):
    shown = played(tmp_path, ARENA, seats=FIVE)
    assert re.search(r"beauty_contest five senior 0 random this run 2 – – 0\.\d{3}", shown.text)
    assert "beauty contest senior 0 GPT4 published 100 0.100 0.183 0.170" in shown.text
    assert "Llama2 published 660 84.0 90.0 80.7 78.9" in shown.text
    assert "γ-Bench scores" not in shown.text
    assert "leaderboard" not in shown.text
    assert "GPT-3.5" not in shown.text
    assert len(check_figures(tmp_path, shown)) == 1 + 4 + 1 + 2 + 1


@pytest.mark.figures
def test_rooms_history_and_paths(tmp_path):
    params = {"preset": "econ_arena_M", "players": 3, "rounds": 3}
    games = [
        {
            "game": "beauty_contest",
            "label": f"last {last}",
            "params": params | {"reveal_last": last},
            "seats": ["default", "rational", "rational"],
        }
        for last in (0, 2)
    ]
    shown = played(tmp_path, games, seats=["cooperative"])
    rows = table(tmp_path, "econ_arena_distance")
    assert [(row["room"], row["history"]) for row in rows] == [("rational", h) for h in "0022"]
    assert {row["convergence run"] for row in rows if row["player"] == "rational"} == {"1"}
    assert "History: beauty contest, numbers" in shown.text
    assert shown.text.count("Paths") == 2
    paths = table(tmp_path, "econ_arena_paths")
    assert [row["run of session"] for row in paths[:3]] == ["1", "2", "3"]
    check_figures(tmp_path, shown)


def test_first_sessions_have_means_of_their_own(tmp_path):
    played(tmp_path, ARENA[:1], seats=[*FIVE[:4], "random"], episodes=20)
    rows = [row for row in table(tmp_path, "econ_arena_table1") if row["source"] == "this run"]
    assert all(row["first 20"] == row["payoff"] and not row["first 60"] for row in rows)


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize(
    ("game", "params"),
    [
        ("water_allocation", {"preset": "setting_3"}),
        ("beauty_contest", {"preset": "econ_arena", "players": 5, "rounds": 3}),
        ("sealed_bid_auction", {"preset": "econ_arena", "players": 5, "rounds": 3}),
    ],
)
def test_an_unfinished_run_has_a_page(tmp_path, game, params, steps):
    path = write_run(tmp_path / "run.db", [game], "random", params=params, steps=steps, asks=False)
    text = Text(build([path], tmp_path).read_text("utf-8")).text
    assert "0 of 2" in text
    assert "published" not in text
    assert not re.search(r"\bnan\b", text)


# -- AucArena --------------------------------------------------------------------------------------


class Fickle(Bidders):
    openings = 0

    def __call__(self, request):
        question = request.question
        if question is None or request.kind != "move":
            return super().__call__(request)
        self.openings += question.opening
        return '{"bid": null}' if self.openings % 3 == 0 else question.reply(question.floor)


def auctions(folder, **config):
    play_scripted(folder / "run.db", PLANNERS | config, Fickle())
    return Text(build([folder / "run.db"], folder).read_text("utf-8"))


@pytest.mark.figures
def test_auc_arena_stands_beside_its_table(tmp_path):
    shown = auctions(tmp_path)
    assert "GPT-4 published – 0.1570 0.1717 0.6221 0.3797" in shown.text
    assert re.search(r"planner this run adaptive( -?\d\.\d{4}\*?){4}", shown.text)
    rates = [r"0\.000", r"0\.250", r"0\.000", r"1\.000", r"1\.000"]  # failed, and mentioned
    ends = r" \d\.\d{3} to \d\.\d{3}( \w)? "
    assert re.search(f"two kinds planner adaptive 4 {ends.join(rates)}{ends}0 0 0", shown.text)
    assert not re.search(r"\bnan\b", shown.text)
    assert "γ-Bench scores" not in shown.text
    titles = ("Failure rates", "Profit", "Plans and acts", "Money left", "Winning prices")
    assert all(title in shown.text for title in titles)
    pictures = check_figures(tmp_path, shown)
    assert len(pictures) == 1 + 3 + 2 + 2 + 1  # over all, of the game, priorities, latency


def test_files_of_auc_arena(tmp_path):
    auctions(tmp_path)
    rows = {row["player"]: row for row in table(tmp_path, "auc_arena_bidders")}
    assert rows["rule:2"]["failed beliefs on itself"] == ""
    assert rows["collector"]["strategy"] == "static"
    skills = table(tmp_path, "auc_arena_skills")
    assert {row["player"] for row in skills} == {"planner", "collector", "rule:2"}
    assert all(0 < float(row["variance"]) < (25 / 3) ** 2 for row in skills)
    rated = {row["player"]: row for row in table(tmp_path, "auc_arena_ratings")}
    assert set(rated) == set(rows)
    [against] = {row["against"] for row in rated.values()}
    assert rated[against]["rating"] == ""
    for row in (row for name, row in rated.items() if name != against):
        assert float(row["rating low"]) < float(row["rating"]) < float(row["rating high"])
        assert (row["rating method"], row["rating n"]) == ("Plackett-Luce", "4")
    money = table(tmp_path, "auc_arena_money")
    assert [row["items"] for row in money[:4]] == ["0", "1", "2", "3"]
    correlations = table(tmp_path, "auc_arena_correlations")
    assert {row["items"] for row in correlations} == {"12"}


def test_calls_that_are_no_moves_are_counted_apart(tmp_path):
    shown = auctions(tmp_path)
    assert "Other calls" in shown.text
    assert re.search(r"planner plan 4 0 0 0 0 0 planner belief 24 ", shown.text)
    calls = {(row["player"], row["for"]): row for row in table(tmp_path, "calls")}
    assert calls["planner", "replan"]["calls"] == "8"
    [player] = [row for row in table(tmp_path, "players") if row["player"] == "planner"]
    assert player["calls"] == calls["planner", "move"]["calls"]


def test_ranks_of_a_series(tmp_path):
    [game] = PLANNERS["games"]
    shown = auctions(tmp_path, games=[game | {"series": True}])
    assert "Ranks" in shown.text
    assert "Episodes of two kinds follow from each other" in shown.text
    ranks = table(tmp_path, "auc_arena_ranks")
    assert len(ranks) == 3 * 4
    assert {row["rank"] for row in ranks} <= {"1", "2", "3"}


def test_density_has_an_area_of_one():
    at = np.linspace(-100, 300, 4001)
    for values in ([100.0], [50.0, 50.0, 50.0], [20.0, 80.0, 90.0]):
        area = density(values, at, bandwidth(values)).sum() * (at[1] - at[0])
        assert area == pytest.approx(1, abs=1e-3)


# -- all papers ------------------------------------------------------------------------------------


def test_runs_of_several_papers_share_files(tmp_path):
    games = [ALYMPICS | {"label": "low"}, ARENA[0] | {"seats": FIVE}]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        played(tmp_path / name, games)
    paths = [
        (tmp_path / name / "run.db").rename(tmp_path / f"{name}.db") for name in ("one", "two")
    ]
    shown = Text(build(paths, tmp_path).read_text("utf-8"))
    assert shown.text.count("Alympics The water") == 0
    rows = table(tmp_path, "alympics_table2")
    assert [row["run"] for row in rows] == ["one", "", "two"]
    assert len({link for link in shown.loads if link.endswith(".png")}) == 2 * (
        1 + 2 + 7 + 3 + 1 + 1
    )
