"""Data for the tiny model: real games played by scripted characters, as prompts and answers.

Each character is a persona of the prompts (or none). Scripts are simple on purpose: an answer is
one of a few that follow from what stands in the last message, so that a small model can learn it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.tiny.chat_template import render
from llm_games.benchmarks.studies.tiny.scripts import answer
from llm_games.noise import Noise
from llm_games.questions import Action, Real, Target
from llm_games.registry import rulebook
from llm_games.replies import read_reply
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.words import PERSONAS, Prompts, versions


class TrainingSample(NamedTuple):
    """One prompt in its two parts, see `chat.render`, and a scripted answer to it."""

    prefix: str
    prompt: str
    answer: str


_MEALS = ((11, 5, 20, 7), (4, 19, 9, 20), (1, 8, 19, 12), (4, 5, 17, 7), (2, 11, 8, 13))
SILENT: list[dict[str, Any]] = [
    {"preset": preset, "personas": personas, "talk": {"turns": 0}}
    for preset in ("shall_we_talk", "shall_we_talk_rounds")
    for personas in ("none", "agreeable", "disagreeable", "mixed")
]
"""The contest of Shall We Talk where nobody speaks."""
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "beauty_contest": [{"ratio": r} for r in ("0", "1/3", "1/2", "5/6", "1", "4/3", "3/2", "2")]
    + [
        {"preset": f"econ_arena{group}", "players": players, "rounds": 6, "told_rational": rational}
        for group in ("", "_L", "_M", "_H") * 2
        for players, rational in ((9, False), (5, True))
    ]
    + SILENT,
    "el_farol_bar": [
        *({"ratio": r} for r in ("0", "1/5", "2/5", "4/5", "1")),
        {"mode": "explicit"},
    ],
    "divide_dollar": [{"golds": g} for g in (50, 200, 400, 800)],
    "public_goods": [{"ratio": r} for r in ("0", "1/2", "1", "4")],
    "diners_dilemma": [
        {"cheap_price": a, "cheap_utility": b, "costly_price": c, "costly_utility": d}
        for a, b, c, d in _MEALS
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
    "bertrand_competition": [
        *({"preset": "shall_we_talk_bc_talk"} for _ in range(3)),
        {"preset": "shall_we_talk_bc_uncooperative", "switch_round": 21},
        {"personas": "uncooperative", "talk": {"turns": 3}, "initial_price": 9},
        {"initial_price": 7},
        {"personas": "explorer"},
        {"players": 3},
    ],
    "emergency_evacuation": [
        *({"preset": "shall_we_talk_ee_talk"} for _ in range(3)),
        {"preset": "shall_we_talk_ee_uncooperative"},
        {"walker": "greedy"},
        {"walker": "greedy", "preset": "shall_we_talk_ee_talk"},
        {"moves": "simultaneous"},
        {"target_choice": "cell", "personas": "none"},
    ],
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
    "matrix_game": [{"preset": "stag_hunt"}, {"rounds": 5}],
    "bargaining": [{"preset": "moblab"}, {"periods": 4}],
    "deal_or_no_deal": [{"open_values": True}, {"protocol": "claims"}],
    "trust_game": [{"rounds": 3}],
    "minimum_effort": [{"players": 6}],
    "money_request": [{"rounds": 3}],
    "travelers_dilemma": [{"rounds": 3}],
}
"""Settings beside the default ones: of γ-Bench (arXiv 2403.11807), Table 8, of EconArena, Alympics,
AucArena and Shall We Talk."""

ALWAYS: dict[str, dict[str, Any]] = {
    "sealed_bid_auction": {"valuation_draw": "random"},
    "battle_royale": {"max_shots": 60},
    "bertrand_competition": {"rounds": 45},
    "emergency_evacuation": {"players": 20},
}
"""Parameters of every training game that the players are not told: more states occur."""

PRACTICE = {
    "beauty_contest": (4.0, 0.5),
    "public_goods": (3.0, 0.8),
    "sealed_bid_auction": (4.0, 0.75),
    "budget_auction": (4.0, 0.0),
    "battle_royale": (4.0, 0.8),
    "pirate_game": (3.0, 0.8),
    "water_allocation": (3.0, 0.2),
    "english_auction": (7.0, 0.3),
    "bertrand_competition": (10.0, 0.4),
    "emergency_evacuation": (10.0, 0.4),
    "matrix_game": (3.0, 0.7),
    "bargaining": (4.0, 0.7),
    "deal_or_no_deal": (6.0, 0.8),
    "trust_game": (6.0, 0.8),
    "minimum_effort": (5.0, 0.8),
    "money_request": (3.0, 0.7),
    "travelers_dilemma": (5.0, 0.7),
    "sessions": (10.0, 0.0),
    "planning": (9.0, 0.8),
    "talks": (14.0, 0.7),
    "drills": (7.0, 0.8),
}
"""Share of the samples, more for games that take more practice or have more settings, and share
of games with default settings."""
USUAL = (0.8, 0.8)
SEATS = 3  # most seats that are asked for a sample at each step
STEPS = {"english_auction": 0.2}  # share of the steps that are sampled, where it is not 1
AGAIN = 0.06  # share of questions asked again
PLAIN = 0.6  # share of prompts without a call for reasons
BAD = ("", "I cannot tell.", '{"answer": 1}', '{"KEY": -1}', '{"KEY": 999}', '{"KEY": "player_99"}')


def samples(
    rng: np.random.Generator,
    count: int,
    focus: str = "",
    **more: Callable[..., Iterator[TrainingSample]],
) -> Iterator[TrainingSample]:
    """Yield about `count` samples, from as many games as it takes; three times of games in `focus`.

    `more` are further sources: each gives the samples of one game.
    """
    from llm_games.benchmarks.studies.tiny import talks

    sources = {name: partial(_game, name) for name in VARIANTS} | {"sessions": _session}
    sources |= talks.sources() | more
    shares = {
        name: PRACTICE.get(name, USUAL)[0] * (3 if name in focus.split(",") else 1)
        for name in sources
    }
    drawn = dict.fromkeys(sources, 0)
    while sum(drawn.values()) < count:
        name = min(sources, key=lambda name: drawn[name] / shares[name])
        for sample in sources[name](rng):
            drawn[name] += 1
            yield sample


def _game(name: str, rng: np.random.Generator) -> Iterator[TrainingSample]:
    chosen = VARIANTS[name][rng.integers(len(VARIANTS[name]))]
    varied = {} if rng.random() < PRACTICE.get(name, USUAL)[1] else chosen
    game = rulebook(name, **ALWAYS.get(name, {}) | varied)
    return episode(game, rng, STEPS.get(name, 1.0))


def _session(rng: np.random.Generator) -> Iterator[TrainingSample]:
    """Play a short game of EconArena or Shall We Talk: all of its steps are asked for.

    Where it has a single round, most of its seats are.
    """
    sessions = [
        (name, settings)
        for name, variants in VARIANTS.items()
        for settings in variants
        if str(settings.get("preset")).startswith("econ_arena")
    ]
    sessions += 4 * [("beauty_contest", settings) for settings in SILENT]
    name, settings = sessions[rng.integers(len(sessions))]
    game = rulebook(name, **settings)
    return episode(game, rng, seats=SEATS if getattr(game, "rounds", 0) != 1 else 5 * SEATS)


def episode(
    game: Rulebook, rng: np.random.Generator, steps: float = 1.0, seats: int = SEATS
) -> Iterator[TrainingSample]:
    """Play one game; yield the prompts and answers of some seats of a share of its steps."""
    state = game.reset(int(rng.integers(2**63)))
    wordings = versions(game.name)
    prompts = Prompts(game.name, wordings[rng.integers(len(wordings))])
    reasoning, persona = rng.random() > PLAIN, persona_of(rng)
    # The table leans towards a character of its own, so that all kinds of histories occur.
    lean, noise = persona_of(rng), rng.choice([0.05, 0.2, 0.6])
    while not state.over:
        asked = np.flatnonzero(game.asked(state)).tolist()
        views = [View.of(game, state, seat) for seat in asked]
        if rng.random() < steps:
            for i in rng.permutation(len(views))[:seats]:
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
) -> TrainingSample:
    """Return the prompt of a view, at times after a bad reply, and what a persona's script says."""
    question = view.question
    assert question is not None
    parts = [prompts.report(view), prompts.request(view, reasoning)]
    why = ""
    if rng.random() < AGAIN:
        bad = BAD[rng.integers(len(BAD))]
        if isinstance(question, Target) and rng.random() < 0.5:
            bad = json.dumps({"KEY": next(iter(question.own))})  # the one who is asked
        why = read_reply(bad.replace("KEY", question.key), question).why
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
    text = json.dumps({"explanation": reason} | reply if reasoning else reply)
    return TrainingSample(*render(messages), text)


def persona_of(rng: np.random.Generator) -> str | None:
    return None if rng.random() < 0.5 else PERSONAS[rng.integers(len(PERSONAS))]
