"""Editions: what a recorded episode hangs on beside its configuration.

Who changes one raises the package's version too, so that a file can say which version still plays
it again. Files of all editions are read.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from llm_games import game_rooms as rooms
from llm_games import version, words
from llm_games.benchmarks.record.connection import StoreError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import Plain
from llm_games.disguise import unmarked
from llm_games.registry import game_class
from llm_games.rulebook import Rulebook
from llm_games.wrappers import llm_policy

TALK, GRADED = (words.FOLDER / name for name in ("talk.j2", "graded.j2"))
UNNAMED: Plain = {"rules": 0}  # in files of llm-games 0.1.0: chance was drawn in another way
SAID = {
    "rules": "the rules of {games} (edition {old}, here {new})",
    "wording": "the wording of {games} ({old}, here {new})",
    "seat": "how models are asked and read (edition {old}, here {new})",
    "talk": "the wording of talk ({old}, here {new})",
}


@cache
def package() -> str:
    """Return the version of the package, in a checkout with the commit: ``0.8.0+9db80c6d11aa``."""
    root = Path(version.__file__).parents[1]
    commit = ""
    if (root / ".git").exists() and (root / "llm_games" / "version.py").is_file():
        command = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--exclude=*"]
        try:
            asked = subprocess.run(
                [*command, "--dirty"], capture_output=True, text=True, timeout=10, check=False
            )
            commit = asked.stdout.strip().replace("-", ".")
        except (OSError, subprocess.TimeoutExpired):
            pass  # without git no commit is known
    return f"{version.__version__}+{commit}" if commit else version.__version__


def maker(package: str) -> str:
    """Say which llm-games made a record, as far as it says so."""
    number, _, commit = package.partition("+")
    return f"llm-games {number} (commit {commit})" if commit else f"llm-games {number}"


class OtherEdition(StoreError):
    """A record cannot be played again, since what it hangs on has changed."""


@cache
def editions(game: str) -> Plain:
    """Editions of today: rules and seat by number, wordings as hashes of templates, talk if any."""
    cls = game_class(game)
    folders = filter(None, (rooms.wordings(cls.name), words.FOLDER))
    templates = [path for folder in folders for path in sorted(folder.glob("*.j2"))]
    return {
        "rules": cls.edition,
        "wording": _hash(path for path in templates if path not in (TALK, GRADED)),
        "seat": llm_policy.EDITION,
        "talk": _hash([TALK]),
    }


def recorded(rules: Rulebook) -> Plain:
    current = editions(rules.name)
    return {k: v for k, v in current.items() if k != "talk" or rules.core is not rules}


def _hash(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}\0{unmarked(path.read_text('utf-8'))}\0".encode())
    return digest.hexdigest()[:16]


def check_editions(records: Records) -> None:
    """Check what a run hangs on; `OtherEdition` says what changed, and which version plays it."""
    changed: dict[tuple[str, str, str], list[str]] = {}
    recorded_editions = {row.game.game: row.edition or UNNAMED for row in records.episodes()}
    for game, edition in recorded_editions.items():
        for part, new in editions(game).items():
            if (old := edition.get(part, new)) != new:
                changed.setdefault((part, str(old), str(new)), []).append(game)
    if changed:
        parts = "; ".join(
            SAID[part].format(games=", ".join(games), old=old, new=new)
            for (part, old, new), games in changed.items()
        )
        raise OtherEdition(
            f"{records.path} was made by {maker(records.package)}; it can be read and reported, "
            f"but neither replayed nor resumed, since this has changed: {parts}. To replay or "
            f"resume it, use {maker(records.package)}"
        )
