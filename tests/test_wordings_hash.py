"""Wordings do not change unnoticed: the embedded player has learned to read them."""

import hashlib

from llm_games import rooms
from llm_games.rooms import ROOMS
from llm_games.words import FOLDER

KNOWN = {}


def digest(folder):
    texts = (path.name.encode() + b"\0" + path.read_bytes() for path in sorted(folder.glob("*.j2")))
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def test_wordings_are_as_they_were():
    """If one is meant to change: change it here, too, and train the embedded player again."""
    found = {game: digest(rooms.wordings(game)) for game in ROOMS} | {"": digest(FOLDER)}
    assert found == KNOWN
