"""A recorded run as a client: the player ``recorded:FILE.db`` answers as its models did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from llm_games.baselines.players import llm_player
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.rows import OVERFLOW, AttemptRow, Plain
from llm_games.errors import BadParameter, unknown
from llm_games.wrappers.clients.base import Completion, ContextOverflow, Message
from llm_games.wrappers.clients.recorded import RecordedClient
from llm_games.wrappers.llm_policy import LLMPolicy

Row = tuple[list[Message], int, Completion | ContextOverflow]


def from_run(path: str | Path, label: str = "") -> RecordedClient:
    """Return a client that gives completions of a run, or of one game, again by prompt and seed.

    Raises:
        StoreError: the file is not a run that can be read.
        UnknownName: the run has no game that is called so.
        BadParameter: it holds different completions of one prompt and seed.
    """
    with Records.open_readonly(path) as records:
        labels = [game.label for game in records.games()]
        if label and label not in labels:
            raise unknown(f"game in {path} called", label, labels)
        known: dict[tuple[str, int], tuple[str, AttemptRow]] = {}
        refused: list[Plain] = []
        for episode in (e for e in records.episodes() if label in ("", e.game.label)):
            for row in records.attempts(episode.id):
                key = str(row.prompt), row.seed
                where, first = known.setdefault(key, (episode.game.label, row))
                if (first.text, first.finish) != (row.text, row.finish):
                    raise BadParameter(
                        f"{path} holds different answers to one prompt, in {where} and "
                        f"{episode.game.label}; say which to serve: recorded:{path}#{where}"
                    )
            notes = records.notes(episode.id)
            refused += [note.content for note in notes if note.kind == OVERFLOW]
        return RecordedClient(_rows(records, known.values(), refused), f"recorded:{path}")


def _rows(
    records: Records, found: Iterable[tuple[str, AttemptRow]], refused: Iterable[Plain]
) -> Iterator[Row]:
    for call in refused:
        yield records.messages(call["prompt"]), call["seed"], ContextOverflow(call["said"])
    for _, row in found:
        if not row.error:
            yield records.messages(row.prompt), row.seed, row.completion()


def player(value: str, client: Mapping[str, Any], settings: Mapping[str, Any]) -> LLMPolicy:
    """Make the player ``recorded:value`` (``FILE.db`` or ``FILE.db#LABEL``); see `from_run`."""
    if client:
        raise BadParameter(f"recorded:{value} calls nobody and takes no {', '.join(client)}")
    path, _, label = value.partition("#")
    return llm_player(from_run(path, label), settings)
