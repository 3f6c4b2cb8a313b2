"""Tables at which characters talk and are asked beside their moves, as samples, see `data`.

Real games are played by `LLMPolicy` seats whose client is a script, so that prompts are those that
a model gets; others at the table follow the scripts without being asked in words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.tiny.chat_template import render
from llm_games.benchmarks.studies.tiny.samples import (
    ALWAYS,
    BAD,
    PLAIN,
    PRACTICE,
    USUAL,
    VARIANTS,
    TrainingSample,
    persona_of,
)
from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, answer, asides_of
from llm_games.noise import Noise
from llm_games.questions import Action, Choice, Integer, Real, Speech
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.words import versions
from llm_games.wrappers.clients.base import Completion, Request
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import Step

LONGEST = 6000  # characters of a prompt to learn from
ASKED = 3  # most seats of a table that are asked in words
SLIPS = 0.06  # share of answers that are wrong on purpose, so that questions are asked again
LINES = {
    None: ("I will choose {move}.", "My plan is simple: I will choose {move}."),
    "cooperative": ("Let us work together. I will choose {move}.", "For us all, I choose {move}."),
    "selfish": ("I promise that I will choose {move}.", "I will choose {move}, believe me."),
    "mathematician": ("I have worked it out: I will choose {move}.", "I choose {move}."),
}
"""What a character says of its next move."""
AGREED = "I agree with {name}: I will choose {move}."
IDLE = ("I wait and listen.", "Good luck to all.", "Let us stay calm.", "I have no news.")
"""What is said where there is no move to name, or no number may be."""
HEEDS = {None: 0.4, "cooperative": 0.8, "selfish": 0.0, "mathematician": 0.2}
"""How often what was said last is done, or agreed with."""
KEEPS = {None: 0.8, "cooperative": 0.95, "selfish": 0.0, "mathematician": 0.7}
"""How often the own word is kept."""


def speech(view: View, persona: str | None, rng: np.random.Generator) -> Answer:
    """Return what a character says when it may speak: a short line, or nothing."""
    question, named_moves = view.core.question, _named_moves(view)
    if rng.random() < 0.05:
        return "", "I say nothing now."
    if question is None or view.game.talk.numbers == "discouraged":
        script = asides_of(view.game.name).get("speech")
        line = script(_script_view(view), persona, rng)[0] if script else rng.choice(IDLE).item()
        return line, "I say something short."
    others = [(name, move) for name, move, is_own in named_moves if not is_own]
    if others and rng.random() < HEEDS[persona]:
        name, move = others[-1]
        return AGREED.format(name=name, move=question.spoken(move)), "I join the others."
    # The greedy one promises what would be best for all, and does something else.
    move = answer(view.core, "cooperative" if persona == "selfish" else persona, rng)[0]
    line = rng.choice(LINES[persona]).item()
    return line.format(move=question.spoken(move)), "I tell the others what I plan."


def moved(view: View, persona: str | None, rng: np.random.Generator) -> Answer:
    named_moves = _named_moves(view)
    promises = [move for _, move, is_own in named_moves if is_own]
    if promises and rng.random() < KEEPS[persona]:
        return promises[-1], "I keep my word."
    if named_moves and not promises and rng.random() < HEEDS[persona]:
        return named_moves[-1][1], "I do what was said."
    return answer(view.core, persona, rng)


class NamedScript(NamedTuple):
    """A move that was named in the talk, by whom."""

    name: str
    move: Action
    is_own: bool


def _named_moves(view: View) -> list[NamedScript]:
    """Moves of one's own question that were named, the latest last."""
    question, observation = view.core.question, view.told or {}
    if "talk" not in observation or not isinstance(question, Integer | Real | Choice):
        return []
    if isinstance(question, Choice) and min(map(len, question.words)) == 1:
        return []  # letters of steps, which nobody names
    messages = observation["talk"]["heard"]
    named = ((line, question.named(line["text"])) for line in messages)
    return [
        NamedScript(line["name"], move, line["own"]) for line, move in named if move is not None
    ]


def _script_view(view: View) -> ScriptView:
    core = view.core
    assert core.told is not None
    return ScriptView(core.game, core.told, core.question, core.seat)


class Character(Policy):
    """One that speaks and moves as its persona's script says, without being asked in words."""

    name, speaks = "character", True

    def __init__(self, persona: str | None, rng: np.random.Generator, slips: float) -> None:
        self.persona, self.rng, self.slips = persona, rng, slips

    def start(self, game: Rulebook, seat: int, seed: int) -> None: ...

    def act(self, view: View, memory: None) -> tuple[Decision, None]:
        question, rng = view.question, self.rng
        assert question is not None
        if isinstance(question, Speech):
            return Decision(speech(view, self.persona, rng)[0]), None
        if rng.random() < self.slips:
            return Decision(question.sample(Noise(int(rng.integers(2**63))))), None
        return Decision(moved(view, self.persona, rng)[0]), None


class TalkScript:
    """A client that answers as a character, at times wrongly, and keeps the samples."""

    name = "script"

    def __init__(self, persona: str | None, rng: np.random.Generator, share: float) -> None:
        self.persona, self.rng, self.share = persona, rng, share
        self.samples: list[TrainingSample] = []

    async def complete(self, request: Request) -> Completion:
        question, view, rng = request.question, request.view, self.rng
        assert question is not None
        assert view is not None
        value, reason = self._answer(request.kind, question, view)
        reply = json.loads(question.reply(value))
        if request.reasoning:
            reply = {"explanation": reason} | reply
        prefix, prompt = render(request.messages)
        share = self.share if request.kind in ("move", "speech") else 1.0
        if len(prefix + prompt) < LONGEST and rng.random() < share:
            self.samples.append(TrainingSample(prefix, prompt, json.dumps(reply)))
        spoilt = rng.random() < SLIPS and not isinstance(question, Speech)
        return Completion(BAD[rng.integers(len(BAD))] if spoilt else json.dumps(reply))

    async def close(self) -> None: ...

    def _answer(self, kind: str, question: Any, view: View) -> Answer:
        if isinstance(question, Speech):
            return speech(view, self.persona, self.rng)
        aside = asides_of(view.game.name).get(kind)
        if aside is not None:
            return aside(_script_view(view)._replace(question=question), self.persona, self.rng)
        return moved(view, self.persona, self.rng)


# -- tables ----------------------------------------------------------------------------------------

TALKS: tuple[dict[str, Any], ...] = (
    {"turns": 1},
    {"turns": 2, "order": "shuffled_per_round"},
    {"turns": 2, "own": "hidden"},
    {"turns": 1, "mode": "together", "words": 20},
    {"turns": 3, "memory": 1},
    {"turns": 1, "speakers": "deciders", "words": 49, "numbers": "discouraged"},
)
"""Talks that are put around games which have none by themselves."""
PRESETS = 0.15  # share of the tables that a preset makes talk
KEPT = 0.4  # share of its moves and speeches that become samples; of what is asked beside, all
STEPS = 400  # of a table, at most


def table(
    game: Rulebook, rng: np.random.Generator, share: float = KEPT
) -> Iterator[TrainingSample]:
    """Play one game; yield what some of its seats were asked and what they shall answer."""
    persona = persona_of(rng)
    script = TalkScript(persona, rng, share)
    asked = LLMPolicy(
        script,
        prompts=str(rng.choice(versions(game.name))),
        persona=persona,
        reasoning=bool(rng.random() > PLAIN),
        memory="none",
    )
    slips = rng.choice([0.05, 0.2, 0.6])
    others = [Character(persona_of(rng), rng, slips) for _ in range(3)]
    seats: list[Policy] = [others[i] for i in rng.integers(3, size=game.players)]
    for seat in rng.permutation(game.players)[:ASKED]:
        seats[seat] = asked
    asyncio.run(_played(game, seats, int(rng.integers(2**31))))
    yield from script.samples


async def _played(game: Rulebook, seats: list[Policy], seed: int) -> None:
    """Nothing is returned: `asyncio.run` may write out what it is given back."""
    await play_table(game, seats, seed, on_step=_gone, max_steps=STEPS)


async def _gone(step: Step) -> None: ...


def of_game(name: str, rng: np.random.Generator) -> Iterator[TrainingSample]:
    """Yield samples of a game that asks more than moves, in one of its settings."""
    chosen = VARIANTS[name][rng.integers(len(VARIANTS[name]))]
    varied = {} if rng.random() < PRACTICE.get(name, USUAL)[1] else chosen
    return table(rulebook(name, **ALWAYS.get(name, {}) | varied), rng)


def talks(rng: np.random.Generator) -> Iterator[TrainingSample]:
    """Yield samples of some game that asks moves alone, now with talk."""
    names = [name for name in VARIANTS if name not in _asking_games()]
    presets = [
        (name, {"preset": preset})
        for name in names
        for preset, brings in game_class(name).presets.items()
        if "talk" in brings
    ]
    if rng.random() < PRESETS:
        name, settings = presets[rng.integers(len(presets))]
        return table(rulebook(name, **settings), rng)
    name = str(rng.choice(names))
    varied = VARIANTS[name][rng.integers(len(VARIANTS[name]))] if rng.random() < 0.3 else {}
    talk = TALKS[rng.integers(len(TALKS))]
    return table(rulebook(name, **ALWAYS.get(name, {}) | varied | {"talk": talk}), rng)


@cache
def _asking_games() -> list[str]:
    return [n for n in VARIANTS if type(rulebook(n)).asides is not Rulebook.asides]


def sources() -> dict[str, Any]:
    return {"talks": talks} | {name: partial(of_game, name) for name in _asking_games()}
