"""Players of the beauty contest that talk as the personas of Shall We Talk would."""

from collections import Counter
from typing import Any

import numpy as np

from llm_games.baselines.games.beauty_contest import theory
from llm_games.baselines.games.beauty_contest.theory import Contest
from llm_games.baselines.talkers import symbols
from llm_games.noise import Noise
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Decision, Policy

MANNERS = ("agreeable", "disagreeable", "neither")


class Discussant(Policy):
    """Talks in one of `MANNERS`, or in that which the game tells it to have, else in a drawn one.

    All have in mind the number that was named most in the talk, the midpoint before any was. Who is
    agreeable proposes that all choose it, and chooses it. Who is disagreeable refuses, and replies
    best to all others who choose it. Who is neither says nothing and chooses it.
    """

    speaks = True

    def __init__(self, name: str) -> None:
        self.name = name

    def start(self, game: Rulebook, seat: int, seed: int) -> int:
        """Return what it draws from."""
        return seed

    def act(self, view: View, memory: int) -> tuple[Decision, int]:
        """Speak or choose a number."""
        manner, (common, named) = self._manner(view, memory), _common(view)
        own = common
        if manner == "disagreeable":
            contest = Contest.of(view.core.game)
            total = np.asarray((contest.players - 1) * common)
            own = int(theory.reply_to_total(total, contest))
        if view.core is view or not view.game.talking(view.sight.state):
            return Decision(own), memory
        if view.game.talk.alphabet is not None:
            said: Any = int(symbols(view.core.game, np.asarray(own), view.game.talk.alphabet))
            return Decision(0 if manner == "neither" else said), memory
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
        told = view.core.told or {}
        if view.core.game.personas != "none":
            return told["persona"] or "neither"
        return MANNERS[int(Noise(seed).of("manner").integers(len(MANNERS)))]


def _common(view: View) -> tuple[int, bool]:
    """Return the number that was named most, the first of those named equally often, in units.

    And whether any was; else it is the midpoint.
    """
    question, told, texts = view.core.question, view.told, []
    if view.core is not view and view.game.talk.alphabet is None and told:
        texts = [line["text"] for line in told["talk"]["heard"]]
    named = [m for text in texts if question and (m := question.named(text)) is not None]
    if named:
        return Counter(named).most_common(1)[0][0], True
    contest = Contest.of(view.core.game)
    low, high = max(view.core.low, contest.low), min(view.core.high, contest.high)
    return int((low + high) // 2), False
