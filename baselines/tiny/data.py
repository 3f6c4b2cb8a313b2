"""Data for the tiny model: real games played by scripted characters, as prompts and answers.

Each character is a persona of the prompts (or none). Scripts are simple on purpose: an answer is
one of a few that follow from what stands in the last message, so that a small model can learn it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from llm_games.baselines.tiny.chat import render
from llm_games.baselines.tiny.scripts import SCRIPTS, answer
from llm_games.prompting import PERSONAS, Prompts, versions
from llm_games.questions import Action, Choice, Integer, Plan, Question, Target
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.views import View
from llm_games.wrappers.clients.base import Completion
from llm_games.wrappers.replies import read_reply


@dataclass(frozen=True)
class Sample:
    """One prompt in its two parts, see `chat.render`, and a scripted answer to it."""

    prefix: str
    prompt: str
    answer: str


def prompts_hash() -> str:
    """Return the SHA-256 of what players of γ-Bench read, which the weights are bound to.

    It is of rendered prompts and not of the template files, because the templates also have
    words for options of other games, which the model never sees.
    """
    digest = hashlib.sha256()
    for name in SCRIPTS:
        for version in versions(name):
            for text in _readings(Prompts(name, version), rulebook(name, **FIXED.get(name, {}))):
                digest.update(text.encode() + b"\0")
    return digest.hexdigest()


FIXED: dict[str, dict[str, Any]] = {"battle_royale": {"hit_rates": (0, 100) * 5}}
"""Settings under which the games of the hash need no chance."""


def _readings(prompts: Prompts, game: Rulebook) -> Iterator[str]:
    """Yield all texts of the first steps of a game in which seats do this and that in turn."""
    for persona in (None, *PERSONAS):
        yield from (prompts.rules(game, seat, persona) for seat in range(game.players))
    rng = np.random.default_rng(0)
    state = game.reset(rng)
    for step in range(12 if game.turns else 3):
        moves: dict[int, Action] = {}
        for seat in np.flatnonzero(game.asked(state)).tolist():
            view = View.of(game, state, seat)
            assert view.question is not None
            moves[seat] = _in_turn(view.question, seat + step)
            yield prompts.report(view)
            yield from (prompts.request(view, reasoning) for reasoning in (False, True))
            yield prompts.again("so", view.question)
        state, _ = game.step(state, game.assemble(state, moves), rng)


def _in_turn(question: Question, turn: int) -> Action:
    if isinstance(question, Integer):
        return int(question.high or 0) * (turn % 3) // 2
    if isinstance(question, Plan):
        plan = [0] * question.players
        plan[question.ranks[turn % len(question.ranks)] - 1] = question.total
        return tuple(plan)
    if isinstance(question, Target):
        return [-1, *question.names.values()][turn % (len(question.names) + 1)]
    assert isinstance(question, Choice)
    return list(question.words.values())[turn // 2 % 2]


VARIANTS: dict[str, list[dict[str, Any]]] = {
    "beauty_contest": [{"ratio": r} for r in ("0", "1/3", "1/2", "5/6", "1", "4/3", "3/2", "2")],
    "el_farol_bar": [{"ratio": r} for r in ("0", "1/5", "2/5", "4/5", "1")]
    + [{"mode": "explicit"}],
    "divide_dollar": [{"golds": g} for g in (50, 200, 400, 800)],
    "public_goods": [{"ratio": r} for r in ("0", "1/2", "1", "4")],
    "diners_dilemma": [
        dict(
            zip(
                ("cheap_price", "cheap_utility", "costly_price", "costly_utility"), row, strict=True
            )
        )
        for row in ((11, 5, 20, 7), (4, 19, 9, 20), (1, 8, 19, 12), (4, 5, 17, 7), (2, 11, 8, 13))
    ],
    "sealed_bid_auction": [{"valuation_max": v} for v in (100, 400, 800)] + [{"price": "second"}],
    "battle_royale": [{"base_hit_rate": 51, "interval": 1}, {"base_hit_rate": 10, "interval": 10}],
    "pirate_game": [{"gold": g} for g in (4, 5, 400)],
}
"""Settings beside the default ones, after γ-Bench (arXiv 2403.11807), Table 8."""

ALWAYS: dict[str, dict[str, Any]] = {
    "sealed_bid_auction": {"valuation_draw": "random"},
    "battle_royale": {"max_shots": 60},
}
"""Parameters of every training game that the players are not told: more states occur."""

EPISODES = {
    "beauty_contest": 3.0,
    "diners_dilemma": 1.0,
    "sealed_bid_auction": 12.0,
    "battle_royale": 18.0,
    "pirate_game": 32.0,
}
"""How often a game is played, for those that are short or take more practice; the others 1.5."""
SEATS = 3  # most seats that are asked for a sample at each step
RARE = 8  # samples of a question that is rare, and hard
AGAIN = 0.06  # share of questions asked again
PLAIN = 0.8  # share of games with default settings, and of prompts without a call for reasons
BAD = ("", "I cannot tell.", '{"answer": 1}', '{"KEY": -1}', '{"KEY": 999}', '{"KEY": "player_99"}')


def samples(rng: np.random.Generator, count: int, focus: str = "") -> Iterator[Sample]:
    """Yield about `count` samples, from as many games as it takes; three times of `focus`."""
    names, drawn = list(SCRIPTS), 0
    shares = np.array([EPISODES.get(name, 1.5) * (3 if name == focus else 1) for name in names])
    while drawn < count:
        name = rng.choice(names, p=shares / shares.sum())
        variant = VARIANTS[name][rng.integers(len(VARIANTS[name]))]
        chosen = {} if rng.random() < PLAIN else variant
        for sample in episode(rulebook(name, **ALWAYS.get(name, {}) | chosen), rng):
            drawn += 1
            yield sample


def episode(game: Rulebook, rng: np.random.Generator) -> Iterator[Sample]:
    """Play one game; yield the prompts and answers of some seats of every step."""
    state = game.reset(rng)
    known = versions(game.name)
    prompts = Prompts(game.name, known[rng.integers(len(known))])
    reasoning, persona = rng.random() > PLAIN, _persona(rng)
    # The table leans towards a character of its own, so that all kinds of histories occur.
    lean, noise = _persona(rng), rng.choice([0.05, 0.2, 0.6])
    while not state.over:
        seats, moves = np.flatnonzero(game.asked(state)).tolist(), {}
        for seat in seats:
            view = View.of(game, state, seat)
            assert view.question is not None
            moves[seat] = answer(view, lean, rng)[0]
            if rng.random() < noise:
                moves[seat] = view.question.sample(rng)
        for seat in rng.permutation(seats)[:SEATS].tolist():
            view = View.of(game, state, seat)
            for _ in range(RARE if _rare(view) else 1):
                yield sample(prompts, view, persona, reasoning, rng)
        state, _ = game.step(state, game.assemble(state, moves), rng)


def sample(
    prompts: Prompts, view: View, persona: str | None, reasoning: bool, rng: np.random.Generator
) -> Sample:
    """Return the prompt of a view and the answer that a persona's script gives to it."""
    question = view.question
    assert question is not None
    parts = [prompts.report(view), prompts.request(view, reasoning)]
    why = _complaint(question, rng) if rng.random() < AGAIN else ""
    if why:
        parts.append(prompts.again(why, question, reasoning))
    action, reason = answer(view, persona, rng)
    if why and isinstance(question, Target):
        action, reason = -1, "I will not insist."
    reply = json.loads(question.reply(action))
    messages = [
        {"role": "system", "content": prompts.rules(view.game, view.seat, persona)},
        {"role": "user", "content": "\n\n".join(part for part in parts if part)},
    ]
    return Sample(
        *render(messages), json.dumps({"explanation": reason} | reply if reasoning else reply)
    )


def _rare(view: View) -> bool:
    """Tell whether the one to shoot is the strongest left, which takes much practice."""
    if not isinstance(view.question, Target):
        return False
    rates = cast(Any, view.game).rates
    return all(rates[view.seat] > rates[other] for other in view.question.names.values())


def _persona(rng: np.random.Generator) -> str | None:
    return None if rng.random() < 0.5 else PERSONAS[rng.integers(len(PERSONAS))]


def _complaint(question: Question, rng: np.random.Generator) -> str:
    """Return what a player hears about one of a few bad replies."""
    text = BAD[rng.integers(len(BAD))]
    if isinstance(question, Target) and rng.random() < 0.5:
        text = json.dumps({"KEY": next(iter(question.own))})  # the one who is asked
    text = text.replace("KEY", question.key)
    return read_reply(Completion(text), question).why
