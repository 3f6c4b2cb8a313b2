"""A recorded run as a client: the player ``recorded:FILE.db`` answers as its models did."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_games.baselines.players import llm_player
from llm_games.baselines.rules import Kind
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import OVERFLOW, AttemptRow
from llm_games.errors import BadParameter, unknown
from llm_games.wrappers.clients.base import Completion, ContextOverflow
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.clients.recorded import RecordedClient
from llm_games.wrappers.llm_policy import LLMPolicy


def from_run(path: str | Path, label: str = "") -> RecordedClient:
    """Return a client that gives completions of a run, or of one game, again by prompt and seed.

    Raises StoreError: no run that can be read; UnknownName: it has no game that is called so;
    BadParameter: it holds different completions of one prompt and seed.
    """
    with Records.open_readonly(path) as records:
        labels = [game.label for game in records.games()]
        if label and label not in labels:
            raise unknown(f"game in {path} called", label, labels)
        replies: dict[tuple[bytes, int], tuple[str, AttemptRow, Chat]] = {}
        rows: list[tuple[Chat, int, Completion | ContextOverflow]] = []
        for episode in (e for e in records.episodes() if label in ("", e.game.label)):
            chats = records.chats(episode.id)
            for row in records.attempts(episode.id):
                listed = isinstance(row.prompt, list)
                chat = Chat.of(records.messages(row.prompt)) if listed else chats[row.prompt]
                reply = (episode.game.label, row, chat)
                game_label, first, _ = replies.setdefault((chat.digest, row.seed), reply)
                if (first.text, first.finish) != (row.text, row.finish):
                    raise BadParameter(
                        f"{path} holds different answers to one prompt, in {game_label} and "
                        f"{episode.game.label}; say which to serve: recorded:{path}#{game_label}"
                    )
            for note in records.notes(episode.id):
                if note.kind == OVERFLOW:
                    chat = Chat.of(records.messages(note.content["prompt"]))
                    rows.append((chat, note.content["seed"], ContextOverflow(note.content["said"])))
    answers = (reply[1:] for reply in replies.values())
    rows += [(chat, row.seed, row.completion()) for row, chat in answers if not row.error]
    return RecordedClient(rows, f"recorded:{path}")


def player(value: str, client: Mapping[str, Any], settings: Mapping[str, Any]) -> LLMPolicy:
    """Make the player ``recorded:value`` (``FILE.db`` or ``FILE.db#LABEL``); see `from_run`."""
    if client:
        raise BadParameter(f"recorded:{value} calls nobody and takes no {', '.join(client)}")
    path, _, label = value.partition("#")
    return llm_player(from_run(path, label), settings)


RECORDED = Kind("gives the completions of a recorded run again", None, "<file.db>", model=player)
