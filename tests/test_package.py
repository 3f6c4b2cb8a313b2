"""What is installed is what is in the repository."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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
            installed + name.removeprefix(folder) for name in files if is_data(clone, name)
        }
    assert built == expected


def is_data(root, name):
    # Links serve the checkout's tools, readme files its readers; neither is installed.
    return not (root / name).is_symlink() and not name.endswith(".md")


def test_every_floor_imports_only_from_below():
    floors = ["llm_games", "llm_games.wrappers", "llm_games.baselines", "llm_games.benchmarks"]
    for level, folder in enumerate(["llm_games", "wrappers", "baselines", "benchmarks"]):
        for file in (ROOT / folder).rglob("*.py"):
            if any(part.is_symlink() for part in file.parents):
                continue
            for above in floors[level + 1 :]:
                assert f"from {above}" not in file.read_text(), f"{file} imports from {above}"
                assert f"import {above}" not in file.read_text(), f"{file} imports from {above}"
