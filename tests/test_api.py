"""A run from Python: what it plays, what it returns, and what wins over the file."""

import asyncio
from importlib import import_module

import pytest
from playing import each_row

from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.store import RunExists
from llm_games.benchmarks.run.api import run
from llm_games.benchmarks.run.replay import replay
from llm_games.errors import UnknownName

TOML = """
seed = 3
episodes = 2
seats = ["random"]

[[games]]
game = "public_goods"
label = "goods"
params = { players = 3, rounds = 2 }

[[games]]
game = "water_allocation"
params = { players = 3, days = 2 }
"""


def test_a_run_of_toml(tmp_path):
    played = run(TOML, tmp_path / "a.db", seats="fixed:20", games="goods")
    [(label, scores)] = played.scores.items()
    assert (label, len(scores)) == ("goods", 2)
    rows = played.rows("decisions")
    assert len(rows) == 2 * 2 * 3
    assert [row["seed"] for row in played.rows("episodes")] != [3, 3]
    assert {(row["label"], row["player"], row["action"]) for row in rows} == {
        ("goods", "fixed:20", 20)
    }
    assert played.games["goods"].payoffs == [80.0] * 3
    with pytest.raises(UnknownName, match="did you mean 'decisions'"):
        played.rows("decision")
    with pytest.raises(RunExists):
        run(TOML, tmp_path / "a.db")


def test_a_file_a_dictionary_and_a_name_in_a_running_loop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(TOML)
    from_file = run("mine.toml", episodes=1, seed=4)
    assert from_file.path.name.startswith("mine-")
    plain = {
        "seed": 4,
        "seats": "random",
        "games": [
            {"game": "public_goods", "label": "goods", "params": {"players": 3, "rounds": 2}}
        ],
    }

    async def notebook():
        return run(plain, "b.db")

    steps = asyncio.run(notebook()).rows("steps")
    assert steps == [row for row in from_file.rows("steps") if row["label"] == "goods"]
    named = run("gamma-bench", "c.db", games=["public_goods"], seats=["rational"], episodes=1)
    assert named.scores == {"public_goods": [100.0]}


@each_row(
    ("source", "given", "says"),
    [
        ("nowhere", {}, "there is no file nowhere"),
        ("x =\n", {}, "configuration is not valid TOML"),
        ({"games": []}, {}, "configuration: games"),
        (TOML, {"temperatur": 1.0}, "did you mean 'temperature'"),
        (TOML, {"budget_cals": 1}, "did you mean 'calls'"),
        (TOML, {"temperature": 1.0}, "there is none"),
    ],
)
def test_mistakes(tmp_path, source, given, says):
    with pytest.raises(ConfigError, match=says):
        run(source, tmp_path / "a.db", **given)
    assert not (tmp_path / "a.db").exists()


def test_chance_can_be_given(tmp_path):
    game = {"game": "sealed_bid_auction", "params": {"players": 2, "rounds": 1}}
    raw = {"games": [game | {"given": {"valuations": [[7, 5]]}, "seats": ["truthful"]}]}
    played = run(raw, tmp_path / "a.db")
    assert [row["action"] for row in played.rows("decisions")] == [7, 5]
    assert played.rows("episodes")[0]["given"] == {"valuations": [[7, 5]]}
    with Records.open_readonly(played.path) as records:
        assert not replay(records).differences
    raw["games"][0]["given"] = {"valuation": 3}
    with pytest.raises(ConfigError, match="did you mean 'valuations'"):
        run(raw, tmp_path / "b.db")


def test_an_import_of_former_modules_says_where_they_are():
    with pytest.raises(ModuleNotFoundError, match=r"record, judge, run.*table of old and new"):
        import_module("llm_games.benchmarks.runs.rows")
