"""The player without a plan: any legal action, all equally likely."""

from __future__ import annotations

from llm_games.noise import Noise
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Decision, Policy


class RandomPolicy(Policy):
    """Draws a legal action uniformly. Its memory is its seed and how often it has decided."""

    name = "random"

    def start(self, game: Rulebook, seat: int, seed: int) -> tuple[int, int]:
        """Return the seed and the count of decisions."""
        return seed, 0

    def act(self, view: View, memory: tuple[int, int]) -> tuple[Decision, tuple[int, int]]:
        """Draw from the question that is asked."""
        seed, count = memory
        assert view.question is not None, "only a seat that is asked can answer"
        action = view.question.sample(Noise(seed).of(count))
        return Decision(action), (seed, count + 1)
