"""The pirate game: the most senior proposes how to share the gold, the others vote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from llm_games.errors import IllegalAction
from llm_games.questions import MISSING, Action, Choice, Question, Shares
from llm_games.replies import around
from llm_games.rulebook import (
    Array,
    Column,
    Outcome,
    Rulebook,
    State,
    check_choice,
    check_integer,
)

PROPOSE, VOTE = 0, 1
REJECT, ACCEPT = 0, 1
LARGEST = 2**40
"""Where shares have no other limit: small enough that their sum stays an int64."""


@dataclass(frozen=True)
class PirateGameState(State):
    """What a table looks like between moves. ``round`` counts the votes held.

    Attributes:
        phase: 0 the proposer is asked, 1 all others are, int64 ``(*batch)``.
        proposer: the most senior living pirate's seat; all seats from it on live, ``(*batch)``.
        plan: the plan voted on now, int64 ``(players, *batch)``; zeros while there is none.
        last_plan: the plan voted on last, int64 ``(players, *batch)``; zeros before the first.
        votes: the last votes, 1 accept (the proposer's too), int64 ``(players, *batch)``.
        passed: whether the last plan passed, bool ``(*batch)``.
    """

    phase: Array
    proposer: Array
    plan: Array
    last_plan: Array
    votes: Array
    passed: Array


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
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"gamma_bench": {}}

    gold: int = 100
    """coins to share, at least 1"""
    quota: str = "half"
    """a plan passes with at least half of the votes (``half``) or with more (``majority``)"""
    payoff: str = "gold"
    """``gold``: coins received; ``lexicographic``: for survivors ``gold + 1`` more, and the share
    of pirates thrown overboard"""
    proposal_check: str = "strict"
    """``strict``, or ``sum_and_length``: only the number of shares and their sum are checked"""
    vote_parse: str = "strict"
    """``strict``, or ``contains``: any text in which the word accept, else reject, occurs"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("gold", self.gold, 1, 10**9)
        check_choice("quota", self.quota, ("half", "majority"))
        check_choice("payoff", self.payoff, ("gold", "lexicographic"))
        check_choice("proposal_check", self.proposal_check, ("strict", "sum_and_length"))
        check_choice("vote_parse", self.vote_parse, ("strict", "contains"))

    def length(self) -> int:
        return 2 * (self.players - 1)

    def bounds(self) -> tuple[int, int]:
        return 0, self.gold

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> PirateGameState:
        nothing, no = np.zeros((self.players, *batch), np.int64), np.zeros(batch, np.bool_)
        zero = np.zeros(batch, np.int64)
        return PirateGameState(
            round=zero,
            over=no,
            void=no,
            phase=zero,
            proposer=zero,
            plan=nothing,
            last_plan=nothing,
            votes=nothing,
            passed=no,
        )

    def _seats(self, state: PirateGameState) -> Array:
        return np.arange(self.players).reshape(-1, *(1 for _ in np.shape(state.round)))

    def asked(self, state: PirateGameState) -> Array:
        seats = self._seats(state)
        turn = np.where(state.phase == VOTE, seats > state.proposer, seats == state.proposer)
        return turn & ~state.over

    def alive(self, state: PirateGameState) -> Array:
        return (self._seats(state) >= state.proposer) & ~state.over

    def legal(self, state: PirateGameState) -> tuple[Array, Array]:
        high = np.where(state.phase == VOTE, ACCEPT, self.gold)
        high = np.where(self._seats(state) >= state.proposer, high, 0)
        return np.zeros_like(high), high

    def breaks(self, state: PirateGameState, actions: Array) -> Array:
        asked = self.asked(state)
        wrong_vote = (actions != ACCEPT) & (actions != REJECT)
        return asked & np.where(state.phase == VOTE, wrong_vote, self._wrong_plan(state, actions))

    def _wrong_plan(self, state: PirateGameState, plan: Array) -> Array:
        least = 0 if self.proposal_check == "strict" else -LARGEST
        beyond = (plan < least) | (plan > LARGEST)
        to_the_dead = (self._seats(state) < state.proposer) & (plan != 0)
        return (beyond | to_the_dead).any(axis=0) | (plan.sum(axis=0) != self.gold)

    def fallback(self, state: PirateGameState) -> Array:
        seats = self._seats(state)
        living = self.players - state.proposer
        share = self.gold // living
        plan = np.where(seats > state.proposer, share, 0)
        plan = np.where(seats == state.proposer, self.gold - share * (living - 1), plan)
        return np.where(state.phase == VOTE, REJECT, plan)

    def mend(self, state: PirateGameState, actions: Array, broke: Array) -> Array:
        """Put the fallback in place of what broke a rule: a single vote, or a whole plan."""
        replaced = np.where(state.phase == VOTE, broke, broke.any(axis=0))
        return np.where(replaced, self.fallback(state), actions)

    def play(
        self, state: PirateGameState, actions: Array, rng: np.random.Generator, broke: Array
    ) -> tuple[PirateGameState, Outcome]:
        seats, voting = self._seats(state), state.phase == VOTE
        living = seats >= state.proposer
        votes = np.where(seats == state.proposer, ACCEPT, np.where(living, actions, REJECT))
        votes = np.where(voting, votes, 0)
        accepts, needed = votes.sum(axis=0), self.players - state.proposer
        enough = 2 * accepts >= needed if self.quota == "half" else 2 * accepts > needed
        passed = voting & enough
        failed = voting & ~enough
        proposer = state.proposer + failed
        alone = proposer == self.players - 1
        after = PirateGameState(
            round=state.round + voting,
            over=passed | alone,
            void=state.void,
            phase=np.where(voting, PROPOSE, VOTE),
            proposer=proposer,
            plan=np.where(voting, 0, actions),
            last_plan=np.where(voting, state.plan, state.last_plan),
            votes=np.where(voting, votes, state.votes),
            passed=passed,
        )
        record = {
            "actions": np.where(voting & ~self.asked(state), MISSING, actions),
            "phase": state.phase,
            "plan": np.where(voting, state.plan, actions),
            "votes": votes,
            "accepts": accepts,
            "passed": passed,
            "alive": living,
        }
        finished = (seats < proposer) | after.over
        return after, Outcome(self._rewards(after), finished, record)

    def coins(self, state: PirateGameState) -> Array:
        """Return what everybody has once the game is over, int64 ``(players, *batch)``; else 0."""
        alone = np.where(self._seats(state) == self.players - 1, self.gold, 0)
        coins = np.where(state.passed, state.last_plan, alone)
        return np.where(state.over & ~state.void, coins, 0)

    def _rewards(self, after: PirateGameState) -> Array:
        coins = self.coins(after)
        if self.payoff == "gold":
            return coins.astype(np.float64)
        whole = self.players * (self.gold + 1 + coins) + after.proposer
        return np.where(self.alive_at_end(after), whole / self.players, 0.0)

    def alive_at_end(self, state: PirateGameState) -> Array:
        """Return who has survived a game that is over, bool ``(players, *batch)``."""
        return (self._seats(state) >= state.proposer) & state.over

    def hears(self, state: PirateGameState) -> Array:
        """Return who still knows what happens: the living, and until the next plan the last out."""
        out_now = (state.phase == PROPOSE) & (state.round > 0) & ~state.passed
        return self._seats(state) >= state.proposer - out_now

    def columns(self) -> tuple[Column, ...]:
        n = self.players
        loose = self.proposal_check == "sum_and_length"
        least, most = (-np.inf, np.inf) if loose else (0, self.gold)
        own = (
            Column("rank", 0, n, "own rank from 1, the most senior; 0: out"),
            Column("round", 0, n, "votes held"),
            Column("phase", 0, 1, "0 a plan is proposed, 1 it is voted on"),
            Column("proposer", 0, n, "rank of the proposer; all ranks from it on are alive"),
            Column("share", least, most, "own share in the plan voted on now, coins"),
            Column("accepts", 0, n, "votes for the last plan, the proposer's included"),
            Column("voters", 0, n, "pirates alive when the last plan was voted on"),
            Column("passed", 0, 1, "1: the last plan passed"),
            Column("vote", 0, 1, "own vote on the last plan, 1 accept"),
            Column("coins", least, most, "own coins once the game is over"),
        )
        now = (Column(f"plan_{r}", least, most, f"share of rank {r} now") for r in range(1, n + 1))
        last = (
            Column(f"last_plan_{r}", least, most, f"share of rank {r} in the last plan")
            for r in range(1, n + 1)
        )
        return (*own, *now, *last)

    def observe(self, state: PirateGameState) -> Array:
        columns = (
            self._seats(state) + 1,
            state.round,
            state.phase,
            state.proposer + 1,
            state.plan,
            state.votes.sum(axis=0),
            np.where(state.round > 0, self.players - self._last_proposer(state), 0),
            state.passed,
            state.votes,
            self.coins(state),
            *state.plan,
            *state.last_plan,
        )
        rows = np.empty((*state.plan.shape, len(columns)), np.float32)
        for i, column in enumerate(columns):
            rows[..., i] = column
        return np.where(self.hears(state)[..., None], rows, np.float32(0))

    def _last_proposer(self, state: PirateGameState) -> Array:
        return np.where(state.passed, state.proposer, state.proposer - 1)

    def told(self, state: PirateGameState, player: int) -> dict[str, Any]:
        if not self.hears(state)[player]:
            return dict.fromkeys(("round", "rank", "phase", "proposer", "plan", "share", "last"))
        voting = int(state.phase) == VOTE
        return {
            "round": int(state.round) + (not state.over),
            "rank": player + 1,
            "phase": "vote" if voting else "propose",
            "proposer": int(state.proposer) + 1,
            "plan": self._shares(state.plan, int(state.proposer)) if voting else None,
            "share": int(state.plan[player]) if voting else None,
            "last": self._last(state, player) if state.round else None,
        }

    def _last(self, state: PirateGameState, player: int) -> dict[str, Any]:
        proposer = int(self._last_proposer(state))
        return {
            "round": int(state.round),
            "plan": self._shares(state.last_plan, proposer),
            "proposer": proposer + 1,
            "accepts": int(state.votes.sum()),
            "voters": self.players - proposer,
            "vote": "accept" if state.votes[player] else "reject",
            "passed": bool(state.passed),
            "coins": int(self.coins(state)[player]) if state.over else None,
        }

    def _shares(self, plan: Array, proposer: int) -> list[dict[str, int]]:
        return [{"rank": i + 1, "share": int(plan[i])} for i in range(proposer, self.players)]

    def question(self, state: PirateGameState, player: int) -> Question | None:
        if not self.asked(state)[player]:
            return None
        if int(state.phase) == VOTE:
            words = {"accept": ACCEPT, "reject": REJECT}
            contains = self.vote_parse == "contains"
            return Choice("decision", words, contains=contains, published=around)
        ranks = tuple(range(player + 1, self.players + 1))
        loose = self.proposal_check == "sum_and_length"
        return Shares("proposal", ranks, self.gold, self.players, loose, published=around)

    def space(self, seat: int) -> spaces.Space[Any]:
        """Return a new space: a share for each seat, read when proposing, then a vote."""
        return spaces.MultiDiscrete([self.gold + 1] * self.players + [2])

    def decode(self, state: PirateGameState, seat: int, action: Any) -> Action:
        if action is None:
            return MISSING
        value, parts = np.asarray(action), self.players + 1
        if value.shape != (parts,) or value.dtype.kind not in "iu":
            raise IllegalAction(
                f"{self.names()[seat]}: {action!r} is not {parts} integers: a share for each seat "
                f"and a vote"
            )
        if not self.space(seat).contains(value.astype(np.int64)):
            raise IllegalAction(
                f"{self.names()[seat]}: {action!r} has a share outside 0 to {self.gold}, or a "
                f"vote that is not 0 or 1"
            )
        if int(state.phase) == VOTE:
            return int(value[-1])
        first = int(state.proposer)  # shares of pirates who are out are not part of the plan
        return (*(0 for _ in range(first)), *value[first : self.players].tolist())

    def assemble(self, state: PirateGameState, moves: Mapping[int, Action]) -> Array:
        """Put single seats' moves together: votes by seat, or the proposer's plan for all seats."""
        if int(state.phase) == VOTE:
            return super().assemble(state, moves)
        plan = moves.get(int(state.proposer), MISSING)
        return np.full(self.players, MISSING, np.int64) if plan == MISSING else np.array(plan)

    def picture(self, state: PirateGameState) -> tuple[str, list[str], list[list[str]]]:
        voting, coins = int(state.phase) == VOTE, self.coins(state)
        caption = f"{self.title}: votes held {int(state.round)}"
        if state.round:
            result = "passed" if state.passed else "failed"
            caption += f", the last plan {result} with {int(state.votes.sum())} to accept"
        plan = state.plan if voting else state.last_plan
        first = int(state.proposer if voting or not state.round else self._last_proposer(state))
        rows = []
        for seat, name in enumerate(self.names()):
            at_table = seat >= first and (voting or bool(state.round))
            share = str(plan[seat]) if at_table else ""
            vote = ("accept" if state.votes[seat] else "reject") if at_table and not voting else ""
            alive = "alive" if seat >= state.proposer else "out"
            rows.append([f"{name} (rank {seat + 1})", alive, share, vote, str(coins[seat])])
        return caption, ["seat", "state", "share", "vote", "coins"], rows
