"""Data for the tiny model: real games played by scripted characters, as prompts and answers.

Each character is a persona of the prompts (or none). Scripts are simple on purpose: an answer is
one of a few that follow from what stands in the last message, so that a small model can learn it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from llm_games import rooms
from llm_games.baselines.tiny.chat import render
from llm_games.baselines.tiny.scripts import answer
from llm_games.noise import Noise
from llm_games.questions import Action, Bid, Choice, Integer, Question, Real, Shares, Target
from llm_games.registry import rulebook
from llm_games.replies import read_reply
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.words import PERSONAS, Prompts, versions


@dataclass(frozen=True)
class Sample:
    """One prompt in its two parts, see `chat.render`, and a scripted answer to it."""

    prefix: str
    prompt: str
    answer: str


def prompts_hashes() -> dict[str, str]:
    """Return a SHA-256 of what players of each game read, which the weights are bound to.

    It is of rendered prompts and not of the template files, because the templates also have
    words for options of other games, which the model never sees; but of words for planning.
    """
    return {name: _prompts_hash(name) for name in VARIANTS}


def _prompts_hash(name: str) -> str:
    digest = hashlib.sha256()
    for version in versions(name):
        for settings in FIXED.get(name, [{}]):
            game = rulebook(name, **settings)
            for text in _readings(Prompts(game.name, version), game):
                digest.update(text.encode() + b"\0")
    folder = rooms.wordings(name)
    if folder is not None and (folder / "planning.j2").is_file():
        digest.update((folder / "planning.j2").read_bytes())
    return digest.hexdigest()


FIXED: dict[str, list[dict[str, Any]]] = {
    "battle_royale": [{"hit_rates": (0, 100) * 5}],
    "beauty_contest": [{}, {"preset": "econ_arena", "rounds": 3, "told_rational": True}],
    "budget_auction": [
        {
            "preset": "econ_arena_M",
            "players": 9,
            "rounds": 3,
            "reveal": "bids_and_private",
            "valuations": [[500, 410, 620, 333, 480, 555, 701, 290, 450]],
        },
    ],
    "water_allocation": [
        {"supplies": (20, 11, 15, 18) * 5, "persona": who} for who in ("none", "default")
    ],
    "english_auction": [
        {},
        {
            "preset": "econ_arena_english_M",
            "private_values": [[490], [612], [377], [505], [443]],
        },
    ],
}
"""Settings under which the games of the hash need no chance."""


def _readings(prompts: Prompts, game: Rulebook) -> Iterator[str]:
    """Yield all texts of the first steps of a game in which seats do this and that in turn."""
    for persona in (None, *PERSONAS):
        yield from (prompts.rules(game, seat, persona) for seat in range(game.players))
    state = game.reset(0)
    for step in range(12 if game.turns else 3):
        moves: dict[int, Action] = {}
        for seat in np.flatnonzero(game.asked(state)).tolist():
            view = View.of(game, state, seat)
            assert view.question is not None
            moves[seat] = _in_turn(view.question, seat + step)
            yield prompts.report(view)
            yield from (prompts.request(view, reasoning) for reasoning in (False, True))
            yield prompts.again("so", view.question)
        state, _ = game.step(state, game.assemble(state, moves))


def _in_turn(question: Question, turn: int) -> Action:
    if isinstance(question, Integer):
        return int(question.high or 0) * (turn % 3) // 2
    if isinstance(question, Shares):
        plan = [0] * question.players
        plan[question.ranks[turn % len(question.ranks)] - 1] = question.total
        return tuple(plan)
    if isinstance(question, Bid):
        bid = question.floor + turn  # no two bids are equal, so that no draw decides
        return bid if turn % 3 and bid <= question.budget else -1
    if isinstance(question, Real):
        return question.high * (turn % 3) // 2
    if isinstance(question, Target):
        return [-1, *question.names.values()][turn % (len(question.names) + 1)]
    assert isinstance(question, Choice)
    return list(question.words.values())[turn // 2 % 2]


VARIANTS: dict[str, list[dict[str, Any]]] = {
    "beauty_contest": [{"ratio": r} for r in ("0", "1/3", "1/2", "5/6", "1", "4/3", "3/2", "2")]
    + [
        {"preset": f"econ_arena{group}", "players": players, "rounds": 6, "told_rational": rational}
        for group in ("", "_L", "_M", "_H")
        for players, rational in ((9, False), (5, True))
    ]
    * 2,
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
    "sealed_bid_auction": [*({"valuation_max": v} for v in (100, 400, 800)), {"price": "second"}],
    "budget_auction": [
        {"preset": f"econ_arena_{group}", "rounds": rounds, "reveal": reveal} | others
        for group in ("L", "M", "H")
        for rounds, reveal in ((1, "none"), (6, "none"), (6, "bids"), (6, "bids_and_private"))
        for others in ({"players": 9}, {"told_rational": True})
    ],
    "battle_royale": [{"base_hit_rate": 51, "interval": 1}, {"base_hit_rate": 10, "interval": 10}],
    "pirate_game": [{"gold": g} for g in (4, 5, 400)],
    "water_allocation": [{"preset": f"setting_{number}"} for number in range(1, 7)],
    "english_auction": [
        *({"preset": f"econ_arena_english_{group}"} for group in ("L", "M", "H") * 5),
        {"preset": "auc_arena_20"},
        {"terse_rules": True},
        {"objective": "items"},
        *(
            {"players": players, "items": items, "item_order": order, "budgets": budget}
            for players, items, order, budget in (
                (2, "items_5", "early", 5_000),
                (3, "items_10", "shuffled", 20_000),
                (3, "items_10", "late", 10_000),
                (4, "items_10", "shuffled", 15_000),
                (5, "items_5", "middle", 8_000),
                (6, "items_10", "early", 30_000),
            )
        ),
    ],
}
"""Settings beside the default ones: of γ-Bench (arXiv 2403.11807), Table 8, of EconArena, Alympics
and AucArena."""

ALWAYS: dict[str, dict[str, Any]] = {
    "sealed_bid_auction": {"valuation_draw": "random"},
    "battle_royale": {"max_shots": 60},
}
"""Parameters of every training game that the players are not told: more states occur."""

SHARES = {
    "beauty_contest": 3.0,
    "public_goods": 2.5,
    "sealed_bid_auction": 2.0,
    "budget_auction": 3.0,
    "battle_royale": 4.0,
    "pirate_game": 3.0,
    "water_allocation": 2.0,
    "english_auction": 8.0,
    "planning": 8.0,
    "drills": 6.0,
}
"""Shares of the samples, more for games that take more practice or have more settings; else 0.8."""
DEFAULT = {
    "beauty_contest": 0.5,
    "sealed_bid_auction": 0.75,
    "budget_auction": 0.0,
    "water_allocation": 0.2,
    "english_auction": 0.3,
}
"""Share of games with default settings, where it is not 0.8."""
SEATS = 3  # most seats that are asked for a sample at each step
STEPS = {"english_auction": 0.2}
"""Share of the steps that are sampled, where it is not 1."""
AGAIN = 0.06  # share of questions asked again
PLAIN = 0.6  # share of prompts without a call for reasons
BAD = ("", "I cannot tell.", '{"answer": 1}', '{"KEY": -1}', '{"KEY": 999}', '{"KEY": "player_99"}')


def samples(
    rng: np.random.Generator,
    count: int,
    focus: str = "",
    more: Mapping[str, Callable[[np.random.Generator], Iterator[Sample]]] | None = None,
) -> Iterator[Sample]:
    """Yield about `count` samples, from as many games as it takes; three times of `focus`.

    `more` has further sources by name: each gives the samples of one game.
    """
    sources = {name: partial(_game, name) for name in VARIANTS} | dict(more or {})
    shares = {name: SHARES.get(name, 0.8) * (3 if name == focus else 1) for name in sources}
    drawn = dict.fromkeys(sources, 0)
    while sum(drawn.values()) < count:
        name = min(sources, key=lambda name: drawn[name] / shares[name])
        for sample in sources[name](rng):
            drawn[name] += 1
            yield sample


def _game(name: str, rng: np.random.Generator) -> Iterator[Sample]:
    return episode(rulebook(name, **_settings(name, rng)), rng)


def _settings(name: str, rng: np.random.Generator) -> dict[str, Any]:
    chosen = VARIANTS[name][rng.integers(len(VARIANTS[name]))]
    return ALWAYS.get(name, {}) | ({} if rng.random() < DEFAULT.get(name, 0.8) else chosen)


def episode(game: Rulebook, rng: np.random.Generator) -> Iterator[Sample]:
    """Play one game; yield the prompts and answers of some seats of every step."""
    state = game.reset(int(rng.integers(2**63)))
    known = versions(game.name)
    prompts = Prompts(game.name, known[rng.integers(len(known))])
    reasoning, persona = rng.random() > PLAIN, persona_of(rng)
    # The table leans towards a character of its own, so that all kinds of histories occur.
    lean, noise = persona_of(rng), rng.choice([0.05, 0.2, 0.6])
    while not state.over:
        views = [View.of(game, state, seat) for seat in np.flatnonzero(game.asked(state)).tolist()]
        if rng.random() < STEPS.get(game.name, 1.0):
            for i in rng.permutation(len(views))[:SEATS]:
                yield sample(prompts, views[i], persona, reasoning, rng)
        moves = {view.seat: _move(view, lean, noise, rng) for view in views}
        state, _ = game.step(state, game.assemble(state, moves))


def _move(view: View, lean: str | None, noise: float, rng: np.random.Generator) -> Action:
    """Return what is played: the answer of a script, or at times any legal one."""
    if rng.random() >= noise:
        return answer(view, lean, rng)[0]
    question = view.question
    assert question is not None
    action = question.sample(Noise(int(rng.integers(2**63))))
    if isinstance(question, Real) and isinstance(action, int) and action > 0 and rng.random() < 0.7:
        action -= action % 10**question.decimals  # most numbers that people name are whole
    return action


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


def persona_of(rng: np.random.Generator) -> str | None:
    """Draw a persona, or none."""
    return None if rng.random() < 0.5 else PERSONAS[rng.integers(len(PERSONAS))]


def _complaint(question: Question, rng: np.random.Generator) -> str:
    """Return what a player hears about one of a few bad replies."""
    text = BAD[rng.integers(len(BAD))]
    if isinstance(question, Target) and rng.random() < 0.5:
        text = json.dumps({"KEY": next(iter(question.own))})  # the one who is asked
    text = text.replace("KEY", question.key)
    return read_reply(text, question).why
