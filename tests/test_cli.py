"""The command line: what it prints, which files it makes, and how it says no."""

import dataclasses
import io
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import time
import webbrowser
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playing import each_row
from rich.console import Console

from llm_games import __version__
from llm_games.baselines.players import PLAYERS, Kind
from llm_games.baselines.regret import rational
from llm_games.benchmarks.judge.intervals import Interval
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.paper import papers
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.papers.alympics.metrics import living
from llm_games.benchmarks.papers.gamma_bench.scores import GAMES
from llm_games.benchmarks.record.plain_text import speak_plainly
from llm_games.benchmarks.record.recorded_games import read
from llm_games.benchmarks.record.store import Records
from llm_games.benchmarks.run import progress_bar
from llm_games.benchmarks.run.conduct import Counters
from llm_games.benchmarks.run.progress_bar import progress
from llm_games.benchmarks.show import cli
from llm_games.benchmarks.show.page.page_tables import score_grid
from llm_games.game_rooms import ROOMS
from llm_games.registry import game_class, rulebook
from llm_games.talk import Talk
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.retry import Wait, Waits
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.clients.stack import add_layers
from llm_games.wrappers.llm_policy import LLMPolicy

SMALL = """
title = "Small"
episodes = 2
seats = ["random"]
[[games]]
game = "public_goods"
params = {players = 3, rounds = 2, ratio = "3/2"}
[[games]]
game = "battle_royale"
params = {players = 3}
"""


@pytest.fixture
def small(tmp_path):
    (tmp_path / "small.toml").write_text(SMALL)
    return "small.toml"


@pytest.mark.slow
def test_a_run_from_start_to_report(llm_games, small, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    code, out, err = llm_games("run", small, "--report", "pages", "--open")
    assert code == 0
    [db] = tmp_path.glob("*.db")
    assert re.fullmatch(r"small-\d{8}-\d{6}\.db", db.name)
    assert "Small: random in all seats" in out
    assert re.search(r"public_goods +\d+\.\d \[\d+\.\d to \d+\.\d\] +2 done", out)
    assert "rests on near-normal runs" in out.replace("\n", " ")
    assert db.name in out
    page = tmp_path / "pages" / "report.html"
    assert page.read_text().startswith("<!")
    assert opened == [page.as_uri()]
    assert "report: pages/report.html" in err

    code, out, err = llm_games("resume", db.name)
    assert (code, "is complete" in err) == (0, True)
    code, _, err = llm_games("report", db.name, "-o", "more/one.html")
    assert (code, err) == (0, "report: more/one.html\n")
    assert (tmp_path / "more" / "one.html").exists()


def test_json_is_all_there_is_on_stdout(llm_games, small):
    code, out, err = llm_games("run", small, "--json", "--db", "a.db", "--report", ".")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["db"], found["report"], found["overall"]) == ("a.db", "report.html", None)
    goods, battle = found["games"]
    assert (goods["label"], goods["decisions"]) == ("public_goods", 12)
    assert goods["episodes"] == {"done": 2}
    assert goods["score"]["mean"] == pytest.approx(sum(goods["scores"]) / 2)
    assert len(battle["payoffs"]) == 3
    for mean in (goods["score"], goods["payoff"], *goods["paid"].values()):
        assert mean["interval"]["low"] <= mean["mean"] <= mean["interval"]["high"]
        assert mean["interval"]["n"] == 2
        assert mean["interval"]["note"] == "rests on near-normal runs"
    assert found["usage"]["calls"] == 0
    assert json.loads(llm_games("resume", "a.db", "--json")[1])["games"] == found["games"]


def test_the_whole_benchmark_has_an_overall_score(llm_games):
    code, out, _ = llm_games("run", "gamma-bench", "--seat", "random", "--episodes", 1, "--json")
    found = json.loads(out)
    assert code == 0
    assert [game["game"] for game in found["games"]] == list(GAMES)
    mean = sum(game["scores"][0] for game in found["games"]) / 8
    assert found["overall"] == {"mean": pytest.approx(mean), "std": None, "interval": None}


def test_quiet_says_nothing(llm_games, small):
    assert llm_games("run", small, "--quiet") == (0, "", "")


def test_the_command_line_changes_the_file(llm_games, small):
    changes = ("--seat", "fixed:1", "--game", "public_goods", "--episodes", 1, "--seed", 9)
    assert llm_games("run", small, *changes, "--db", "a.db")[0] == 0
    with Records.open_readonly("a.db") as records:
        [game] = records.games()
        assert (game.seats, records.config["seed"]) == (["fixed:1"] * 3, 9)
        assert [step.record["pot"] for step in records.steps(1)] == [3, 3]


def test_a_dry_run_plays_nothing(llm_games, small, tmp_path):
    code, out, _ = llm_games("run", small, "--dry-run")
    assert (code, list(tmp_path.glob("*.db"))) == (0, [])
    assert re.search(r"public_goods +2 +12 +0 +0 +0", out)
    assert "Nothing was played" in out
    found = json.loads(llm_games("run", small, "--dry-run", "--json")[1])
    assert [row["decisions"] for row in found["estimate"]] == [12, 40]


def test_lists_and_shows(llm_games):
    code, out, _ = llm_games("list")
    assert code == 0
    assert all(name in out for name in ROOMS)
    assert "auc-arena/NAME: interspecific, intraspecific, learning" in out
    rows = json.loads(llm_games("list", "--json")[1])
    assert {row["name"] for row in rows} >= {f"{name}-v0" for name in ROOMS}


@pytest.mark.parametrize("game", sorted(ROOMS))
def test_every_game_is_shown_with_all_its_parameters(llm_games, game):
    code, out, _ = llm_games("show", game)
    assert (code, "[user]" in out, "[system]" in out) == (0, True, True)
    assert "Fraction" not in out
    found = json.loads(llm_games("show", game, "--prompts", "v2", "--json")[1])
    assert all(row["meaning"] for row in found["parameters"])
    assert all(row["name"] in out for row in found["parameters"])
    talk = [f.name for f in dataclasses.fields(Talk)] * (not rulebook(game).wordless)
    assert [row["name"] for row in found["talk"]] == talk
    assert all(row["meaning"] and row["name"] in out for row in found["talk"])
    paper = [preset for preset in game_class(game).presets if preset.endswith("_authors")]
    assert all(preset in out for preset in paper)  # one word for the options of their program
    claim = rational(rulebook(game))
    assert f"{claim.kind}: {claim.sentence}" in found["players"]["rational"]
    json.loads(found["sample"]["a legal reply"])


def test_what_the_authors_program_does_by_chance_is_said(llm_games):
    out = " ".join(llm_games("show", "bertrand_competition")[1].split())
    assert "cuts doubles, so that some 4 % of its profits are 1 off" in out


def test_a_seat_that_is_worth_something_is_said(llm_games, tmp_path):
    why = "the lowest seat left proposes"
    assert why in llm_games("show", "pirate_game")[1].replace("\n", " ")
    assert json.loads(llm_games("show", "pirate_game", "--json")[1])["seats"].startswith(why)
    assert "not worth the same" not in llm_games("show", "public_goods")[1]
    (tmp_path / "p.toml").write_text("""
        episodes = 3
        [[games]]
        game = "pirate_game"
        params = {players = 3}
        seats = ["random", "rational", "rational"]
    """)
    assert why not in llm_games("run", "p.toml", "--db", "even.db")[2]
    assert f"pirate_game: {why}" in llm_games("run", "p.toml", "--db", "x.db", "--episodes", 2)[2]
    assert why in llm_games("run", "p.toml", "--dry-run", "--episodes", 2)[1]


def test_help_and_version(llm_games):
    code, out, _ = llm_games("--help")
    assert (code, "130" in out, "resume" in out) == (0, True, True)
    out = llm_games("run", "--help")[1]
    said = "one on this machine gets no key unless api_key_env or api_key_file names one"
    assert said in " ".join(out.split())
    assert llm_games("--version") == (0, f"llm-games {__version__}\n", "")


HELP = """
import contextlib, io, sys, typer
own = set(sys.modules)  # typer's: 0.15 imports rich itself
from llm_games.benchmarks.show import cli
names = [command.name for command in cli.app.registered_commands]
for arguments in ([], *([name] for name in names), ["cache"], ["cache", "prune"]):
    sys.argv = ["llm-games", *arguments, "--help"]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        cli.main()
    assert out.getvalue().startswith("Usage: llm-games"), arguments
heavy = {"numpy", "gymnasium", "pettingzoo", "pydantic", "jinja2", "rich", "sqlite3", "openai"}
heavy |= {"torch", "transformers", "matplotlib"}
print(len(names), sorted(heavy & set(sys.modules) - own))
"""


def test_help_imports_nothing_heavy():
    root = Path(cli.__file__).resolve().parents[1]
    asked = [sys.executable, "-c", HELP]
    done = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "21 []\n"


def test_any_setting_can_be_set(llm_games):
    at = ("--seat", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--dry-run", "--json")
    given = ["temperature=default", "stop=['.']", "extra_body={top_k = 5}", "leave_out=['seed']"]
    given += ["tool_calls=json", "timeout=900.0", 'headers={X-Key = "env:HOME"}']
    sets = [word for one in given for word in ("--set", one)]
    code, out, _ = llm_games("run", "gamma-bench", *at, *sets)
    assert code == 0
    seat = json.loads(out)["plan"]["games"][0]["seats"][0]
    settings, client = seat["settings"], seat["client"]
    assert (settings["temperature"], settings["stop"]) == ("default", ["."])
    assert settings["extra_body"] == {"top_k": 5}
    assert (client["leave_out"], client["tool_calls"], client["timeout"]) == (["seed"], "json", 900)
    assert client["headers"] == {"X-Key": "env:HOME"}
    for given, kept in (("default", "default"), ("0.5", 0.5)):
        out = llm_games("run", "gamma-bench", *at, "--temperature", given)[1]
        assert json.loads(out)["plan"]["games"][0]["seats"][0]["settings"]["temperature"] == kept


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["temperature"], "write NAME=VALUE"),
        (["temperature=1", "temperature=2"], "given twice"),
        (["temperatur=1"], "did you mean 'temperature'"),
        (["temperature=3"], "from 0 to 2"),
        (["stop=['"], "is no value of TOML"),
        (["leave_out=['sed']"], "did you mean 'seed'"),
        (["headers={X-Api-Key = 'sk-1'}"], "keys are never written down"),
    ],
)
def test_a_setting_that_cannot_be_is_said(llm_games, given, says):
    sets = [word for one in given for word in ("--set", one)]
    at = ("--seat", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
    code, _, err = llm_games("run", "gamma-bench", *at, *sets)
    assert (code, says in err) == (2, True), err


CALLS = """
import json, sys
from llm_games.benchmarks.show import cli
codes = []
for sys.argv[1:] in json.loads(sys.argv[1]):
    try:
        cli.main()
    except SystemExit as end:
        codes.append(end.code)
sys.exit(str(codes))
"""


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_no_output_fails_for_its_encoding(tmp_path, encoding):
    odd, raw = "γ漢", "\udce9" * (sys.platform == "linux")  # a byte that is no text
    toml = SMALL.replace('"Small"', f'"{odd} ±"').replace("]]", ']]\nlabel = "漢 [b]"', 1)
    (tmp_path / f"{odd}{raw}.toml").write_text(toml, "utf-8")
    source, db = f"{odd}{raw}.toml", f"{odd}{raw}.db"
    calls = [
        *(["list"], ["show", "pirate_game"], ["run", source, "--dry-run"]),
        *(["run", source, "--db", db], ["resume", db, "--json"], ["run", f"{odd}{raw}"]),
        ["play", "public_goods", "--param", "rounds=1", "--against", "fixed:4"],
    ]
    env = os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "80", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CALLS, json.dumps(calls)],
        cwd=tmp_path, env=env, capture_output=True, input="\u03b3\n12\n".encode(), timeout=60,
    )  # fmt: skip
    out, err = (text.decode(encoding, "surrogateescape") for text in (done.stdout, done.stderr))
    assert err.splitlines()[-1] == str([0, 0, 0, 0, 0, 2, 0])
    shown = {"cp1252": "gamma? ±", "ascii": "gamma? +-", "utf-8": f"{odd} ±"}[encoding]
    assert f"{shown}, seed 1" in out
    assert f"{shown}: random in all seats" in out
    name = shown.split()[0] + os.fsencode(raw).decode(encoding, "surrogateescape")
    assert f"recorded in {name}.db; every decision: llm-games view {name}.db; a report:" in out
    assert f"there is no file {name}" in err
    assert ("γ-Bench" if encoding == "utf-8" else "gamma-Bench") in out
    assert re.search(r"you +-?\d", out)


@each_row("width", [100, 80, 60, 30])
def test_no_table_breaks_a_number(width):
    means = (
        MeanCell(45.25, 10.125, 5),
        MeanCell(7.5, None, 5, Interval(-3.25, 18.75, "Student t", 5)),
    )
    rows = [("gamma_bench, ratio 3/2", 6_970_593, *means, "0 of 1000 !")]
    heads = columns("what was played", "tokens in", ",") | {"score": ".1f", "payoff": ".1f"}
    console = Console(file=io.StringIO(), width=width)
    foot = [("all", 63_202_435, None, None, "")]
    console.print(ResultTable(heads | {"filled in": ">"}, rows, foot=foot, note="[b] ±"))
    out = console.file.getvalue()
    whole = ("6,970,593", "63,202,435", "45.2 ± 10.1", "[-3.2 to 18.8]", "[b] ±")
    assert all(text in out for text in whole)
    assert "95 % intervals: Student t, n = 5." in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= width


def test_what_intervals_rest_on_is_said_once():
    def cell(method, n, note=""):
        return MeanCell(1.0, None, n, Interval(0.5, 1.5, method, n, note))

    usual, other = cell("logit-t", 5), cell("Gaffke", 3, "no spread in 3 runs")
    none = MeanCell(2.0, None, 4, Interval(2.0, 2.0, "none", 4, "no spread in 4 runs"))
    heads = {"game": "", "score": ".1f", "payoff": ".1%"}
    grid = ResultTable(
        heads, [("a", usual, cell("Student t", 5)), ("b", usual, none), ("c", other, 0.5)]
    )
    shown = [grid.written(row)[1:] for row in grid.rows]
    assert shown == [
        ["1.0 [0.5 to 1.5]", "100.0% [50.0% to 150.0%]"],
        ["1.0 [0.5 to 1.5]", "200.0% [no spread]a"],
        ["1.0 [0.5 to 1.5]b", "50.0%"],
    ]
    assert grid.basis == (
        "95 % intervals: logit-t, n = 5 (score); Student t, n = 5 (payoff); a: no spread in 4 "
        "runs; b: Gaffke, n = 3, no spread in 3 runs."
    )
    _, second, third = grid.dicts()
    ends = [second[f"payoff {part}"] for part in ("low", "high", "method", "n")]
    assert ends == [None, None, "none", 4]
    assert (third["score low"], third["payoff"], third["payoff n"]) == (0.5, 0.5, None)
    aside = ResultTable(
        {"game": "", "score": ".1f"}, [("a", other), *[("b", usual)] * 5], beside=range(1, 6)
    )
    assert aside.basis == (
        "95 % intervals: Gaffke, n = 3, no spread in 3 runs; a: logit-t, n = 5."
    )  # rows to compare with are marked, however many


def test_numbers_are_written_for_readers():
    share = MeanCell(0.256, None, 2, Interval(0.1, 0.5, "Student t", 2))
    most = MeanCell(1.0, None, 1, Interval(1.0, 1.0, "none", 4, "no spread in 4 runs"))
    row = [share, MeanCell(-0.001, None, 1, None), float("nan"), float("inf"), -0.001]
    heads = {"share": ".1%", "rating": ".2f", "gap": ".2f", "price": ".2f", "sum": ".2f"}
    grid = ResultTable(heads, [row, [most, *row[1:]], [most, *row[1:]]])
    assert grid.written(row) == ["25.6% [10.0% to 50.0%]", "0.00", "–", "∞", "0.00"]
    assert grid.basis == "95 % intervals: Student t, n = 2; a: no spread in 4 runs."
    few = MeanCell(0.3, None, 4, Interval(0.3, 0.3, "none", 4, "most of 4 runs equal"))
    grid = ResultTable(
        {"gap": ".2f"}, [[few], [few]]
    )  # there is some spread, so that it is not denied
    assert grid.written([few]) == ["0.30 [no interval]"]


def test_who_has_no_time_for_reference_rows_keeps_the_run(llm_games, small, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("llm_games.benchmarks.judge.references.references", stopped)
    code, out, err = llm_games("run", small, "--db", "a.db")
    assert (code, out) == (130, "")
    assert "all is recorded in a.db; a report: llm-games report a.db" in err
    assert llm_games("resume", "a.db", "--no-baselines")[0] == 0


def dead_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


BAD = [
    (["run", "nowhere.toml"], "there is no file nowhere.toml"),
    (["run", "broken.toml"], "broken.toml is not valid TOML"),
    (["run", "unknown.toml"], "no key episode; did you mean 'episodes'?"),
    (["run", "game.toml"], "did you mean 'public_goods'?"),
    (["run", "range.toml"], "tokens must be an integer of at least 1"),
    (["run", "talk.toml"], 'talk must be such as {"turns": 2}, got 1'),
    (["run", "small.toml", "--seat", "random", "--seat", "random"], "give one for all seats"),
    (["run", "small.toml", "--seat", "ratonal"], "did you mean 'rational'?"),
    (["run", "small.toml", "--seat", "transformers:empty"], "has no config.json"),
    (["run", "small.toml", "--episodes", "0"], "episodes = 0"),
    (["run", "small.toml", "--temperature", "3"], "temperature = 3"),
    (["run", "small.toml", "--game", "golf"], "no game in this run called 'golf'"),
    (["run", "small.toml", "--db", "taken.db"], "taken.db exists already"),
    (["run", "small.toml", "--db", "no/where.db"], "there is no folder no"),
    (["run", "dead.toml"], "does not answer, nothing was run"),
    (["run", "."], ". cannot be read"),
    (["run", "./gamma-bench"], "there is no file ./gamma-bench"),
    (["run", "small.toml", "--report", "taken.db/page"], "the report cannot be written"),
    (["run", "small.toml", "--persona", "selfish"], "persona is for players that ask a language"),
    (["run", "small.toml", "--base-url", "http://x/v1"], "--base-url is for players behind"),
    (["run", "folder.toml"], "there is no folder of prompts 'nofolder'"),
    (["serve-tiny", "--host", "203.0.113.1"], "cannot listen at 203.0.113.1, port 8000"),
    (["resume", "nowhere.db"], "there is no file nowhere.db"),
    (["resume", "small.toml"], "not a SQLite database"),
    (["resume", "taken.db"], "not a SQLite database"),
    (["report", "nowhere.db"], "there is no file nowhere.db"),
    (["show", "public_godos"], "did you mean 'public_goods'?"),
    (["show", "public_goods", "--prompts", "v9"], "did you mean"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_mistakes_end_with_one_message_and_exit_code_2(llm_games, small, tmp_path, arguments, says):
    goods = '[[games]]\ngame = "public_goods"\n'
    files = {
        "broken.toml": "title =",
        "unknown.toml": "episode = 1\n" + goods,
        "game.toml": goods.replace("goods", "godos"),
        "range.toml": goods + "params = {tokens = 0}",
        "talk.toml": goods + "params = {talk = 1}",
        "dead.toml": goods + f'seats = ["openai:m"]\n[models.m]\nbase_url = "{dead_address()}"\n'
        "max_wait = 0",
        "folder.toml": goods + 'seats = ["tiny"]\n[player]\nprompt_folder = "nofolder"',
        "taken.db": "something of the user's",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "empty").mkdir()
    before = {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    code, out, err = llm_games(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert says in err
    assert "Traceback" not in err
    assert before == {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}


def test_a_table_of_several_players_shows_what_each_came_to(llm_games, tmp_path):
    (tmp_path / "two.toml").write_text("""
        episodes = 6
        seats = ["fixed:90", "fixed:10"]
        [[games]]
        game = "divide_dollar"
        order = "shuffled"
        params = { players = 2, rounds = 1 }
    """)
    code, out, _ = llm_games("run", "two.toml", "--db", "two.db")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["divide_dollar", "fixed:90", "90.00", "[no", "spread]a"] in lines
    assert ["divide_dollar", "fixed:10", "10.00", "[no", "spread]a"] in lines
    [game] = json.loads(llm_games("resume", "two.db", "--json")[1])["games"]
    assert game["payoffs"] == [90, 10]
    assert {name: paid["mean"] for name, paid in game["paid"].items()} == {
        "fixed:90": 90, "fixed:10": 10,
    }  # fmt: skip


PAPERS = """
episodes = 2
seats = ["random"]
[[games]]
game = "water_allocation"
[[games]]
game = "beauty_contest"
params = {players = 3, rounds = 2, prize_rule = "split"}
[[games]]
game = "english_auction"
params = {items = "items_1"}
[[games]]
game = "public_goods"
params = {players = 3, rounds = 2}
"""


def test_what_papers_judge_by_is_the_same_in_all_outputs(llm_games, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "papers.toml").write_text(PAPERS)
    code, out, _ = llm_games("run", "papers.toml", "--db", "a.db")
    assert code == 0
    found = json.loads(llm_games("resume", "a.db", "--json")[1])["games"]
    assert [game["measure"] and (game["measure"]["name"], game["measure"]["better"])
            for game in found] == [
        ("survivors", "higher"), ("deviation", "lower"), ("failed bids", "lower"), None,
    ]  # fmt: skip
    with Records.open_readonly("a.db") as records:
        run = read(records, "corrected")
        page = {row["game"]: row for row in score_grid(run, ["public_goods"], None, {}).dicts()}
        alive = [sum(living(episode.records)) for episode in run.games[0].done]
    for game in found[:3]:
        name, mean, interval = (game["measure"][key] for key in ("name", "mean", "interval"))
        digits, few = (1, True) if name == "survivors" else (3, False)
        assert (page[game["label"]][name], interval is None) == (mean, few)
        line = next(line for line in out.splitlines() if line.startswith(game["label"]))
        assert f" {mean:.{digits}f} " in line
        if interval:
            ends = [page[game["label"]][f"{name} {key}"] for key in ("low", "high", "method", "n")]
            assert ends == [interval[key] for key in ("low", "high", "method", "n")]
            assert f"{mean:.{digits}f} [{interval['low']:.{digits}f} to " in line
    assert found[0]["measured"] == alive
    assert found[1]["measure"]["mean"] > 0
    assert "Failed bids: corrected failure rate" in out.replace("\n", " ")
    assert "lower is better" in out


def test_runs_without_a_common_episode_cannot_be_compared(llm_games, small):
    assert llm_games("run", small, "--db", "a.db")[0] == 0
    assert llm_games("run", small, "--db", "b.db", "--seed", 9)[0] == 0
    code, out, err = llm_games("compare", "a.db", "b.db")
    assert (code, out) == (2, "")
    assert "no finished episode of the same label, number, seed and seating" in err


def test_a_new_report_leaves_nothing_of_the_old_one(llm_games, small, tmp_path):
    pytest.importorskip("matplotlib")
    assert llm_games("run", small, "--db", "a.db", "--quiet")[0] == 0
    assert llm_games("report", "a.db", "-o", "page")[0] == 0
    before = {file.name for file in (tmp_path / "page").rglob("*") if file.is_file()}
    (tmp_path / "page" / "figures" / "mine.png").write_text("of the user")
    assert llm_games("run", small, "--db", "b.db", "--game", "public_goods", "--quiet")[0] == 0
    assert llm_games("report", "b.db", "-o", "page")[0] == 0
    after = {file.name for file in (tmp_path / "page").rglob("*") if file.is_file()}
    assert "mine.png" in after
    assert any("battle" in name for name in before)
    assert not any("battle" in name for name in after)


def test_a_part_of_a_report_that_fails_hides_no_other_part_and_no_path(
    llm_games, small, tmp_path, monkeypatch
):
    pytest.importorskip("matplotlib")

    def broken(*_, **__):
        return 1 / 0

    def crooked(run):
        return ResultTable(columns("player", "calls", ","), [("random", "no number")])

    monkeypatch.setattr("llm_games.benchmarks.show.page.figures._payoffs", broken)
    monkeypatch.setattr("llm_games.benchmarks.show.page.page_tables.player_grid", crooked)
    monkeypatch.setattr("llm_games.benchmarks.show.page.csv_files._rounds", broken)
    gamma = next(paper for paper in papers() if paper.title == "γ-Bench")
    for module in ("show.page.report_page", "judge.paper"):
        name = f"llm_games.benchmarks.{module}.papers"
        monkeypatch.setattr(name, lambda: (gamma._replace(sections=broken),))
    monkeypatch.setattr("llm_games.benchmarks.judge.results.game_result", broken)
    code, out, err = llm_games("run", small, "--db", "a.db", "--report", "page", "--json")
    assert (code, json.loads(out)["report"]) == (1, "page/report.html")
    whys = [
        "γ-Bench could not be made: ZeroDivisionError: division by zero",
        "The figure “public_goods payoffs” could not be made: ZeroDivisionError: division by zero",
        "The table of players could not be made: ValueError: Cannot specify",
        "tables/rounds.csv could not be made: ZeroDivisionError: division by zero",
    ]
    page = (tmp_path / "page" / "report.html").read_text()
    assert "report: page/report.html" in err
    assert "the results cannot be shown: ZeroDivisionError" in err
    assert all(why in err and page.count(why) >= 2 for why in whys[:3])
    assert whys[3] in err
    assert whys[3] in page
    assert "Traceback" not in err
    assert 'href="figures/public_goods.svg"' in page
    assert (tmp_path / "page" / "tables" / "scores.csv").exists()


def test_a_report_to_open_is_checked_where_it_is_written(llm_games, small, tmp_path, monkeypatch):
    checked = []
    monkeypatch.setattr("llm_games.benchmarks.show.page.check_out", checked.append)
    monkeypatch.setattr("llm_games.benchmarks.show.page.report_page", lambda dbs, out, **how: out)
    monkeypatch.setattr(webbrowser, "open", lambda url: None)
    (tmp_path / "runs").mkdir()
    assert llm_games("run", small, "--db", "runs/a.db", "--quiet", "--open")[0] == 0
    assert llm_games("resume", "runs/a.db", "--quiet", "--open", "--report", "pages")[0] == 0
    assert llm_games("resume", "nowhere/a.db", "--open")[0] == 2
    assert checked == [Path("runs/a.html"), Path("pages")]


CTRL_C = """
import builtins, os, signal, sys
from llm_games.benchmarks.show import cli
signal.signal(signal.SIGINT, signal.default_int_handler)
real, where = builtins.__import__, sys.argv.pop(1)
def spied(name, *more, **named):
    if name == where:
        builtins.__import__ = real
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *more, **named)
builtins.__import__ = spied
cli.main()
"""


@pytest.mark.parametrize("where", ["run.plan", "run.conduct", "run.progress_bar", "judge.results"])
def test_ctrl_c_at_any_time_of_a_command_ends_with_130(small, tmp_path, where):
    module = f"llm_games.benchmarks.{where}"
    asked = [sys.executable, "-c", CTRL_C, module, "run", str(tmp_path / small), "--quiet"]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (130, "", False)


def test_a_dry_run_asks_for_no_key(llm_games, small, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    arguments = ("run", small, "--seat", "openai:m", "--base-url", "http://example.com/v1")
    assert llm_games(*arguments, "--dry-run")[0] == 0
    code, _, err = llm_games(*arguments)
    assert code == 2
    assert "OPENAI_API_KEY" in err


def test_a_dry_run_of_an_auction_and_of_water_reckons_with_long_games(llm_games):
    for name, least in (("alympics", 600), ("auc-arena", 300)):
        found = json.loads(llm_games("run", name, "--episodes", 1, "--dry-run", "--json")[1])
        assert sum(row["decisions"] for row in found["estimate"]) >= least


def test_progress_is_drawn_on_a_terminal_and_nowhere_else():
    counters = Counters(episodes=8, played=3, decisions=120, broke=2, in_flight=40)
    for terminal, quiet in ((True, False), (True, True), (False, False)):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
        with progress(console, quiet) as watch:
            watch(counters)
        drawn = console.file.getvalue()
        line = "120 decisions, 40 calls in flight, 2 rule breaks"
        assert (line in drawn, "3 of 8 episodes" in drawn) == (terminal and not quiet,) * 2


def test_progress_says_about_how_long_the_rest_takes(monkeypatch):
    """By the steps of episodes that are being played, too: before the first of them ends."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(progress_bar, "TELLING", 0.0)
    with progress(console) as watch:
        watch(Counters(episodes=8))
        clock = time.monotonic() + 60
        monkeypatch.setattr(progress_bar.time, "monotonic", lambda: clock)
        watch(Counters(episodes=8, under_way=2.0, decisions=30))
    assert "0 of 8 episodes, 30 of about 120 decisions, 0 calls in flight, about 3 min left" in (
        " ".join(console.file.getvalue().split())
    )


def test_what_is_waited_for_is_drawn_below():
    waits = Waits(m=Wait(600, "m refused with status 503", {1: time.monotonic() - 12, 2: 1e9}))
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress(console) as watch:
        watch(Counters(waits=waits))
    said = "waiting: m refused with status 503 (12 s of at most 600 s, 2 calls)"
    assert said in console.file.getvalue()


def test_progress_fits_a_narrow_terminal_that_shows_ascii_only():
    file = io.TextIOWrapper(io.BytesIO(), "ascii")
    speak_plainly(file)
    counters = Counters(episodes=1320, played=123, decisions=6_970_593, broke=2, in_flight=1024)
    with progress(Console(file=file, force_terminal=True, width=60)) as watch:
        watch(counters)
    file.flush()
    drawn = re.sub(r"\s+", " ", file.buffer.getvalue().decode("ascii"))
    assert "123 of 1,320 episodes, 6,970,593 decisions, 1,024 calls in flight, 2 rule" in drawn
    assert "?" not in drawn.replace("[?25", "")


def test_a_run_that_has_to_stop_says_how_to_go_on(llm_games, small, monkeypatch):
    count = itertools.count()

    def script(request):
        if next(count) == 5:
            raise ClientError("out of credit")
        return '{"tokens_contributed": 1}'

    entry = Kind("", model=lambda *_: LLMPolicy(ScriptedClient(script)))
    monkeypatch.setitem(PLAYERS, "scripted", entry)
    Path("stop.toml").write_text(SMALL)
    game = ("--game", "public_goods", "--seat", "scripted", "--db", "a.db")
    code, out, err = llm_games("run", "stop.toml", *game)
    assert (code, out) == (1, "")
    assert "stopped: out of credit" in err
    assert "go on with: llm-games resume a.db" in err
    assert llm_games("resume", "a.db")[0] == 0
    with Records.open_readonly("a.db") as records:
        assert [step.record["pot"] for step in records.steps(1)] == [3, 3]


def test_how_long_calls_wait_can_be_set_for_a_run_and_for_what_is_left(
    llm_games, small, monkeypatch
):
    tries, up = [], [5, 0, 99]  # moves that are answered, of each run

    def made(value, client, more):
        def script(request):
            tries.append(client["max_wait"])
            if request.question is not None:
                up[0] -= 1
                if up[0] < 0:
                    raise ClientError("down", transient=True)
            return '{"tokens_contributed": 1}'

        return LLMPolicy(add_layers(ScriptedClient(script), max_wait=client["max_wait"]))

    monkeypatch.setitem(PLAYERS, "scripted", Kind("", model=made))
    game = ("--game", "public_goods", "--seat", "scripted", "--db", "a.db")
    assert llm_games("run", small, *game, "--max-wait", "-1")[0] == 2
    code, _, err = llm_games("run", small, *game, "--max-wait", 0)
    assert (code, "stopped: down" in err) == (1, True)
    del up[0]
    code, _, err = llm_games("resume", "a.db", "--max-wait", 0.01)
    assert code == 1
    assert "it was waited for 0" in err
    assert "max_wait = 0.01 allows no more" in err
    assert "go on with: llm-games resume a.db" in err
    del up[0]
    assert llm_games("resume", "a.db", "--max-wait", 9)[0] == 0
    assert {*tries} == {0, 0.01, 9}


SHORT = """
seats = ["tiny"]
[[games]]
game = "public_goods"
params = {players = 3, rounds = 2}
"""


@pytest.mark.slow
def test_the_embedded_model_plays_offline_and_is_called_a_toy(llm_games, tmp_path):
    (tmp_path / "short.toml").write_text(SHORT)
    code, out, err = llm_games("run", "short.toml", "--db", "a.db")
    assert (code, "tiny in all seats" in out) == (0, True)
    assert "toy" in err
    assert "leaderboard" in err
    with Records.open_readonly("a.db") as records:
        assert records.usage()["tokens_out"] > 0
        assert {a.model for a in records.attempts(1)} == {"tiny"}


@pytest.mark.slow
def test_a_run_against_a_real_server_and_one_that_is_gone(llm_games, tmp_path):
    (tmp_path / "short.toml").write_text(SHORT + "[models.tiny]\nmax_wait = 0\n")
    port = int(dead_address().rpartition(":")[2].partition("/")[0])
    at = ("--seat", "openai:tiny", "--base-url", f"http://127.0.0.1:{port}/v1", "--db", "a.db")
    with serving(port):
        code, out, err = llm_games("run", "short.toml", *at)
        assert code == 0, err
        assert "openai:tiny in all seats" in out
    code, _, err = llm_games("run", "short.toml", *at[:-1], "b.db")
    assert (code, "does not answer" in err) == (2, True)
    with Records.open_readonly("a.db") as records:
        attempts = records.attempts(1)
        assert len(attempts) >= 6
        assert all(a.tokens_in > 0 and a.latency > 0 and a.outcome for a in attempts)


@contextmanager
def serving(port):
    program = "from llm_games.benchmarks.show.cli import main; main()"
    command = [sys.executable, "-c", program, "serve-tiny", "--port", str(port)]
    root = str(Path(__file__).parents[1])
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": root}) as server:
        try:
            for _ in range(600):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            yield
        finally:
            server.terminate()


STEERING = """
title = "a\\u001b[31mb\\u0007\\u202e"
episodes = 2
seats = ["random", { player = "fixed:3", name = "x\\u001b]0;t\\u0007y\\r" }, "tiny"]
[[games]]
game = "public_goods"
label = "l\\u001b[2J\\u009b1m"
params = { players = 3, rounds = 2 }
talk = { turns = 1 }
"""


@pytest.mark.slow
@pytest.mark.parametrize("colour", ["0", "1"])
def test_no_text_of_a_file_steers_the_terminal(llm_games, monkeypatch, tmp_path, colour):
    """Every command that shows a stranger's record, plain and as on a terminal with colours."""
    if colour == "1":
        monkeypatch.setenv("FORCE_COLOR", "1")
    Path("steering.toml").write_text(STEERING, "utf-8")
    shown = [llm_games("run", "steering.toml", "--db", "a.db")]
    shown.append(llm_games("run", "steering.toml", "--db", "b.db", "--seed", "2"))
    for command in (
        ("run", "steering.toml", "--dry-run"),
        ("compare", "a.db", "b.db"),
        ("leaderboard", "a.db"),
        ("analyse", "reliability", "a.db", "--success", "payoff >= 20"),
        ("replay", "a.db"),
        ("resume", "a.db"),
        ("analyse", "talk", "a.db"),
        ("watch", "a.db"),
        ("report", "missing.db"),
    ):
        shown.append(llm_games(*command))
    text = "".join(out + err for _, out, err in shown)
    assert "⟨U+001B⟩[2J⟨U+009B⟩1m" in text
    assert sum(not code for code, *_ in shown) >= 8
    for steering in ("\x1b[2J", "\x9b", "\x07", "\u202e", "\x1b]0", "b\r", "a\x1b[31mb"):
        assert steering not in text
    assert ("\x1b" in text) == (colour == "1")  # rich's own


def test_commands_that_moved_work_and_say_where_they_are(llm_games):
    code, out, err = llm_games("talk", "--help")
    assert (code, err) == (0, "llm-games talk is llm-games analyse talk now\n")
    assert "Show how players talked" in out
