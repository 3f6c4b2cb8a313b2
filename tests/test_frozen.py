"""What must not move by accident: prompts, the public face, and what a record of 0.8.0 says.

`tests/frozen.py` writes `data/frozen` anew where a change is meant; `data/recorded_0_8_0` was
written by that version.
"""

import json
import shutil
from pathlib import Path

import frozen
import pytest

from llm_games.game_rooms import ROOMS

RECORD = Path(__file__).parent / "data" / "recorded_0_8_0"
FILE = "recorded_0_8_0.db"


@pytest.mark.parametrize("game", sorted(ROOMS))
def test_prompts_are_the_same_to_the_letter(game):
    assert frozen.prompts(game) == json.loads((frozen.FROZEN / "prompts.json").read_text())[game]


def test_the_public_face_is_the_same():
    assert frozen.face() == (frozen.FROZEN / "face.txt").read_text()


def assert_same(today, before, path=""):
    """Assert that what stood in an output stands in it still; numbers to the twelfth digit."""
    if isinstance(before, dict):
        for name, part in before.items():
            assert name in today, path
            assert_same(today[name], part, f"{path}/{name}")
    elif isinstance(before, list):
        assert len(today) == len(before), path
        for number, pair in enumerate(zip(today, before, strict=True)):
            assert_same(*pair, f"{path}/{number}")
    elif isinstance(before, float):
        assert today == pytest.approx(before, rel=1e-12, abs=1e-15, nan_ok=True), path
    else:
        assert today == before, path


@pytest.fixture
def record(tmp_path):
    return shutil.copy(RECORD / FILE, tmp_path / FILE)


COMMANDS = {
    "resume": ["resume", FILE],
    "compare": ["compare", FILE, FILE],
    "leaderboard": ["leaderboard", FILE],
    "talk": ["analyse", "talk", FILE],
    "reliability": ["analyse", "reliability", FILE],
    "replay": ["replay", FILE],
}


@pytest.mark.parametrize("output", COMMANDS)
def test_a_record_says_what_it_said(output, record, llm_games):
    code, out, err = llm_games(*COMMANDS[output], "--json")
    assert (code, err) == (0, "")
    assert_same(json.loads(out), json.loads((RECORD / f"{output}.json").read_text()))


def test_a_record_is_exported_as_it_was(record, llm_games, tmp_path):
    assert llm_games("export", FILE, "-o", "out")[0] == 0
    assert_same(
        frozen.column_digests(tmp_path / "out"), json.loads((RECORD / "export.json").read_text())
    )


@pytest.mark.slow
def test_a_record_is_reported_as_it_was(record, llm_games, tmp_path):
    assert llm_games("report", FILE, "-o", "out")[0] == 0
    for path in sorted((RECORD / "tables").iterdir()):
        tables = (
            frozen.table(folder / path.name)
            for folder in (tmp_path / "out/tables", RECORD / "tables")
        )
        assert_same(*tables, path.name)
