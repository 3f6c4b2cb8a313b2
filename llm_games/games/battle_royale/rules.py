"""Battle royale: players of different accuracy take turns to shoot until one is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import Column, check_choice, check_integer
from llm_games.questions import Question, Target
from llm_games.replies import bare_or_search
from llm_games.rulebook import MISSING, Array, Outcome, Rulebook, State, at, fresh

MISS = -1
"""The action of missing on purpose; shooting at a player is its seat."""


@dataclass(frozen=True)
class BattleRoyaleState(State):
    """What a table looks like between shots. ``round`` counts the shots.

    Between two turns of a player nobody else shoots more than once, so everybody's last shot is
    all that a player can have seen since its own.

    Attributes:
        living: bool ``(players, *batch)``.
        shooter: the seat whose turn it is, int64 ``(*batch)``.
        rolls: 0 to 99, a hit if below the shooter's rate, int64 ``(shots, *batch)``.
        shot: the number of each seat's last shot from 1 on, 0 if none, int64 ``(players, *batch)``.
        target: what it aimed at: a seat, -1 (missed on purpose) or `players` (nobody at the table).
        hit: whether it hit, bool ``(players, *batch)``.
        left: players left after it, int64 ``(players, *batch)``.
    """

    living: Array
    shooter: Array
    rolls: Array
    shot: Array
    target: Array
    hit: Array
    left: Array


@dataclass(frozen=True)
class BattleRoyale(Rulebook):
    """Battle royale. Source: γ-Bench (arXiv 2403.11807), game 7; the truel, Kilgour 1975.

    The living players shoot in seat order, round and round; each aims at another living player
    or misses on purpose, which everybody can see. The last one left wins 1; all others get 0.
    A missing or illegal action counts as a miss on purpose. A player that is out learns nothing
    more: its text and numbers are blank.
    """

    name: ClassVar[str] = "battle_royale"
    title: ClassVar[str] = "Battle royale"
    source: ClassVar[str] = "γ-Bench"
    turns: ClassVar[bool] = True
    masked: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"gamma_bench": {}}

    base_hit_rate: int = 35
    """percentage with which the first player hits, 0 to 100"""
    interval: int = 5
    """percentage points by which each following player hits more often"""
    hit_rates: tuple[int, ...] | None = None
    """given percentages, one for each player in shooting order, instead of the two above"""
    max_shots: int | None = 20
    """the game stops after so many shots, at least 1; None: it goes on until one is left"""
    announce_cap: bool = False
    """whether the players are told `max_shots`"""
    reply_keys: str = "target"
    """``target``: one key in a reply; ``action_target``: two are asked for, the target decides"""
    bad_target: str = "rule_break"
    """a target that is out or unknown: ``rule_break``, or a ``wasted_shot`` that hits nobody"""
    self_target: str = "rule_break"
    """shooting at oneself: ``rule_break`` or ``allowed``"""
    target_match: str = "exact"
    """``exact``: the target's name or number; ``substring``: the first living name it is part of"""
    cap_outcome: str = "nobody"
    """when `max_shots` ends the game: 0 for all, or ``share``, 1 shared by the living"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_shots is not None:
            check_integer("max_shots", self.max_shots, 1)
        check_choice("announce_cap", self.announce_cap, (False, True))
        check_choice("reply_keys", self.reply_keys, ("target", "action_target"))
        check_choice("bad_target", self.bad_target, ("rule_break", "wasted_shot"))
        check_choice("self_target", self.self_target, ("rule_break", "allowed"))
        check_choice("target_match", self.target_match, ("exact", "substring"))
        check_choice("cap_outcome", self.cap_outcome, ("nobody", "share"))
        self._check_rates()

    def _check_rates(self) -> None:
        check_integer("base_hit_rate", self.base_hit_rate, 0, 100)
        check_integer("interval", self.interval, -100, 100)
        if self.hit_rates is not None:
            if not isinstance(self.hit_rates, (tuple, list)) or len(self.hit_rates) != self.players:
                raise BadParameter(
                    f"hit_rates must be {self.players} integers from 0 to 100, one for each "
                    f"player, got {self.hit_rates!r}"
                )
            object.__setattr__(self, "hit_rates", tuple(self.hit_rates))
        for name, rate in zip(self.names(), self.rates, strict=True):
            check_integer(f"the hit rate of {name}", rate, 0, 100)

    @cached_property
    def rates(self) -> tuple[int, ...]:
        """Percentage with which each seat hits."""
        steps = range(self.players)
        return self.hit_rates or tuple(self.base_hit_rate + self.interval * i for i in steps)

    def terms(self) -> dict[str, Any]:
        field = [
            {"name": n, "rate": rate} for n, rate in zip(self.names(), self.rates, strict=True)
        ]
        return super().terms() | {"field": field}

    def length(self) -> int | None:
        return self.max_shots

    def bounds(self) -> tuple[int, int]:
        return MISS, self.players - 1

    def reset(
        self, rng: np.random.Generator, batch: tuple[int, ...] = (), rolls: Any = None
    ) -> BattleRoyaleState:
        """Return the first state.

        `rolls`, integers from 0 to 99 of shape ``(shots, *batch)``, are used for the first shots
        instead of drawn ones: 0 hits at any rate above 0, 99 misses at any below 100. Without
        `max_shots`, whatever is not given is drawn shot by shot in `play`.
        """
        given = np.asarray(np.zeros((0, *batch)) if rolls is None else rolls).astype(np.int64)
        if given.shape[1:] != batch or ((given < 0) | (given > 99)).any():
            raise BadParameter(
                f"rolls must be integers from 0 to 99 of shape (shots, *{batch}), "
                f"got the shape {given.shape}"
            )
        drawn = rng.integers(0, 100, (max((self.max_shots or 0) - len(given), 0), *batch))
        shape = (self.players, *batch)
        return BattleRoyaleState(
            **fresh(batch),
            living=np.ones(shape, np.bool_),
            shooter=np.zeros(batch, np.int64),
            rolls=np.concatenate([given, drawn]),
            shot=np.zeros(shape, np.int64),
            target=np.zeros(shape, np.int64),
            hit=np.zeros(shape, np.bool_),
            left=np.zeros(shape, np.int64),
        )

    def _seats(self, state: BattleRoyaleState) -> Array:
        return np.arange(self.players).reshape(-1, *(1 for _ in np.shape(state.round)))

    def asked(self, state: BattleRoyaleState) -> Array:
        return (self._seats(state) == state.shooter) & ~state.over

    def alive(self, state: BattleRoyaleState) -> Array:
        return state.living & ~state.over

    def mask(self, state: BattleRoyaleState) -> Array:
        living = np.moveaxis(state.living, 0, -1)
        me = np.arange(self.players) == state.shooter[..., None]
        legal = living | (self.bad_target == "wasted_shot")
        legal = np.where(me, self.self_target == "allowed", legal)
        choices = np.concatenate([np.ones_like(legal[..., :1]), legal], axis=-1)
        return self.asked(state)[..., None] & choices

    def breaks(self, state: BattleRoyaleState, actions: Array) -> Array:
        aim = np.clip(actions, MISS, self.players - 1)
        legal = np.take_along_axis(self.mask(state), (aim + 1)[..., None], axis=-1)[..., 0]
        beyond = (actions > aim) & (self.bad_target == "wasted_shot")
        return self.asked(state) & ~np.where(actions == aim, legal, beyond)

    def fallback(self, state: BattleRoyaleState) -> Array:
        return np.full(state.living.shape, MISS, np.int64)

    def play(
        self, state: BattleRoyaleState, actions: Array, rng: np.random.Generator, broke: Array
    ) -> tuple[BattleRoyaleState, Outcome]:
        asked, seats = self._seats(state) == state.shooter, self._seats(state)
        target = np.minimum(at(actions, state.shooter), self.players)
        rate = np.array(self.rates)[state.shooter]
        victim = (seats == target) & state.living
        hit = victim.any(axis=0) & (self._roll(state, rng) < rate)
        living = state.living & ~(victim & hit)
        left, shots = living.sum(axis=0), state.round + 1
        capped = np.False_ if self.max_shots is None else shots >= self.max_shots
        after = BattleRoyaleState(
            round=shots,
            over=(left == 1) | capped,
            void=state.void,
            living=living,
            shooter=self._next(state.shooter, living),
            rolls=state.rolls,
            shot=np.where(asked, shots, state.shot),
            target=np.where(asked, target, state.target),
            hit=np.where(asked, hit, state.hit),
            left=np.where(asked, left, state.left),
        )
        record = {
            "actions": np.where(asked, target, MISSING),
            "shots": shots,
            "shooter": state.shooter,
            "target": target,
            "hit": hit,
            "alive": state.living,
            "rates": np.broadcast_to(np.array(self.rates).reshape(seats.shape), living.shape),
        }
        rewards = self._rewards(after.over, living, left)
        return after, Outcome(rewards, ~living | after.over, record)

    def _roll(self, state: BattleRoyaleState, rng: np.random.Generator) -> Array:
        held = len(state.rolls)
        if held == 0:
            return rng.integers(0, 100, np.shape(state.round))
        roll = at(state.rolls, np.minimum(state.round, held - 1))
        if self.max_shots is not None:
            return roll
        return np.where(state.round < held, roll, rng.integers(0, 100, np.shape(state.round)))

    def _next(self, shooter: Array, living: Array) -> Array:
        steps = np.arange(1, self.players + 1).reshape(-1, *(1 for _ in np.shape(shooter)))
        order = (shooter + steps) % self.players
        return at(order, np.take_along_axis(living, order, axis=0).argmax(axis=0))

    def _rewards(self, over: Array, living: Array, left: Array) -> Array:
        paid = over & ((left == 1) | (self.cap_outcome == "share"))
        return np.where(paid & living, 1.0 / left, 0.0)

    def seen(self, state: BattleRoyaleState) -> Array:
        """Return whose last shot each player has seen since its own (included).

        Bool ``(players, *batch, players)``: the last axis is the shooter's.
        """
        shot = np.moveaxis(state.shot, 0, -1)
        return state.living[..., None] & (shot > 0) & (shot >= state.shot[..., None])

    def columns(self) -> tuple[Column, ...]:
        n, most = self.players, np.inf if self.max_shots is None else self.max_shots
        own = (
            Column("seat", 0, n - 1, "own seat, the position in the shooting order from 0"),
            Column("position", 0, n, "own position among the living from 1; 0: out"),
            Column("shots", 0, most, "shots so far"),
            Column("left", 0, n, "players left"),
            Column("shooter", 0, n - 1, "seat whose turn it is"),
        )
        kinds = (
            ("living", 0, 1, "1: seat {} is alive"),
            ("shot", 0, most, "number of seat {}'s shot since the own last turn; 0: none"),
            ("target", MISS, n, "what it aimed at: a seat, -1 missed on purpose, players nobody"),
            ("hit", 0, 1, "1: it hit"),
            ("after", 0, n, "players left after it"),
        )
        each = (
            Column(f"{kind}_{i}", low, high, meaning.format(i))
            for kind, low, high, meaning in kinds
            for i in range(n)
        )
        return (*own, *each)

    def observe(self, state: BattleRoyaleState) -> Array:
        shape, n = state.living.shape, self.players
        rows = np.zeros((*shape, len(self.column_index)), np.float32)
        rows[..., 0] = self._seats(state)
        rows[..., 1] = state.living.cumsum(axis=0)
        rows[..., 2] = state.round
        rows[..., 3] = state.living.sum(axis=0)
        rows[..., 4] = state.shooter
        rows[..., 5 : 5 + n] = np.moveaxis(state.living, 0, -1)
        seen = self.seen(state)
        for block, value in enumerate((state.shot, state.target, state.hit, state.left), start=1):
            start = 5 + block * n
            rows[..., start : start + n] = np.where(seen, np.moveaxis(value, 0, -1), 0)
        return np.where(state.living[..., None], rows, np.float32(0))

    def told(self, state: BattleRoyaleState, player: int) -> dict[str, Any]:
        if not state.living[player]:
            blank: dict[str, Any] = dict.fromkeys(("position", "shots", "left", "shooter", "rate"))
            return blank | {"alive": [], "events": []}
        names, living = self.names(), np.flatnonzero(state.living).tolist()
        seen = sorted(np.flatnonzero(self.seen(state)[player]), key=lambda seat: state.shot[seat])
        return {
            "position": living.index(player) + 1,
            "rate": self.rates[player],
            "shots": int(state.round),
            "left": len(living),
            "shooter": names[int(state.shooter)],
            "alive": [{"name": names[seat], "rate": self.rates[seat]} for seat in living],
            "events": [self._event(state, int(seat)) for seat in seen],
        }

    def _event(self, state: BattleRoyaleState, seat: int) -> dict[str, Any]:
        target = int(state.target[seat])
        return {
            "shot": int(state.shot[seat]),
            "shooter": self.names()[seat],
            "on_purpose": target == MISS,
            "target": self.names()[target] if 0 <= target < self.players else None,
            "hit": bool(state.hit[seat]),
            "left": int(state.left[seat]),
        }

    def question(self, state: BattleRoyaleState, player: int) -> Question | None:
        if not self.asked(state)[player]:
            return None
        seats = {name: seat for seat, name in enumerate(self.names())}
        mine = {name: seat for name, seat in seats.items() if seat == player}
        living = {name: seat for name, seat in seats.items() if state.living[seat]}
        legal = living if self.self_target == "allowed" else living.keys() - mine.keys()
        return Target(
            "target",
            names={name: seat for name, seat in living.items() if name in legal},
            own={name: seat for name, seat in mine.items() if name not in legal},
            others={name: seat for name, seat in seats.items() if name not in living},
            nowhere=self.players,
            lenient=self.bad_target == "wasted_shot",
            substring=self.target_match == "substring",
            with_action=self.reply_keys == "action_target",
            published=bare_or_search,
        )

    def picture(self, state: BattleRoyaleState) -> tuple[str, list[str], list[list[str]]]:
        shots = int(state.round)
        of = "" if self.max_shots is None else f" of at most {self.max_shots}"
        caption = f"{self.title}: shot {shots}{of}, {int(state.living.sum())} left"
        rows = []
        for seat, name in enumerate(self.names()):
            state_of = "alive" if state.living[seat] else "out"
            shot = self._event(state, seat) if state.shot[seat] else None
            rows.append([name, f"{self.rates[seat]}%", state_of, "" if not shot else _said(shot)])
        return caption, ["seat", "hits", "state", "last shot"], rows


def _said(shot: Mapping[str, Any]) -> str:
    if shot["on_purpose"]:
        return f"#{shot['shot']} missed on purpose"
    result = "hit" if shot["hit"] else "missed"
    return f"#{shot['shot']} at {shot['target'] or 'nobody'}: {result}"
