"""Settings: all of them are listed, all that differ, and no secret."""

import copy
import json
import sqlite3
from contextlib import closing

import pytest

import llm_games as lg
from llm_games.benchmarks.record.run_settings import (
    HIDDEN,
    plain_changes,
    run_settings,
    secrets_of,
)
from llm_games.benchmarks.record.store import Records
from llm_games.benchmarks.run.config import (
    BudgetSettings,
    GuestSettings,
    PlayerSettings,
    PriceSettings,
    ServerSettings,
)
from llm_games.benchmarks.run.plan import PlannedGame, RunPlan

SECRET = "sk-Zf81kQ0aPq7"
GAME = {"game": "public_goods", "params": {"players": 3, "rounds": 2}}


@pytest.fixture
def run(tmp_path):
    return lg.run({"seats": ["mock"], "games": [GAME]}, tmp_path / "a.db").path


def listed(path, other):
    with Records.open_readonly(path) as a, Records.open_readonly(other) as b:
        return [setting for setting in run_settings(a, b) if setting.differs]


def changed(path, config):
    """Return a copy of a run with another configuration."""
    other = path.with_name("other.db")
    other.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(other)) as database:
        database.execute("UPDATE run SET config = ?", [json.dumps(config)])
        database.commit()
    return other


def places(config):
    """Return by place the table in a configuration, and the names that it may have."""
    seat = config["games"][0]["seats"][1]
    return {
        "": (config, set(RunPlan.model_fields) - {"games", "objects", "links"}),
        "budget.": (config["budget"], set(BudgetSettings.model_fields)),
        "guests.": (config["guests"], set(GuestSettings.model_fields)),
        "prices.m.": (config["prices"].setdefault("m", {}), set(PriceSettings.model_fields)),
        "games.": (
            config["games"][0],
            set(PlannedGame.model_fields) - {"seats", "ignored", "label"},
        ),
        "seat": (seat, {"player", "name"}),
        "settings": (seat["settings"], set(PlayerSettings.model_fields)),
        "client": (seat["client"], set(ServerSettings.model_fields)),
    }


def test_every_key_of_the_configuration_that_differs_is_listed(run):
    with Records.open_readonly(run) as records:
        plain = records.config
    places(plain)
    assert listed(run, run) == []
    count = 0
    for place, (_, names) in places(copy.deepcopy(plain)).items():
        for name in sorted(names):
            config = copy.deepcopy(plain)
            table, _ = places(config)[place]
            table[name] = "something else"
            before = changed(run, plain).rename(run.with_name("before.db"))
            found = [setting.name for setting in listed(before, changed(run, config))]
            assert any(name in setting.split(".") for setting in found), (place, name, found)
            count += 1
    assert count > 60


def test_seats_alike_are_one_line_and_no_secret_shows(run):
    with Records.open_readonly(run) as records:
        config = copy.deepcopy(records.config)
        for seat in config["games"][0]["seats"][:2]:
            seat["client"]["headers"] = {"X-Api-Key": SECRET, "X-Team": "us"}
            seat["client"]["base_url"] = f"https://me:{SECRET}@host/v1?key={SECRET}"
            seat["settings"]["extra_body"] = {"token": SECRET, "top_k": 5}
            seat["settings"]["temperature"] = 0.5
    found = listed(run, changed(run, config))
    assert SECRET not in repr(found)
    lines = {setting.name: (setting.whose, setting.values[1]) for setting in found}
    whose = "public_goods, seat 0–1"
    assert lines["headers.X-Api-Key"] == (whose, HIDDEN)
    assert lines["headers.X-Team"] == (whose, "us")
    assert lines["base_url"] == (whose, "https://host/v1")
    assert lines["extra_body.token"] == (whose, HIDDEN)
    assert lines["temperature"] == (whose, "0.5")


def test_what_was_changed_in_a_branch_shows_no_secret():
    changed = {
        "base_url": f"https://host/v1?key={SECRET}",
        "headers": {"X-Api-Key": SECRET, "X-Team": "us"},
        "extra_body": {"token": SECRET},
        "temperature": 0.5,
    }
    assert plain_changes(changed) == [
        ("base_url", "https://host/v1"),
        ("headers.X-Api-Key", HIDDEN),
        ("headers.X-Team", "us"),
        ("extra_body.token", HIDDEN),
        ("temperature", "0.5"),
    ]


def test_the_secrets_of_a_run_are_those_that_its_settings_hold_or_name(run, tmp_path, monkeypatch):
    with Records.open_readonly(run) as records:
        config = records.config
    keys = [f"{SECRET}-{number}" for number in range(5)]
    (tmp_path / "key").write_text(keys[1])
    monkeypatch.setenv("ONE_KEY", keys[0])
    monkeypatch.setenv("TWO_KEY", keys[2])
    config["games"][0]["seats"][1]["client"] |= {
        "api_key_env": "ONE_KEY",
        "api_key_file": str(tmp_path / "key"),
        "headers": {"x-auth": "Bearer env:TWO_KEY", "x-token": f"Bearer {keys[3]}"},
        "base_url": f"https://me:{keys[4]}@example.org/v1",
    }
    with Records.open_readonly(changed(run, config)) as records:
        found = {secret.reveal() for secret in secrets_of(records)}
    assert found >= {*keys}
