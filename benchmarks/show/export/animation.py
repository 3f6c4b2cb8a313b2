"""A recorded episode as a moving picture: its moves played again, a picture of each round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.benchmarks.record.connection import Unwritable
from llm_games.benchmarks.record.recorded_games import RecordedEpisode
from llm_games.benchmarks.show.export.moves import played_again
from llm_games.errors import BadParameter
from llm_games.pictures import need_pillow
from llm_games.rulebook import Array

FORMS = (".gif", ".png", ".webp")
HOLD = 8
"""Frames for which the last one stays."""


def shown(episode: RecordedEpisode) -> Iterator[tuple[Any, list[tuple[int, str]]]]:
    """Yield states to show, start and each round, with the (seat, text) pairs said before each."""
    rules = episode.row.rules()
    messages: list[tuple[int, str]] = []
    last_round, moved = -1, False
    for step in played_again(episode):
        if last_round < 0:
            yield step.previous_state, []
            last_round = int(step.previous_state.round)
        if step.row.talk:
            words = step.row.record["actions"]
            messages, moved = [] if moved else messages, False
            messages = messages + [(seat, str(words[seat])) for seat in step.row.asked]
            continue
        moved = True
        for state in rules.passed(step.previous_state, step.next_state, step.record):
            if int(state.round) != last_round or state.over:
                yield state, messages
                last_round = int(state.round)


def frames(episode: RecordedEpisode) -> Iterator[Array]:
    """Yield pictures, uint8 ``(height, width, 3)``: the start and each round with its talk."""
    rules = episode.row.rules()
    for state, messages in shown(episode):
        yield rules.image(state, messages)


def animate(pictures: Iterable[Array], path: Path, speed: float) -> int:
    """Write pictures one after another, `speed` a second; return how many there are.

    The file's ending says how: GIF, animated PNG, or WebP. Smaller ones are filled up with white.
    Raises BadParameter for the pictures, ending or speed, PicturesExtraMissing, and Unwritable.
    """
    need_pillow()
    if path.suffix.lower() not in FORMS:
        raise BadParameter(f"a moving picture must end in {', '.join(FORMS)}, got {path.name!r}")
    if not 0 < speed <= 50:
        raise BadParameter(f"speed must be above 0 and at most 50 pictures a second, got {speed}")
    from PIL import Image

    every = list(pictures)
    if not every:
        raise BadParameter("nothing was played that could be shown")
    high, wide = (max(picture.shape[axis] for picture in every) for axis in (0, 1))
    images = [Image.fromarray(_filled(picture, high, wide)) for picture in every]
    if path.suffix.lower() == ".gif":
        images = [image.quantize(256, Image.Quantize.MEDIANCUT) for image in images]
    lasts = [round(1000 / speed)] * (len(images) - 1) + [round(HOLD * 1000 / speed)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        images[0].save(path, save_all=True, append_images=images[1:], duration=lasts, loop=0)
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error}") from None
    return len(images)


def _filled(picture: Array, high: int, wide: int) -> Array:
    padding = [(0, high - picture.shape[0]), (0, wide - picture.shape[1]), (0, 0)]
    return np.pad(picture, padding, constant_values=255)
