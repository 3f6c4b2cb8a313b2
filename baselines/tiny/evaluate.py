"""How often the tiny model's replies are legal: it plays real games against itself.

Run ``python -m llm_games.baselines.tiny.evaluate``: a table of the share of valid replies, a row
a game and a column a wording.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from pathlib import Path

import numpy as np

from llm_games.baselines.tiny.client import TinyClient
from llm_games.baselines.tiny.scripts import SCRIPTS
from llm_games.prompting import PERSONAS, versions
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.views import View
from llm_games.wrappers.llm_policy import LLMPolicy


async def play(game: Rulebook, policy: LLMPolicy, seed: int) -> Counter[str]:
    """Play one game with the policy on all seats; count its replies by outcome."""
    rng, counts = np.random.default_rng(seed), Counter[str]()
    state = game.reset(rng)
    memories = [
        policy.start(game, seat, seed * game.players + seat) for seat in range(game.players)
    ]
    while not state.over:
        seats = np.flatnonzero(game.asked(state)).tolist()
        views = [View.of(game, state, seat) for seat in seats]
        results = await asyncio.gather(
            *(policy.decide(view, memories[view.seat]) for view in views)
        )
        moves = {}
        for seat, (decision, memories[seat]) in zip(seats, results, strict=True):
            moves[seat] = decision.action
            counts.update(attempt.outcome for attempt in decision.attempts)
        state, _ = game.step(state, game.assemble(state, moves), rng)
    return counts


def validity(policy: LLMPolicy, name: str, replies: int, seed: int = 0) -> Counter[str]:
    """Play games, several at once, until about so many replies were given; count them."""

    async def tables() -> Counter[str]:
        total, at = Counter[str](), seed
        while total.total() < replies:
            game = rulebook(name)
            # As many tables as fill a batch: one seat a table is asked where they take turns.
            played = [play(game, policy, at + table) for table in range(20 if game.turns else 2)]
            total.update(sum(await asyncio.gather(*played), Counter()))
            at += len(played)
        return total

    return asyncio.run(tables())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--games", nargs="*", default=list(SCRIPTS), choices=list(SCRIPTS))
    parser.add_argument("--persona", choices=PERSONAS)
    parser.add_argument("--reasoning", action="store_true")
    parser.add_argument("--constrained", action="store_true")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--replies", type=int, default=400, help="for each cell, at least")
    args = parser.parse_args()
    client = TinyClient(args.constrained, args.weights)
    columns = versions("public_goods")
    print("| game | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for name in args.games:
        cells = []
        for version in columns:
            policy = LLMPolicy(
                client,
                prompts=version,
                persona=args.persona,
                reasoning=args.reasoning,
                temperature=args.temperature,
            )
            counts = validity(policy, name, args.replies)
            cells.append(f"{counts['valid'] / counts.total():.1%}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
