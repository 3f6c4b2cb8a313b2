"""A budget over several workers: never passed, and used up to the last call."""

import asyncio
import random
from decimal import Decimal

import pytest

from llm_games.benchmarks.run.leases import LeasedLedger, Leases
from llm_games.wrappers.clients.budget import Budget, BudgetExceeded, Ledger, Usage

CALL = Usage(1, 0, 30, 10, money=Decimal("0.04"))  # what each turns out to cost
DEAREST = Usage(1, 0, 30, 70, money=Decimal("0.10"))
SEATS = ("g/player_0", "g/player_1")
LIMITS = {
    "calls": 101,
    "tokens": 101 * 40 + 60,
    "money": Decimal("4.10"),
    "calls_per_seat": 40,
    "tokens_per_seat": 40 * 40 + 60,
    "money_per_seat": Decimal("1.66"),
}


class Branch:
    """A worker's books at their coordinator, whose messages are on their way for a while."""

    def __init__(self, number, leases, budget):
        self.name, self.leases, self.answers = f"worker {number}", leases, {}
        self.ledger = LeasedLedger(budget, {}, self.ask, self.give)

    async def ask(self, limit, needed):
        number = len(self.answers)
        self.answers[number] = answer = asyncio.get_running_loop().create_future()
        soon(self.leases.ask, self.name, number, limit, needed)
        return await answer

    def give(self, *about):
        soon(self.leases.give, self.name, *about)

    def receive(self, kind, *about):
        if kind == "recall":
            self.ledger.recall(*about)
        else:
            self.answers[about[0]].set_result(about[-1])

    async def call(self, seat, draws):
        """Make calls until there is no budget for any."""
        while True:
            held = await self.ledger.hold("model", seat, lambda: DEAREST)
            await asyncio.sleep(draws.random() / 1000)
            self.ledger.book("model", seat, CALL)
            self.ledger.release("model", seat, held)


def soon(work, *about):
    asyncio.get_running_loop().call_later(0.0005, work, *about)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", LIMITS)
def test_a_budget_is_used_up_and_not_passed(name, workers):
    budget = Budget(**{name: LIMITS[name]})

    async def spend():
        branches = {}
        leases = Leases(Ledger(budget), workers, lambda to, *m: soon(branches[to].receive, *m))
        for number in range(workers):
            branch = Branch(number, leases, budget)
            branches[branch.name] = branch
        draws = random.Random(workers)
        calls = [b.call(seat, draws) for b in branches.values() for seat in SEATS * 4]
        return branches.values(), await asyncio.gather(*calls, return_exceptions=True)

    branches, ends = asyncio.run(spend())
    assert {type(end) for end in ends} == {BudgetExceeded}
    assert {end.limit for end in ends} == {name}
    what, seats = name.removesuffix("_per_seat"), SEATS if "_per_seat" in name else [None]
    spent = [
        sum(getattr(b.ledger.seats[seat] if seat else b.ledger.total, what) for b in branches)
        for seat in seats
    ]
    assert LIMITS[name] - getattr(DEAREST, what) < max(spent) <= LIMITS[name]
