"""What is installed is what is in the repository."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from llm_games.errors import install

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "llm_games/": "llm_games/",
    "wrappers/": "llm_games/wrappers/",
    "baselines/": "llm_games/baselines/",
    "benchmarks/": "llm_games/benchmarks/",
}


@pytest.mark.slow
def test_the_wheel_holds_every_tracked_file(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    clone = tmp_path / "clone"  # a build leaves folders behind
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    subprocess.run([*command, "-w", str(tmp_path), str(clone)], check=True)
    wheel = zipfile.ZipFile(next(tmp_path.glob("*.whl")))
    built = {name for name in wheel.namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=clone, check=True, capture_output=True, text=True
    ).stdout.split()
    expected = set()
    for folder, installed in FOLDERS.items():
        files = [name for name in tracked if name.startswith(folder)]
        expected |= {
            installed + name.removeprefix(folder)
            for name in files
            if is_data(clone, name) and not name.startswith("benchmarks/studies/")
        }
    assert built == expected


def is_data(root, name):
    # Links serve the checkout's tools, readme files its readers; neither is installed.
    # Cases of games are for tests.
    return not (root / name).is_symlink() and not name.endswith((".md", "/cases.py"))


def test_the_command_for_an_extra_keeps_what_is_installed():
    pip = pytest.importorskip("pip", reason="pip is not in this environment").__name__
    wanted = install("report").removeprefix("pip install ").strip("'")
    options = ["install", "--dry-run", "--no-index", "--no-deps", wanted]
    command = [sys.executable, "-m", pip, *options]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Requirement already satisfied: llm-games[report]" in said
