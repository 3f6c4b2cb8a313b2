"""The pirate game: the most senior proposes how to share the gold, the others vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from llm_games.arrays import Array, PerPlayer, PerTable, array_of
from llm_games.errors import IllegalAction
from llm_games.facts import Fact, param
from llm_games.questions import MISSING, Action, Choice, Question, Shares, alike
from llm_games.replies import around
from llm_games.rulebook import LARGEST, Chance, Goal, Outcome, Played, Rulebook, State, actions_of

PROPOSE, VOTE = 0, 1
REJECT, ACCEPT = 0, 1


@dataclass(frozen=True)
class PirateGameState(State):
    """A table between moves; ``round`` counts the votes held.

    In phase 0 the proposer is asked, in 1 all others are. There are the plan voted on now, and the
    last one with its votes (1 accept, the proposer's too) and whether it passed; zeros: none.
    """

    phase: PerTable
    proposer: PerTable
    plan: PerPlayer
    last_plan: PerPlayer
    votes: PerPlayer
    passed: PerTable


@dataclass(frozen=True)
class PirateGame(Rulebook):
    """Pirate game. Source: γ-Bench (arXiv 2403.11807), game 8; Stewart 1999.

    Two steps make a round. First the proposer offers each living pirate a share: the actions of
    all seats together are its plan. Then the others vote, 1 to accept and 0 to reject; the
    proposer's own vote always accepts. A plan that fails costs the proposer its place. A missing
    or illegal vote rejects; for such a plan everybody is offered the same whole number of coins
    and the proposer keeps the rest. All payoffs are paid when the game ends; whoever is out has 0.
    A pirate that is out hears how the vote on its plan went and nothing more.
    """

    name: ClassVar[str] = "pirate_game"
    title: ClassVar[str] = "Pirate game"
    source: ClassVar[str] = "γ-Bench"
    turns: ClassVar[bool] = True
    seats_differ = "the lowest seat left proposes and can keep most of the gold"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {},
        "gamma_bench_authors": {"vote_parse": "contains", "proposal_check": "sum_and_length"},
    }

    gold: int = param(100, "coins to share", low=1, high=10**9)
    quota: str = param("half", half="at least half of the votes", majority="more than half")
    payoff: str = param(
        "gold",
        gold="coins received",
        lexicographic="for survivors ``gold + 1`` more, and the share of pirates thrown overboard",
    )
    proposal_check: str = param(
        "strict", strict="shares are whole and at least 0", sum_and_length="only their sum counts"
    )
    vote_parse: str = param(
        "strict", strict="one of two words", contains="accept anywhere in it", stakes="changed"
    )

    def length(self) -> int:
        return 2 * (self.players - 1)

    @property
    def largest(self) -> int:
        """The largest payoff if survival counts, in shares of pirates."""
        return self.players * 2 * (self.gold + 1)

    def bounds(self) -> tuple[int, int]:
        return 0, self.gold

    @property
    def division(self) -> int:
        return self.gold

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> PirateGameState:
        return self.first(PirateGameState, batch, passed=bool)

    def asked(self, state: PirateGameState) -> Array:
        seats = self.seats(state)
        turn = np.where(state.phase == VOTE, seats > state.proposer, seats == state.proposer)
        return turn & ~state.over

    def alive(self, state: PirateGameState) -> Array:
        return (self.seats(state) >= state.proposer) & ~state.over

    def highest_legal(self, state: PirateGameState) -> Array:
        living = self.seats(state) >= state.proposer
        return np.where(state.phase == VOTE, ACCEPT, self.gold) * living

    def breaks(self, state: PirateGameState, actions: Array) -> Array:
        free = LARGEST // self.players - self.gold - 2  # all payoffs are exact up to it
        least = 0 if self.proposal_check == "strict" else -free
        beyond = (actions < least) | (actions > free)
        to_the_dead = (self.seats(state) < state.proposer) & (actions != 0)
        wrong_plan = (beyond | to_the_dead).any(axis=0) | (actions.sum(axis=0) != self.gold)
        wrong_vote = (actions != ACCEPT) & (actions != REJECT)
        return self.asked(state) & np.where(state.phase == VOTE, wrong_vote, wrong_plan)

    def fallback(self, state: PirateGameState) -> Array:
        seats, share = self.seats(state), self.gold // (self.players - state.proposer)
        plan = np.where(seats > state.proposer, share, 0)
        plan = np.where(seats == state.proposer, self.gold - plan.sum(axis=0), plan)
        return np.where(state.phase == VOTE, REJECT, plan)

    def mend(self, state: PirateGameState, actions: Array, broke: Array) -> Array:
        replaced = np.where(state.phase == VOTE, broke, broke.any(axis=0))
        return np.where(replaced, self.fallback(state), actions)

    def play(self, state: PirateGameState, actions: PerPlayer, broke: PerPlayer) -> Played:
        seats, voting = self.seats(state), state.phase == VOTE
        living = seats >= state.proposer
        votes = np.where(seats == state.proposer, ACCEPT, np.where(living, actions, REJECT))
        votes = np.where(voting, votes, 0)
        accepts, needed = votes.sum(axis=0), self.players - state.proposer
        enough = 2 * accepts >= needed if self.quota == "half" else 2 * accepts > needed
        passed = voting & enough
        proposer = state.proposer + (voting & ~enough)
        next_state = state.replace(
            round=state.round + voting,
            over=passed | (proposer == self.players - 1),
            phase=np.where(voting, PROPOSE, VOTE),
            proposer=proposer,
            plan=np.where(voting, 0, actions),
            last_plan=np.where(voting, state.plan, state.last_plan),
            votes=np.where(voting, votes, state.votes),
            passed=passed,
        )
        recorded_actions = np.where(voting & ~self.asked(state), MISSING, actions)
        plan = np.where(voting, state.plan, actions)
        record = {"actions": recorded_actions, "phase": state.phase, "plan": plan, "votes": votes}
        record |= {"accepts": accepts, "passed": passed, "alive": living}
        finished = (seats < proposer) | next_state.over
        return next_state, Outcome(self._rewards(next_state), finished, record)

    def coins(self, state: PirateGameState) -> Array:
        """Return everybody's coins once the game is over, int64 ``(players, *batch)``; else 0."""
        alone = np.where(self.seats(state) == self.players - 1, self.gold, 0)
        coins = np.where(state.passed, state.last_plan, alone)
        return np.where(state.over & ~state.void, coins, 0)

    def _rewards(self, next_state: PirateGameState) -> Array:
        coins = self.coins(next_state)
        if self.payoff == "gold":
            return coins.astype(np.float64)
        whole = self.players * (self.gold + 1 + coins) + next_state.proposer
        survived = (self.seats(next_state) >= next_state.proposer) & next_state.over
        return np.where(survived, whole / self.players, 0.0)

    def hears(self, state: PirateGameState) -> Array:
        """Return the seats still told anything: the living, and the last out until a new plan."""
        out_now = (state.phase == PROPOSE) & (state.round > 0) & ~state.passed
        return self.seats(state) >= state.proposer - out_now

    def known(self) -> Sequence[Fact]:
        n, loose = self.players, self.proposal_check == "sum_and_length"
        lower, upper = (-np.inf, np.inf) if loose else (0, self.gold)
        plan, last, votes = (lambda s: s.plan), (lambda s: s.last_plan), (lambda s: s.votes)
        rank, share_meaning = (lambda s: self.seats(s) + 1), "share of rank {} now"
        last_share_meaning = "share of rank {} in the last plan"
        voters = lambda s: np.where(s.round > 0, n - self.proposed_last(s), 0)
        return (
            Fact("rank", rank, 0, n, "own rank from 1, the most senior; 0: out"),
            Fact("round", lambda s: s.round, 0, n, "votes held"),
            Fact("phase", lambda s: s.phase, 0, 1, "0 a plan is proposed, 1 it is voted on"),
            Fact("proposer", lambda s: s.proposer + 1, 0, n,
                 "rank of the proposer; all ranks from it on are alive"),
            Fact("share", plan, lower, upper, "own share in the plan voted on now, coins"),
            Fact("accepts", lambda s: s.votes.sum(axis=0), 0, n,
                 "votes for the last plan, the proposer's included"),
            Fact("voters", voters, 0, n, "pirates alive when the last plan was voted on"),
            Fact("passed", lambda s: s.passed, 0, 1, "1: the last plan passed"),
            Fact("vote", votes, 0, 1, "own vote on the last plan, 1 accept"),
            Fact("coins", self.coins, lower, upper, "own coins once the game is over"),
            Fact("plan", plan, lower, upper, share_meaning, each=True, first=1),
            Fact("last_plan", last, lower, upper, last_share_meaning, each=True, first=1),
        )  # fmt: skip

    def sharers(self, state: PirateGameState) -> Array:
        return self.alive(state) & (state.phase == PROPOSE)

    def drafted(self, numbers: Array, plan: Array) -> Array:
        first = self.column_index["plan_1"]
        numbers[..., first : first + self.players] += plan.transpose(*range(1, plan.ndim), 0)
        return numbers

    def proposed_last(self, state: PirateGameState) -> Array:
        return np.where(state.passed, state.proposer, state.proposer - 1)

    def told(self, state: PirateGameState, seat: int) -> dict[str, Any]:
        if not self.hears(state)[seat]:
            return dict.fromkeys(("round", "rank", "phase", "proposer", "plan", "share", "last"))
        voting, last_proposer = int(state.phase) == VOTE, int(self.proposed_last(state))
        last = {
            "round": int(state.round),
            "plan": self._shares(state.last_plan, last_proposer),
            "proposer": last_proposer + 1,
            "accepts": int(state.votes.sum()),
            "voters": self.players - last_proposer,
            "vote": "accept" if state.votes[seat] else "reject",
            "passed": bool(state.passed),
            "coins": int(self.coins(state)[seat]) if state.over else None,
        }
        return {
            "round": int(state.round) + (not state.over),
            "rank": seat + 1,
            "phase": "vote" if voting else "propose",
            "proposer": int(state.proposer) + 1,
            "plan": self._shares(state.plan, int(state.proposer)) if voting else None,
            "share": int(state.plan[seat]) if voting else None,
            "last": last if state.round else None,
        }

    def _shares(self, plan: Array, proposer: int) -> list[dict[str, int]]:
        return [{"rank": i + 1, "share": int(plan[i])} for i in range(proposer, self.players)]

    @property
    def pot(self) -> float:
        shared = self.payoff == "gold" and self.proposal_check != "sum_and_length"
        return float(self.gold) if shared else super().pot

    @property
    def payable(self) -> tuple[float, float]:
        if self.proposal_check == "sum_and_length":  # shares may be below 0
            return -np.inf, np.inf
        return 0.0, float(self.gold if self.payoff == "gold" else 2 * (self.gold + 1))

    def goal(self, seat: int) -> Goal:
        # Gold alone is paid; who goes overboard has none of it, so that the order is the same.
        first = "coins, survival" if self.payoff == "gold" else "survival, coins"
        return Goal("ordered", f"{first}, others overboard")

    def asks(self, state: PirateGameState, seat: int) -> Question:
        if int(state.phase) == VOTE:
            return self._vote_question
        ranks = tuple(range(seat + 1, self.players + 1))
        loose = self.proposal_check == "sum_and_length"
        return alike(Shares, "proposal", ranks, self.gold, self.players, loose, published=around)

    @cached_property
    def _vote_question(self) -> Choice:
        words, contains = {"accept": ACCEPT, "reject": REJECT}, self.vote_parse == "contains"
        also = ("yes", "accept"), ("no", "reject")
        return Choice("decision", words, contains=contains, published=around, also=also)

    def space(self, seat: int) -> spaces.Space[Any]:
        return spaces.MultiDiscrete([self.gold + 1] * self.players + [2])

    def decode(self, state: PirateGameState, seat: int, action: Any) -> Action:
        if action is None:
            return MISSING
        value = array_of(action)
        if value.dtype.kind not in "iu" or not self.space(seat).contains(value.astype(np.int64)):
            raise IllegalAction(
                f"{self.names()[seat]}: {action!r} is not {self.players + 1} integers: a share "
                f"from 0 to {self.gold} for each seat, and a vote, 0 or 1"
            )
        if int(state.phase) == VOTE:
            return int(value[-1])
        first = int(state.proposer)  # shares of pirates who are out are not part of the plan
        return (*[0] * first, *value[first:-1].tolist())

    def encode(self, state: PirateGameState, seat: int, move: Any) -> Any:
        row = np.zeros(self.players + 1, np.int64)
        if int(state.phase) == VOTE:
            row[-1] = move > 0
        else:
            row[:-1] = np.clip(move, 0, self.gold)
        return row

    def assemble(self, state: PirateGameState, moves: Mapping[int, Action]) -> Array:
        """Put single seats' moves together: votes by seat, or the proposer's plan for all seats."""
        if int(state.phase) == VOTE:
            return super().assemble(state, moves)
        plan = moves.get(int(state.proposer), MISSING)
        return np.full(self.players, MISSING, np.int64) if plan == MISSING else actions_of(plan)

    def picture(self, state: PirateGameState) -> tuple[str, list[str], list[list[str]]]:
        voting, coins = int(state.phase) == VOTE, self.coins(state)
        caption = f"{self.title}: votes held {int(state.round)}"
        if state.round:
            result = "passed" if state.passed else "failed"
            caption += f", the last plan {result} with {int(state.votes.sum())} to accept"
        plan = state.plan if voting else state.last_plan
        first = int(state.proposer if voting or not state.round else self.proposed_last(state))
        rows = []
        for seat, name in enumerate(self.names()):
            at_table = seat >= first and (voting or bool(state.round))
            share = str(plan[seat]) if at_table else ""
            vote = ("accept" if state.votes[seat] else "reject") if at_table and not voting else ""
            alive = "alive" if seat >= state.proposer else "out"
            rows.append([f"{name} (rank {seat + 1})", alive, share, vote, str(coins[seat])])
        return caption, ["seat", "state", "share", "vote", "coins"], rows
