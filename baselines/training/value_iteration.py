"""The best response by value iteration: exact, and saved as a player.

There is no learning: where opponents follow rules and chance is enumerated, beliefs about opponents
and states are solved backward from the last step. Elsewhere it is the best rule player, with
bounds. See `llm_games.baselines.best_response`.
"""

from __future__ import annotations

from dataclasses import dataclass

from llm_games.baselines.best_response import BestResponse, best_response
from llm_games.baselines.training.harness import Options, Training, command, option
from llm_games.errors import BadParameter
from llm_games.wrappers.tabular_player import TabularPolicy, save_table


@dataclass(frozen=True, kw_only=True)
class IterationOptions(Options):
    """Options of value iteration: each seat has its own best response."""

    seat: str = option("0", "SEAT", "the learner's, a number")
    steps: int = option(1, "N", "there are none to count", min=1)


def train(options: IterationOptions) -> BestResponse:
    """Find, save and return the best response; BadParameter: no seat, or who asks a model."""
    with Training("value_iteration", options) as run:
        rules, seat = run.table.rules, run.table.seat
        if not isinstance(seat, int):
            raise BadParameter(f"--seat must be a number, as in --seat 0, got {seat}")
        reply = best_response(rules, seat, run.table.opponents)
        name = reply.policy.name
        if isinstance(reply.policy, TabularPolicy):
            name = f"tabular:{save_table(reply.policy, run.folder / 'player.npz')}"
        run.advance(options.steps)
        run.end(reply.policy, name)
    value = f"{reply.value:.6g}" if reply.exact else f"{reply.value:.6g} to {reply.upper:.6g}"
    print(f"value           {value}")
    print(f"found           {reply.how}")
    return reply


if __name__ == "__main__":
    command(train, IterationOptions)
