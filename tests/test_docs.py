"""Every code block of the documents runs, in order, as it stands."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from llm_games.benchmarks.runs.config import (
    BudgetSettings,
    Config,
    GameSettings,
    ModelSettings,
    PriceSettings,
    SeatSettings,
    parse,
)
from llm_games.benchmarks.runs.plan import players, resolve

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


FILE = re.compile(r"^(?:#|\{#) (\S+/\S+)")  # a block that is a file says which in its first line


def blocks(language):
    """Return the blocks of a language that are no files, each with the files before it."""
    found = []
    for path in DOCUMENTS:
        text, files = path.read_text(), {}
        for block in BLOCK.finditer(text):
            if name := FILE.match(block[2]):
                files[name[1]] = block[2]
            elif block[1] == language:
                line = text[: block.start()].count("\n")
                found.append(pytest.param(block[2], dict(files), id=f"{path.name}:{line}"))
    return found


def test_every_block_has_a_language_that_is_run():
    kinds = {found[1] for path in DOCUMENTS for found in BLOCK.finditer(path.read_text())}
    assert kinds <= {"bash", "jinja", "python", "toml"}


def write(files, folder):
    """Write files that blocks are."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        if name.startswith("papers_of_mine/"):
            (folder / name).with_name("__init__.py").touch()


@pytest.mark.slow
@pytest.mark.parametrize(("code", "files"), blocks("python"))
def test_python(code, files, tmp_path):
    """As a script of its own, so that it can be registered, pickled and imported."""
    write(files, tmp_path)
    (tmp_path / "block.py").write_text(code)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    subprocess.run(
        [sys.executable, "-W", "error", "block.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        check=True,
    )


@pytest.mark.parametrize(("text", "files"), blocks("toml"))
def test_files_are_experiments(text, files, tmp_path, monkeypatch):
    write(files, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    plan = resolve(parse(tomllib.loads(text), "docs"), "docs")
    assert players(plan.without_keys())


def test_all_keys_of_experiments_are_in_the_docs():
    told = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "experiments.md").read_text()))
    for section in (
        Config,
        GameSettings,
        ModelSettings,
        SeatSettings,
        BudgetSettings,
        PriceSettings,
    ):
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
        arguments = shlex.split(command)[1:]
        run = [sys.executable, "-m", "llm_games.benchmarks.cli", *arguments]
        subprocess.run(run, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    assert (tmp_path / "experiment.db").exists()
    assert (tmp_path / "experiment-report" / "report.html").exists()
