"""What must not move by accident, written down: `python -m tests.frozen` writes it anew.

Prompts to the letter (hashes of all that a model is asked), the public face, and what today's
version reads out of a record that it made.
"""

import contextlib
import csv
import hashlib
import inspect
import json
import os
import sys
from dataclasses import fields
from itertools import product
from pathlib import Path

import typer

import llm_games as lg
from llm_games.baselines.players import make_player
from llm_games.benchmarks.record import schema
from llm_games.benchmarks.run.config import (
    BudgetSettings,
    Config,
    GameSettings,
    GuestSettings,
    ModelSettings,
    PriceSettings,
    SeatSettings,
)
from llm_games.benchmarks.show import cli
from llm_games.game_rooms import ROOMS
from llm_games.registry import game_class
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.planning import PlanningPolicy

FROZEN = Path(__file__).parent / "data" / "frozen"
WORDINGS = ("v1", "v2", "v3", "v4", "v5")
REQUESTS = 24
"""How many requests of a game are looked at: rules, moves, what is asked again, talk."""


class EnoughRequests(Exception):
    """Ends a game whose first requests have been seen."""


def requests_digest(game, policy_class=LLMPolicy, prompts="v1", **parameters):
    """Return a digest of the first requests of a model beside players by chance."""
    digest, count = hashlib.sha256(), 0

    def answer(request):
        nonlocal count
        if count == REQUESTS:
            raise EnoughRequests
        count += 1
        messages = [dict(message) for message in request.messages]
        digest.update(json.dumps(messages, ensure_ascii=False).encode())
        return "no number"  # asked again, and then the game's declared move

    rules = lg.rules(game, **parameters)
    model = policy_class(ScriptedClient(answer), prompts=prompts)
    players = [model, *(make_player("random") for _ in range(rules.players - 1))]
    with contextlib.suppress(EnoughRequests):
        lg.play(rules, players, seed=5)
    return digest.hexdigest()[:16]


def prompts(game):
    presets = [{}, *({"preset": preset} for preset in game_class(game).presets)]
    digests = {}
    for settings, wording in product(presets, WORDINGS):
        label = " ".join([*settings.values(), wording])
        digests[label] = requests_digest(game, prompts=wording, **settings)
    digests["talk"] = requests_digest(game, talk={"turns": 1})
    digests["planning"] = requests_digest(game, PlanningPolicy)
    return digests


def face():
    """Return the public face: names, parameters, commands with options, TOML keys, columns."""
    lines = []
    for name in lg.__all__:
        thing = getattr(lg, name)
        parameters = inspect.signature(thing).parameters if inspect.isroutine(thing) else {}
        lines.append(f"lg.{name}({', '.join(parameters)})" if parameters else f"lg.{name}")
    root = typer.main.get_command(cli.app)
    commands = dict(root.commands)
    for name in [name for name, command in commands.items() if hasattr(command, "commands")]:
        group = commands.pop(name)
        commands |= {f"{name} {inner}": command for inner, command in group.commands.items()}
    for name, command in sorted(commands.items()):
        options = (" ".join([*option.opts, *option.secondary_opts]) for option in command.params)
        lines.append(f"llm-games {name}: {', '.join(sorted(options))}")
    for table in (
        Config,
        GameSettings,
        ModelSettings,
        SeatSettings,
        PriceSettings,
        BudgetSettings,
        GuestSettings,
    ):
        lines.append(f"{table.__name__} in TOML: {', '.join(sorted(table.model_fields))}")
    for row, table in schema.TABLES.items():
        lines.append(f"{table.name}: {', '.join(field.name for field in fields(row))}")
    return "\n".join(lines) + "\n"


def table(path):
    """Return the rows of a CSV file, numbers as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _number(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def column_digests(folder):
    digests = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            names, *lines = csv.reader(file)
        columns = zip(*lines, strict=True) if lines else ((),) * len(names)
        digests[path.stem] = {
            name: hashlib.sha256("\n".join(column).encode()).hexdigest()[:16]
            for name, column in zip(names, columns, strict=True)
        }
    return digests


def write():
    """Write prompts and face anew; a record is made by its own version."""
    os.makedirs(FROZEN, exist_ok=True)
    digests = {game: prompts(game) for game in sorted(ROOMS)}
    (FROZEN / "prompts.json").write_text(json.dumps(digests, indent=1) + "\n")
    (FROZEN / "face.txt").write_text(face())


if __name__ == "__main__":
    sys.exit(write())
