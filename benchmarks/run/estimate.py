"""What a run would ask of language models and what that would cost, before it is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from llm_games.benchmarks.run.branch import Past, branch_pasts
from llm_games.benchmarks.run.muted import measure
from llm_games.benchmarks.run.plan import RunPlan, players
from llm_games.registry import game_class, rulebook
from llm_games.wrappers.clients.budget import Budget, Usage
from llm_games.wrappers.policy import Policy

MEASURED = 20  # episodes of a game that chance ends


@dataclass(frozen=True)
class Estimate:
    """About how much one game asks of models, without tools and if no reply breaks a rule.

    `low` is with short replies, `high` with those of a reasoning model, or as long as `max_tokens`
    lets them be; `seats` are these two of each seat that asks. Not `priced`: no model has a price.
    `chain`: the longest of calls that wait for one another, in an episode or a whole series.
    """

    label: str
    episodes: int
    decisions: int
    seats: dict[str, tuple[Usage, Usage]]
    priced: bool
    chain: int

    @property
    def low(self) -> Usage:
        return added(low for low, _ in self.seats.values())

    @property
    def high(self) -> Usage:
        return added(high for _, high in self.seats.values())

    def plain(self) -> dict[str, Any]:
        """Ranges are pairs, money exact decimals as text."""
        low, high = self.low, self.high
        same = {"label": self.label, "episodes": self.episodes, "decisions": self.decisions}
        tokens = {"tokens_in": (low.tokens_in, high.tokens_in)}
        tokens |= {"tokens_out": (low.tokens_out, high.tokens_out)}
        money = (str(low.money), str(high.money)) if self.priced else None
        return same | {"calls": low.calls, "chain": self.chain} | tokens | {"money": money}


def added(parts: Iterator[Usage]) -> Usage:
    total = Usage()
    for part in parts:
        total.add(part)
    return total


def branch_estimates(plan: RunPlan, path: Path) -> list[Estimate]:
    """Estimate branches that are to be recorded at `path`, by players that have no keys."""
    unasked = plan.without_keys()
    policies = players(unasked, unasked.shared(use_cache=False))
    return estimate(unasked, policies, branch_pasts(plan, path))


def estimate(
    plan: RunPlan, policies: Mapping[str, Policy], pasts: Mapping[str, Past] | None = None
) -> list[Estimate]:
    """Estimate decisions, calls, tokens, money of games, from a table of mute players each.

    Where chance ends a game, from its first `MEASURED` episodes. Of a branch only what is new
    counts; `pasts` have what stands before each, by label.
    """
    estimates = []
    for game in plan.games:
        episodes, lasting = len(game.seeds), dict(game_class(game.game).lasting)
        rules = rulebook(game.game, **(game.params | lasting | {"failed_reply": "fallback"}))
        seats = [policies[seat.key] for seat in game.seats]
        branch = (game.branch, pasts[game.label].action) if game.branch and pasts else None
        length, chance = game.max_steps, game.given
        open_end = getattr(rules.core, "continuation", 1) < 1 and not branch
        seeds = game.seeds[: MEASURED if open_end else 1]
        tables = [measure(rules, seats, seed, length, chance, branch=branch) for seed in seeds]
        share = Fraction(episodes, len(tables))
        asked = {}
        for seat in dict.fromkeys(seat for table in tables for seat in table.seats):
            used = [table.seats[seat] for table in tables if seat in table.seats]
            low, high = (_times(added(iter(parts)), share) for parts in zip(*used, strict=True))
            asked[f"{game.label}/player_{seat}"] = low, high
        chain = max(table.chain for table in tables) * (episodes if game.series else 1)
        estimates.append(
            Estimate(
                label=game.label,
                episodes=episodes,
                decisions=round(share * sum(table.decisions for table in tables)),
                seats=asked,
                priced=tables[0].priced,
                chain=chain,
            )
        )
    return estimates


def fits(budget: Budget, rows: Sequence[Estimate]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield of each limit of a budget its name, `limit`, `low` and `high` need, and if it `fits`.

    The need of a seat's limit is that of the seat which needs most.
    """
    whole = [(added(row.low for row in rows), added(row.high for row in rows))]
    seats = [pair for row in rows for pair in row.seats.values()] or whole
    for suffix, needs in (("", whole), ("_per_seat", seats)):
        for what, limit in budget.limits(bool(suffix)).items():
            low, high = (max(getattr(need[i], what) for need in needs) for i in (0, 1))
            answer = "yes" if high <= limit else "no" if low > limit else "perhaps"
            yield f"{what}{suffix}", {"limit": limit, "low": low, "high": high, "fits": answer}


def _times(usage: Usage, share: Fraction) -> Usage:
    """Multiply; money stays a decimal, all else whole."""
    above, below = share.as_integer_ratio()
    numbers: dict[str, Any] = {name: number * above for name, number in vars(usage).items()}
    for name, number in numbers.items():
        numbers[name] = round(number / below) if isinstance(number, int) else number / below
    return Usage(**numbers)
