"""Talking players of the beauty contest, after the personas of Shall We Talk."""

from collections import Counter
from typing import Any

import numpy as np

from llm_games.baselines.games.beauty_contest import theory
from llm_games.baselines.games.beauty_contest.theory import ContestRules
from llm_games.baselines.talkers import symbols
from llm_games.noise import Noise
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Decision, Policy

MANNERS = ("agreeable", "disagreeable", "neither")


class Discussant(Policy):
    """Talks in one of `MANNERS`: its name, the persona of the game, or a drawn one.

    The agreeable propose and choose the common number, the one named most (before any: the
    midpoint); the disagreeable refuse it and reply best to all others choosing it; others choose it
    in silence.
    """

    speaks = True

    def __init__(self, name: str) -> None:
        self.name = name

    def start(self, game: Rulebook, seat: int, seed: int) -> int:
        return seed

    def act(self, view: View, memory: int) -> tuple[Decision, int]:
        manner, (common, named) = self._manner(view, memory), _common(view)
        choice = common
        if manner == "disagreeable":
            contest = ContestRules.of(view.core.game)
            total = np.asarray((contest.players - 1) * common)
            choice = int(theory.reply_to_total(total, contest))
        if view.core is view or not view.game.talking(view.sight.state):
            return Decision(choice), memory
        if view.game.talk.alphabet is not None:
            symbol: Any = int(symbols(view.core.game, np.asarray(choice), view.game.talk.alphabet))
            return Decision(0 if manner == "neither" else symbol), memory
        assert view.core.question is not None, "everybody chooses after the talk"
        number = view.core.question.spoken(common)
        words = {
            "agreeable": f"I agree: let us all choose {number}."
            if named
            else f"Let us all choose {number}, so that we win together.",
            "disagreeable": "I do not agree, and I promise nothing.",
        }
        return Decision(words.get(manner, "")), memory

    def _manner(self, view: View, seed: int) -> str:
        if self.name != "mixed":
            return self.name
        observation = view.core.told or {}
        if view.core.game.personas != "none":
            return observation["persona"] or "neither"
        return MANNERS[int(Noise(seed).of("manner").integers(len(MANNERS)))]


def _common(view: View) -> tuple[int, bool]:
    """Return the number named most often, the first of ties, and True; else the midpoint, False."""
    question, observation, texts = view.core.question, view.told, []
    if view.core is not view and view.game.talk.alphabet is None and observation:
        texts = [line["text"] for line in observation["talk"]["heard"]]
    named = [m for text in texts if question and (m := question.named(text)) is not None]
    if named:
        return Counter(named).most_common(1)[0][0], True
    contest = ContestRules.of(view.core.game)
    low, high = max(view.core.low, contest.low), min(view.core.high, contest.high)
    return int((low + high) // 2), False
