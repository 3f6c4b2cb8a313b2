"""Battle royale: players of different accuracy take turns to shoot until one is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.arrays import Array, PerPlayer, PerTable, any_true, at, looked_up, of_seats
from llm_games.errors import BadParameter
from llm_games.facts import Draw, Fact, check_integer, listed, once, param
from llm_games.questions import MISSING, Target
from llm_games.replies import bare_or_search
from llm_games.rounds import MOST_ROUNDS
from llm_games.rulebook import Chance, Goal, Outcome, Played, Rulebook, State

MISS = -1  # the action of missing on purpose; shooting at a player is its seat
ENDLESS = 10_000  # shots that chance decides in a game without `max_shots`


@dataclass(frozen=True)
class BattleRoyaleState(State):
    """The state between shots; ``round`` counts the shots.

    Everybody's last shot is all that a player can have seen since its own: its number from 1 on (0:
    none), its target (-1: missed on purpose, `players`: nobody), whether it hit, and how many were
    `left`. A roll below the shooter's rate is a hit, ``(shots, *batch)``.
    """

    living: PerPlayer
    shooter: PerTable
    rolls: Array
    shot: PerPlayer
    target: PerPlayer
    hit: PerPlayer
    left: PerPlayer


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
    idle: ClassVar[int] = MISS
    picks: ClassVar[bool] = True
    edition: ClassVar[int] = 3
    former_defaults: ClassVar[Mapping[int, Mapping[str, Any]]] = {2: {"announce_cap": False}}
    payable = 0.0, 1.0
    pot = 1.0
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {"announce_cap": False},
        "gamma_bench_authors": {
            "announce_cap": False,
            "reply_keys": "action_target",
            "bad_target": "wasted_shot",
            "self_target": "allowed",
            "target_match": "substring",
        },
    }

    base_hit_rate: int = param(35, "percentage with which the first player hits", low=0, high=100)
    interval: int = param(5, "percentage points by which the next hits more", low=-100, high=100)
    hit_rates: tuple[int, ...] | None = param(None, "percentages by seat", none="the two above")
    max_shots: int | None = param(
        20,
        "shots at most",
        low=1,
        high=MOST_ROUNDS,
        none="until one is left",
        hidden="announce_cap",
        stakes="always",
    )
    announce_cap: bool = param(
        True, "whether the players are told `max_shots`; the paper is silent about it"
    )
    reply_keys: str = param("target", target="one key", action_target="two, the target decides")
    bad_target: str = param("rule_break", rule_break="is illegal", wasted_shot="hits nobody")
    self_target: str = param("rule_break", rule_break="nobody may aim at itself", allowed="one may")
    target_match: str = param(
        "exact", exact="a name or number", substring="first name it is in", hidden=True
    )
    cap_outcome: str = param("nobody", nobody="all get 0", share="the living share 1")

    def check(self) -> None:
        if self.hit_rates is not None:
            what = f"{self.players} integers from 0 to 100, one for each player"
            listed("hit_rates", self.hit_rates, self.players, what)
        for name, rate in zip(self.names(), self.rates, strict=True):
            check_integer(f"the hit rate of {name}", rate, 0, 100)

    @cached_property
    def rates(self) -> tuple[int, ...]:
        first, step = self.base_hit_rate, self.interval
        return self.hit_rates or tuple(first + step * i for i in range(self.players))

    @property
    def seats_differ(self) -> str:
        alike = "" if len(set(self.rates)) == 1 else " and hit at different rates"
        return f"seats shoot in their order{alike}"

    def terms(self) -> dict[str, Any]:
        field = zip(self.names(), self.rates, strict=True)
        return super().terms() | {"field": [{"name": name, "rate": rate} for name, rate in field]}

    def length(self) -> int | None:
        return self.max_shots

    def bounds(self) -> tuple[int, int]:
        return MISS, self.players - 1

    def draws(self) -> Sequence[Draw]:
        shots = self.max_shots or ENDLESS
        return (Draw("rolls", lambda n: n.integers(0, 100, shots).astype(np.int8), 0, 99, out=0),)

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> BattleRoyaleState:
        return self.first(BattleRoyaleState, batch, living=True, hit=bool, **chance)

    def asked(self, state: BattleRoyaleState) -> Array:
        return (self.seats(state) == state.shooter) & ~state.over

    def alive(self, state: BattleRoyaleState) -> Array:
        return state.living & ~state.over

    def mask(self, state: BattleRoyaleState, seats: Any = None) -> Array:
        living = np.moveaxis(state.living, 0, -1)
        me = np.arange(self.players) == state.shooter[..., None]
        legal = living | (self.bad_target == "wasted_shot")
        legal = np.where(me, self.self_target == "allowed", legal)
        choices = np.concatenate([legal[..., :1] | True, legal], axis=-1)
        asked = self.asked(state) if seats is None else of_seats(self.asked(state), seats)
        return asked[..., None] & choices

    def breaks(self, state: BattleRoyaleState, actions: Array) -> Array:
        aim, me = at(actions, state.shooter), state.shooter
        if self.bad_target == "wasted_shot":
            legal = aim >= MISS
        else:
            seat = np.maximum(np.minimum(aim, self.players - 1), 0)
            legal = (aim == MISS) | ((aim == seat) & at(state.living, seat))
        legal = legal & ((aim != me) | (self.self_target == "allowed"))
        return self.asked(state) & ~legal

    def play(self, state: BattleRoyaleState, actions: PerPlayer, broke: PerPlayer) -> Played:
        asked, seats = self.seats(state) == state.shooter, self.seats(state)
        target = np.minimum(at(actions, state.shooter), self.players)
        rates = np.array(self.rates)
        victim = (seats == target) & state.living
        hit = victim.any(axis=0) & (self._roll(state) < looked_up(rates, state.shooter))
        living = state.living & ~(victim & hit)
        survivors, shots = living.sum(axis=0), state.round + 1
        turns_until = looked_up(self._turns_until, state.shooter, 1)
        turns = np.where(living, turns_until, self.players)
        capped = np.False_ if self.max_shots is None else shots >= self.max_shots
        next_state = state.replace(
            round=shots,
            over=(survivors == 1) | capped,
            living=living,
            shooter=turns.argmin(axis=0),
            shot=np.where(asked, shots, state.shot),
            target=np.where(asked, target, state.target),
            hit=np.where(asked, hit, state.hit),
            left=np.where(asked, survivors, state.left),
        )
        aims = np.where(asked, target, MISSING)
        record = {"actions": aims, "shots": shots, "shooter": state.shooter, "target": target}
        record |= {"hit": hit, "alive": state.living, "rates": self.each(rates, shots.shape)}
        wins = next_state.over & living & ((survivors == 1) | (self.cap_outcome == "share"))
        rewards = np.where(wins, 1.0 / survivors, 0.0)
        return next_state, Outcome(rewards, ~living | next_state.over, record)

    @cached_property
    def _turns_until(self) -> Array:
        """The turns from each seat (second axis) to every other (first axis), less 1."""
        seats = np.arange(self.players)
        return (seats[:, None] - seats - 1) % self.players

    def _roll(self, state: BattleRoyaleState) -> PerTable:
        count = len(state.rolls)
        if self.max_shots is None and any_true((state.round >= count) & ~state.over):
            raise BadParameter(
                f"{self.name}: chance decides {count} shots of a game without max_shots, and all "
                f"are fired; set max_shots to at most {count}"
            )
        return at(state.rolls, np.minimum(state.round, count - 1))

    def shots_seen(self, state: BattleRoyaleState) -> Array:
        """Return the seats (first axis) whose shot each living player saw since its own, bool."""
        return (state.shot[:, None] >= np.maximum(state.shot, 1)) & state.living

    def known(self) -> Sequence[Fact]:
        n, limit = self.players, np.inf if self.max_shots is None else self.max_shots
        has_seen = once(self.shots_seen)
        shots_seen = lambda name: lambda s: getattr(s, name)[:, None] * has_seen(s)
        living, rank = (lambda s: s.living), (lambda s: s.living.cumsum(axis=0))
        seat_meaning = "own seat, the position in the shooting order from 0"
        shot = "number of seat {}'s shot since the own last turn; 0: none"
        aim = "what it aimed at: a seat, -1 missed on purpose, players nobody"
        return (
            Fact("seat", self.seats, 0, n - 1, seat_meaning),
            Fact("position", rank, 0, n, "own position among the living from 1; 0: out"),
            Fact("shots", lambda s: s.round, 0, limit, "shots so far"),
            Fact("left", lambda s: s.living.sum(axis=0), 0, n, "players left"),
            Fact("shooter", lambda s: s.shooter, 0, n - 1, "seat whose turn it is"),
            Fact("living", living, 0, 1, "1: seat {} is alive", each=True),
            Fact("shot", shots_seen("shot"), 0, limit, shot, each=True),
            Fact("target", shots_seen("target"), MISS, n, aim, each=True),
            Fact("hit", shots_seen("hit"), 0, 1, "1: it hit", each=True),
            Fact("after", shots_seen("left"), 0, n, "players left after it", each=True),
        )

    def hears(self, state: BattleRoyaleState) -> PerPlayer:
        return state.living

    def told(self, state: BattleRoyaleState, seat: int) -> dict[str, Any]:
        if not state.living[seat]:
            blank: dict[str, Any] = dict.fromkeys(("position", "shots", "left", "shooter", "rate"))
            return blank | {"alive": [], "events": []}
        names, living = self.names(), np.flatnonzero(state.living).tolist()
        foes = sorted(np.flatnonzero(self.shots_seen(state)[:, seat]), key=lambda i: state.shot[i])
        return {
            "position": living.index(seat) + 1,
            "rate": self.rates[seat],
            "shots": int(state.round),
            "left": len(living),
            "shooter": names[int(state.shooter)],
            "alive": [{"name": names[other], "rate": self.rates[other]} for other in living],
            "events": [self._event(state, int(other)) for other in foes],
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

    def goal(self, seat: int) -> Goal:
        shared = self.cap_outcome == "share" and self.max_shots is not None
        return Goal("share", "players") if shared else Goal("last", "player")

    def asks(self, state: BattleRoyaleState, seat: int) -> Target:
        names, itself = self.names(), self.self_target == "allowed"
        living = [i for i in range(self.players) if state.living[i] and (itself or i != seat)]
        return Target(
            "target",
            names={names[other]: other for other in living},
            own={} if itself else {names[seat]: seat},
            others={name: i for i, name in enumerate(names) if not state.living[i]},
            nowhere=self.players,
            lenient=self.bad_target == "wasted_shot",
            substring=self.target_match == "substring",
            with_action=self.reply_keys == "action_target",
            published=bare_or_search,
        )

    def picture(self, state: BattleRoyaleState) -> tuple[str, list[str], list[list[str]]]:
        shots = int(state.round)
        limit = "" if self.max_shots is None else f" of at most {self.max_shots}"
        caption = f"{self.title}: shot {shots}{limit}, {int(state.living.sum())} left"
        rows = []
        for seat, name in enumerate(self.names()):
            shot, alive = self._event(state, seat), "alive" if state.living[seat] else "out"
            result = f"at {shot['target'] or 'nobody'}: {'hit' if shot['hit'] else 'missed'}"
            last_shot = f"#{shot['shot']} {'missed on purpose' if shot['on_purpose'] else result}"
            rows.append([name, f"{self.rates[seat]}%", alive, last_shot if shot["shot"] else ""])
        return caption, ["seat", "hits", "state", "last shot"], rows
