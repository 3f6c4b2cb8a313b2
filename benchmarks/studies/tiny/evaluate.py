"""How often the tiny model's replies are legal: it plays real games against itself.

Run ``python -m llm_games.benchmarks.studies.tiny.evaluate``: a table of the share of valid
replies, a row a game, or a game in another setting, and a column a wording.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

from llm_games.baselines.players import llm_player
from llm_games.baselines.tiny.client import TinyClient
from llm_games.benchmarks.studies.tiny.samples import VARIANTS
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.words import PERSONAS, versions
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play_table

_PRESETS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *(("beauty_contest", f"econ_arena_{group}", {"rounds": 6}) for group in "LMH"),
    *(("budget_auction", f"econ_arena_{g}", {"rounds": 6, "reveal": "bids"}) for g in "LMH"),
    *(("english_auction", f"econ_arena_english_{group}", {}) for group in "LMH"),
    ("english_auction", "auc_arena_20", {}),
    *(("water_allocation", f"setting_{number}", {}) for number in (2, 4, 6)),
    ("beauty_contest", "shall_we_talk", {"talk": {"turns": 0}}),
)
_SHORT: dict[str, dict[str, Any]] = {
    "bertrand_competition": {"rounds": 22},
    "emergency_evacuation": {"players": 3},
}
"""What the players are not told, and makes long games shorter."""
_TALKS: dict[str, dict[str, Any]] = {
    "beauty_contest": {"players": 6, "rounds": 2, "talk": {"turns": 2}},
    "public_goods": {"players": 4, "rounds": 4, "talk": {"turns": 1}},
    "bertrand_competition": {"preset": "shall_we_talk_bc_talk", "rounds": 6},
    "emergency_evacuation": {"preset": "shall_we_talk_ee_talk", "players": 3, "walker": "greedy"},
}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, _SHORT.get(name, {})) for name in VARIANTS},
    **{f"{name} {preset}": (name, {"preset": preset} | extra) for name, preset, extra in _PRESETS},
    **{f"{name} talk": (name, extra) for name, extra in _TALKS.items()},
}
"""Game and parameters by label: the default ones by the game's name, those of presets, and talk."""

Counts = Counter[tuple[str, str]]
"""Replies by what was asked for (`Attempt.kind`) and outcome."""


async def play(game: Rulebook, policy: LLMPolicy, seed: int) -> Counts:
    """Play one game with the policy on all seats; count its replies."""
    episode = await play_table(game, [policy] * game.players, seed)
    decisions = [decision for step in episode.steps for decision in step.decisions.values()]
    return Counter(
        (attempt.kind, attempt.outcome)
        for decision in (*decisions, *episode.afterwards.values())
        for attempt in decision.attempts
    )


def validity(policy: LLMPolicy, label: str, replies: int, seed: int = 0) -> Counts:
    """Play games of a setting, several at once, until so many replies were given; count them."""
    name, params = SETTINGS[label]
    game = rulebook(name, **params)
    asked = int(game.core.asked(game.core.reset(seed)).sum())

    async def tables() -> Counts:
        total, seeds = Counts(), count(seed)
        while total.total() < replies:
            # As many tables as fill a batch, but not many more than it takes.
            enough = -(-replies // (asked * getattr(game, "rounds", 1)))
            tables = range(max(1, min(20 // asked, enough)))
            played = [play(game, policy, next(seeds)) for _ in tables]
            total.update(sum(await asyncio.gather(*played), Counts()))
        return total

    return asyncio.run(tables())


def share(counts: Counts, kind: str = "move") -> float:
    """Return the share of valid replies; a belief is valid if it can be read, true or not."""
    good = ("valid", "out_of_range") if kind == "belief" else ("valid",)
    total = sum(n for (what, _), n in counts.items() if what == kind)
    return sum(counts[kind, outcome] for outcome in good) / total if total else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--games", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--persona", choices=PERSONAS)
    parser.add_argument("--reasoning", action="store_true")
    parser.add_argument("--planning", action="store_true", help="bidders that plan and learn")
    parser.add_argument("--constrained", action="store_true")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--replies", type=int, default=400, help="for each cell, at least")
    args = parser.parse_args()
    settings = {name: getattr(args, name) for name in ("persona", "reasoning", "temperature")}
    if args.planning:
        settings["learning"] = True
    client = TinyClient(args.constrained, args.weights)
    columns = versions("public_goods")
    kinds = ("plan", "move", "belief", "replan", "learn") if args.planning else ("move",)
    print("| game | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for label in args.games:
        players = (llm_player(client, {"prompts": version, **settings}) for version in columns)
        counts = [validity(player, label, args.replies) for player in players]
        for kind in kinds:
            cells = " | ".join(f"{share(cell, kind):.1%}" for cell in counts)
            print(f"| {label}{f': {kind}' if args.planning else ''} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
