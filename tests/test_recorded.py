"""A file that llm-games 0.1.0 recorded still reads, reports, compares and exports as it did then.

`data/recorded_0_1_0` has the file, and what that version printed and wrote of it.
"""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from llm_games.benchmarks.record import schema
from llm_games.benchmarks.record.editions import OtherEdition, editions, maker, package
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.run.replay import replay
from llm_games.registry import recorded_rulebook, rulebook

DATA = Path(__file__).parent / "data" / "recorded_0_1_0"
FILE = "recorded_0_1_0.db"


@pytest.fixture
def old(tmp_path):
    return shutil.copy(DATA / FILE, tmp_path / FILE)


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same(now, before):
    if isinstance(before, dict):
        return {name: same(now[name], value) for name, value in before.items()}
    if isinstance(before, list) and len(now) == len(before):
        return [same(*pair) for pair in zip(now, before, strict=True)]
    return now


def test_its_summary(old, llm_games):
    code, out, err = llm_games("resume", FILE, "--json")
    before = json.loads((DATA / "resume.json").read_text())
    assert (code, same(json.loads(out), before), err) == (0, before, "")


def test_its_comparison(old, llm_games):
    code, out, err = llm_games("compare", FILE, FILE, "--json")
    assert (code, err) == (0, "")
    before = json.loads((DATA / "compare.json").read_text())
    for was, game in zip(before, json.loads(out)["games"], strict=True):
        assert [game[key] for key in ("label", "game", "seats")] == [
            was[key] for key in ("label", "game", "seats")
        ]
        for family, found in (("scores", was["score"]), ("payoffs", was["payoff"])):
            numbers = ("pairs", "a", "b", "mean")  # what is inferred from them is another matter
            if found is not None:  # means of seats are taken in another order now
                now = [game[family][key] for key in numbers]
                assert now == pytest.approx([found[key] for key in numbers], rel=1e-12)


def test_its_export(old, llm_games, tmp_path):
    assert llm_games("export", FILE, "-o", "out")[0] == 0
    for path in sorted((DATA / "export").iterdir()):
        before, now = table(path), table(tmp_path / "out" / path.name)
        assert same(now, before) == before, path.name


@pytest.mark.slow
def test_its_report(old, llm_games, tmp_path):
    assert llm_games("report", FILE, "-o", "out")[0] == 0
    for path in sorted((DATA / "tables").iterdir()):
        before, now = table(path), table(tmp_path / "out" / "tables" / path.name)
        if path.stem == "scores":  # the books do not say what an episode cost
            assert {row.pop("cost") for row in before} == {""}
        assert same(now, before) == before, path.name


def test_it_says_which_version_plays_it_again(old, llm_games):
    code, out, err = llm_games("replay", FILE)
    assert (code, out) == (2, "")
    assert "made by llm-games 0.1.0" in err
    assert "the rules of beauty_contest" in err
    assert err.endswith("use llm-games 0.1.0\n")
    assert "pip install" not in err  # no release can be installed
    with pytest.raises(OtherEdition, match=r"neither replayed nor resumed.* llm-games 0\.1\.0"):
        Store.open(old)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("rules", "the rules of g"),
        ("wording", "the wording of g"),
        ("seat", "how models are asked"),
    ],
)
def test_what_changed_is_named(tmp_path, monkeypatch, part, says):
    path = tmp_path / "a.db"
    games = [("a", "public_goods", {}, ["random"])]
    Store.create(path, "A run", {"seed": 1}, games, [[11]]).close()
    changed = editions("public_goods") | {part: "another"}
    monkeypatch.setattr("llm_games.benchmarks.record.editions.editions", lambda game: changed)
    with Records.open_readonly(path) as records, pytest.raises(OtherEdition) as caught:
        replay(records)
    said = str(caught.value)
    assert says.replace(" g", " public_goods") in said
    assert "another" in said
    assert sum(other in said for other in ("rules of", "wording of", "models are")) == 1


def test_a_record_names_the_commit_that_made_it(tmp_path):
    number, _, commit = package().partition("+")
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert asked.stdout.startswith(commit.removesuffix(".dirty")[:12])
    assert bool(commit) == (asked.returncode == 0)
    Store.create(tmp_path / "a.db", "A run", {"seed": 1}, [], []).close()
    with Records.open_readonly(tmp_path / "a.db") as records:
        assert records.package == package()
    assert maker("0.8.0+9db80c6") == "llm-games 0.8.0 (commit 9db80c6)"
    assert maker(number) == f"llm-games {number}"


def test_an_edition_has_a_version_of_the_package():
    """Who raises an edition raises the package's version, and then adds a line here."""
    from llm_games import __version__

    assert __version__ == "0.8.0"
    assert editions("public_goods")["rules"] == 3
    assert editions("public_goods")["seat"] == 4
    assert len(editions("public_goods")["wording"]) == 16


def test_a_step_of_many_seats_is_written_in_little():
    seats = 1000
    paid = [0.0] * seats
    paid[7], paid[8] = 2.5, -0.0
    record = {"actions": [-1] * 7 + [3] + [-1] * 992, "ratio": [1, 2]}
    step = schema.StepRow(0, [7], record, paid, list(range(400)))
    written = schema.TABLES[schema.StepRow].written(step.thin())
    assert sum(len(str(value)) for value in written.values()) < 2500
    assert step.thin().full() == step
    assert str(step.thin().full()) == str(step)  # the sign of a zero too
    few = schema.StepRow(0, [0, 1], {"actions": [1, 1, 0]}, [0.0] * 3, [2])
    assert few.thin() is few


def test_a_default_that_changed_means_in_older_records_what_it_meant(tmp_path):
    """Battle royale told nobody of its cap, up to edition 2."""
    assert recorded_rulebook("battle_royale", {"players": 3}, 2).announce_cap is False
    assert recorded_rulebook("battle_royale", {"announce_cap": True}, 2).announce_cap is True
    assert recorded_rulebook("battle_royale", {}, 3) == rulebook("battle_royale")
    with Records.open_readonly(DATA / FILE) as records:
        rules = [row.rules() for row in records.episodes() if row.game.game == "battle_royale"]
    assert rules
    assert not any(game.announce_cap for game in rules)
