"""Every code block of the documents runs, in order, as it stands."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from llm_games.benchmarks.runs.config import (
    BudgetSection,
    Config,
    GameSection,
    ModelSection,
    PriceSection,
    SeatSection,
    parse,
)
from llm_games.benchmarks.runs.plan import players, resolve

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [
        pytest.param(found[2], id=f"{path.name}:{path.read_text()[: found.start()].count(chr(10))}")
        for path in DOCUMENTS
        for found in BLOCK.finditer(path.read_text())
        if found[1] == language
    ]


def test_every_block_has_a_language_that_is_run():
    kinds = {found[1] for path in DOCUMENTS for found in BLOCK.finditer(path.read_text())}
    assert kinds <= {"bash", "python", "toml"}


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("python"))
def test_python(code, tmp_path):
    """As a script of its own, so that it can be registered, pickled and imported."""
    (tmp_path / "block.py").write_text(code)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    subprocess.run(
        [sys.executable, "-W", "error", "block.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        check=True,
    )


@pytest.mark.parametrize("text", blocks("toml"))
def test_files_are_experiments(text):
    plan = resolve(parse(tomllib.loads(text), "docs"), "docs")
    assert players(plan.without_keys())


def test_all_keys_of_experiments_are_in_the_docs():
    told = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "experiments.md").read_text()))
    for section in (Config, GameSection, ModelSection, SeatSection, BudgetSection, PriceSection):
        asides = {"player", "games", "models", "prices", "budget", "vary", "name"}
        missing = set(section.model_fields) - told - asides
        shared = {key.removesuffix("_per_seat") for key in missing}
        assert not shared - told, section


@pytest.mark.slow
def test_experiments_and_commands(tmp_path):
    """The TOML block is the file that the `llm-games` lines after it run."""
    text = (ROOT / "README.md").read_text()
    found = {
        language: [b[2] for b in BLOCK.finditer(text) if b[1] == language]
        for language in ("toml", "bash")
    }
    (tmp_path / "experiment.toml").write_text(found["toml"][0])
    commands = [line for block in found["bash"] for line in block.splitlines()]
    commands = [line for line in commands if line.startswith("llm-games ")]
    assert len(commands) >= 3
    for command in commands:
        arguments = command.split()[1:]
        run = [sys.executable, "-m", "llm_games.benchmarks.cli", *arguments]
        subprocess.run(run, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    assert (tmp_path / "experiment.db").exists()
    assert (tmp_path / "experiment-report" / "report.html").exists()
