"""What a person says of a decision or an episode on its page, kept beside the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_games.benchmarks.record.labels import EPISODE
from llm_games.benchmarks.show.view import replayed
from llm_games.benchmarks.show.view.replayed import NoSuchPage
from llm_games.benchmarks.show.view.run_shelf import RunFile
from llm_games.benchmarks.show.view.texts import visible
from llm_games.errors import BadParameter

FIELDS = "labels", "note"


def label(run: RunFile, numbers: Mapping[str, Any], form: Mapping[str, str]) -> None:
    """Keep a form's labels and note of a decision, or of an episode without `step` and `seat`.

    Raises NoSuchPage, BadParameter for a field, and StoreError where nothing can be kept.
    """
    if odd := sorted({*form} - {*FIELDS}):
        raise BadParameter(f"{' and '.join(FIELDS)} can be given, got {', '.join(odd)[:80]}")
    episode = numbers["episode"]
    step, seat = numbers.get("step", EPISODE), numbers.get("seat", EPISODE)
    with run.records() as records:
        read = replayed.read(records, episode)
    if step != EPISODE and (step, seat) not in {*read.decisions, *read.attempts}:
        raise NoSuchPage(f"episode {episode} has no decision of seat {seat} in step {step}")
    words, note = (visible(form.get(name, "")) for name in FIELDS)
    run.label((episode, step, seat), words, note)
