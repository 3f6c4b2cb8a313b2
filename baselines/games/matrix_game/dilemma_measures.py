"""How two players of two actions played: cooperation, responses, coordination, alternation."""

from __future__ import annotations

import numpy as np

from llm_games.rulebook import Array, PerPlayer

SITUATIONS = ("CC", "CD", "DC", "DD")
"""The last round's actions, own first; C is action 0, D action 1."""


def responses(played: PerPlayer) -> tuple[Array, Array]:
    """Return how often both seats played C after each of `SITUATIONS`, and of how many times."""
    own = np.concatenate([played, played[::-1]], axis=-1)[0]
    other = np.concatenate([played[::-1], played], axis=-1)[0]
    rounds = played.shape[-1]
    first = np.arange(own.shape[-1]) % rounds == 0  # has none before it
    before = np.roll(2 * own + other, 1, axis=-1)
    made, count = np.zeros(4), np.zeros(4)
    for situation in range(4):
        here = (before == situation) & ~first
        made[situation], count[situation] = (here & (own == 0)).sum(), here.sum()
    return np.divide(made, count, out=np.full(4, np.nan), where=count > 0), count


def dilemma_measures(played: PerPlayer, stable: Array) -> dict[str, float]:
    """Return measures of a play, ``(2, *batch, rounds)``; `stable` rounds were an equilibrium."""
    first, last = played[..., 0] == 0, played[..., -1] == 0
    both = (played == 0).all(axis=0)
    turned = (played[..., 1:] != played[..., :-1]).all(axis=0) & stable[..., 1:] & stable[..., :-1]
    shares, counts = responses(played)
    named = {f"C after {name}": float(s) for name, s in zip(SITUATIONS, shares, strict=True)}
    named |= {f"times of {name}": float(c) for name, c in zip(SITUATIONS, counts, strict=True)}
    return {
        "cooperation": float((played == 0).mean()),
        "cooperation in round 1": float(first.mean()),
        "cooperation in the last round": float(last.mean()),
        "mutual cooperation": float(both.mean()),
        "coordination": float((played[0] == played[1]).mean()),
        "alternation": float(turned.mean()) if turned.size else np.nan,
        **named,
    }
