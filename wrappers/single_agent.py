"""One learner at a table of fixed players, as a Gymnasium environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from llm_games.arrays import any_true, tall
from llm_games.env import TableEnv
from llm_games.errors import BadParameter, NotReady, unknown
from llm_games.facts import check_integer
from llm_games.noise import Noise
from llm_games.pictures import POSSIBLE_MODES
from llm_games.registry import rulebook
from llm_games.rulebook import Array, PerPlayer, PerTable, Rulebook
from llm_games.wrappers.play import policy_of
from llm_games.wrappers.policy import Note, Policy, RandomPolicy
from llm_games.wrappers.seats import Seats, moves_of
from llm_games.wrappers.together import run_sync

LONGEST_WAIT = 10_000  #: steps without the learner's move after which a game hangs
MOVING = ("rotate", "random")  #: instead of a seat: another one in each episode
Regret = Callable[[Rulebook, Mapping[str, Array]], PerPlayer]
"""``regret(game, record)`` of a step, in the game's own payoffs, ``(players, *batch)``."""


class Seating(NamedTuple):
    """The learner's seat in each episode, and the seats of the `policies` around it.

    `seat` is a number, or one of `MOVING`: ``"rotate"`` begins at the given seed modulo the number
    of seats, and goes on by one; ``"random"`` draws one from the episode's seed. `others` are
    indexes into `policies`, in the order of the other seats.
    """

    players: int
    seat: int | str
    policies: list[Policy]
    others: list[int]

    def seats(self, seeds: Any, last_seats: Any) -> PerTable:
        """Return the learner's seats by seed, after `last_seats` (-1: the seed was given)."""
        seeds = np.asarray(seeds, np.uint64)
        if self.seat == "random":
            drawn = Noise(seeds if seeds.ndim else int(seeds)).of("learner").integers(self.players)
            return np.asarray(drawn)
        if self.seat == "rotate":
            begins = (seeds % self.players).astype(np.int64)
            return np.where(np.less(last_seats, 0), begins, np.add(last_seats, 1) % self.players)
        return np.full(seeds.shape, self.seat)

    def sits(self, seats: PerTable) -> PerPlayer:
        """Return the index of the policy in each seat, ``(players, *batch)``; -1 is the learner."""
        each = tall(np.arange(self.players), seats.shape)
        index = np.where(each == seats, self.players - 1, each - (each > seats))
        return np.array([*self.others, -1])[index]


def seating(game: Rulebook, seat: Any, opponents: Any = None) -> Seating:
    """Return the seating of a learner; `opponents` and what is raised as of `SingleAgentEnv`."""
    if isinstance(seat, str) and seat not in MOVING:
        last = game.players - 1
        raise BadParameter(f'seat must be 0 to {last}, "rotate" or "random", got {seat!r}')
    if not isinstance(seat, str):
        check_integer("seat", seat, 0, game.players - 1)
        seat = int(seat)
    count = game.players - 1
    opponents = RandomPolicy() if opponents is None else opponents
    if isinstance(opponents, Mapping):
        opponents = _by_seat(game, seat, opponents)
    if isinstance(opponents, str):
        raise BadParameter(f"opponents must be policies: make_player({opponents!r})")
    if not isinstance(opponents, list | tuple):
        return Seating(game.players, seat, [policy_of(opponents)] if count else [], [0] * count)
    if len(opponents) != count:
        label = "the learner's seat" if isinstance(seat, str) else f"seat {seat}"
        raise BadParameter(
            f"opponents must be one policy or {count} (all seats but {label}), got {len(opponents)}"
        )
    # One that sits in several seats is one policy.
    distinct = {id(opponent): opponent for opponent in opponents}
    policies = [policy_of(opponent) for opponent in distinct.values()]
    return Seating(game.players, seat, policies, [[*distinct].index(id(o)) for o in opponents])


def _by_seat(game: Rulebook, seat: int | str, named: Mapping[Any, Any]) -> list[Any]:
    """Return players given by seat or name in the order of the seats, each named once."""
    if isinstance(seat, str):
        raise BadParameter(f"opponents by seat need a learner's seat by number, not {seat!r}")
    names, players_by_seat = game.names(), dict[int, Any]()
    for key, player in named.items():
        if key not in names and not (type(key) is int and 0 <= key < game.players):
            raise unknown("seat", key, names)
        index = names.index(key) if isinstance(key, str) else key
        if index == seat or index in players_by_seat:
            owner = "the learner" if index == seat else "another opponent"
            raise BadParameter(f"opponents: {owner} sits in {names[index]}, seat {index}, already")
        players_by_seat[index] = player
    wanted = [index for index in range(game.players) if index != seat]
    missing = [names[index] for index in wanted if index not in players_by_seat]
    if missing:
        raise BadParameter(f"opponents: nobody sits in {', '.join(missing)}; name a player for it")
    return [players_by_seat[index] for index in wanted]


class SingleAgentEnv(TableEnv, gymnasium.Env[Any, Any]):
    """A game in which one seat learns and the others are played by policies.

    Observations and rewards are the learner's own. An episode ends when the learner has nothing
    more to do. Rewards of steps in which it is not asked are added to its next one; so are those
    before its first. If the episode ends before the learner was ever asked, the first `step`, of
    any action, says so. Other players look back at a game that is over, and recall their notes in
    the next, as in `play`.

    ``infos`` have

    * ``asked``: whether the learner has to move now; if not, index 0 alone is legal,
    * ``seat``: where it sits,
    * ``payoff``: what it earned in this episode so far,
    * ``broke``: whether its move broke a rule, so that the declared one was played instead,
    * ``action``, if a move was played: as it was, in the rules' own units; of a plan, its own
      share, and ``plan`` has all, int64 ``(players,)``,
    * ``regret``, if a move was played and `regret` is given: that of the step,
    * ``opponents``, if some were asked as models since: how often a decision had which outcome,
    * with actions in words also ``outcome`` and ``why``, see `llm_games.make`.

    Args:
        game: a rulebook, or a game's name with its `parameters`.
        seat: the learner's seat; ``"rotate"`` or ``"random"``: another in each episode, see
            `Seating`.
        opponents: one policy for all other seats, or one for each of them in seat order (around
            a learner that moves), or by seat or agent; also as clients or plain functions, see
            `player_of`. The default plays at random.
        obs_mode: ``"numeric"`` (default), ``"text"`` or ``"both"``.
        regret: what each seat could have gained in a step, ``regret(game, record)``, such as
            `llm_games.baselines.regret.regret`; None: infos have none.
        max_episode_steps: truncate after so many steps of the learner, as Gymnasium's `TimeLimit`.
        actions, reask, normalize, masks, words, prompts, prompt_folder: see `llm_games.make`,
            also for what is raised.
        render_mode, max_cycles, on_illegal, parameters: the same.
    """

    metadata: dict[str, Any] = {"render_modes": [*POSSIBLE_MODES], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        game: str | Rulebook,
        *,
        seat: int | str = 0,
        opponents: Any = None,
        obs_mode: str = "numeric",
        actions: str = "index",
        reask: int = 0,
        normalize: bool = False,
        masks: str = "observation",
        words: bool = False,
        regret: Regret | None = None,
        render_mode: str | None = None,
        max_cycles: int | None = None,
        max_episode_steps: int | None = None,
        prompts: str = "v1",
        prompt_folder: str | None = None,
        on_illegal: str = "fallback",
        **parameters: Any,
    ) -> None:
        rules = rulebook(game, **parameters)
        self.seating = seating(rules, seat, opponents)
        self.actions, self.obs_mode, self.normalize = actions, obs_mode, normalize
        self.regret, self.max_episode_steps = regret, max_episode_steps
        if max_episode_steps is not None:
            check_integer("max_episode_steps", max_episode_steps, 1)
        mine = rules.names() if isinstance(seat, str) else [rules.names()[seat]]
        self._sit_down(
            rules,
            render_mode,
            max_cycles,
            on_illegal,
            obs_mode=dict.fromkeys(mine, obs_mode),
            actions=dict.fromkeys(mine, actions),
            prompts=prompts,
            prompt_folder=prompt_folder,
            reask=reask,
            normalize=normalize,
            masks=masks,
            words=words,
        )
        self._take_seat(0 if isinstance(seat, str) else seat)
        self.observation_space = self.windows.spaces[self.agent]
        self.action_space = self.codec.space
        if any(self.windows.codecs[rules.names().index(a)].space != self.codec.space for a in mine):
            raise BadParameter(f"{rules.name}: seats have different actions; sit in one of them")
        self._notes: dict[int, Sequence[Note]] = {}

    def _take_seat(self, seat: int) -> None:
        self.seat, self.agent = seat, self.game.names()[seat]
        self.codec = self.windows.codecs[seat]
        places = self.seating.sits(np.asarray(seat)).tolist()
        others = {s: self.seating.policies[k] for s, k in enumerate(places) if k >= 0}
        self.seats = Seats(self.table, others)

    @property
    def opponents(self) -> Mapping[int, Policy]:
        """The other players by seat."""
        return self.seats.policies

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a game, with ``options={"chance": {...}}``, up to where the learner is asked."""
        if seed is not None:
            check_integer("seed", seed, 0)
        super().reset(seed=None if seed is None else int(seed))
        first = seed is not None or self.table.sight is None
        self._done = True  # until the others have moved
        self._deal(seed, options)
        self._move(-1 if first else self.seat)
        self.seats.start(self._notes)
        if self.game.core is not self.game:  # others may be asked first, since some have no words
            self._next()
        self._broke, self._reward, self._payoff = False, 0.0, 0.0
        self._owed = self._finished = self._looked_back = False
        self._steps, self._played = 0, dict[str, Any]()
        self._outcomes: Counter[str] = Counter()
        recalled = self._notes  # once more, if a call fails now
        self._play_on()
        self._notes = {} if self._notes is recalled else self._notes
        self._done = False
        return self._observation(), self._infos()

    def _open(self) -> None:
        """The others' words are their own; whose seat is the learner's is known later."""

    def _is_playing(self) -> bool:
        return self.table.sight is not None and not self._done

    def _can_reopen(self) -> bool:
        return False  # the others may have moved

    def _move(self, previous_seat: int) -> None:
        """Take the seat of this episode; notes stay with players who keep their seat."""
        seat = int(self.seating.seats(self.table.seed, previous_seat))
        if seat != self.seat:
            old_opponents = self.opponents
            self._take_seat(seat)
            here = self.opponents
            self._notes = {s: n for s, n in self._notes.items() if here.get(s) is old_opponents[s]}
        speaks = seat not in self.windows.mute
        for player in self.seated.values():
            self.seated, speaks = {seat: player}, player.speaks
        if not speaks:
            self.table.hush([seat])
        if self.seated:
            self.seated[seat].begin(seat)

    @property
    def _ended(self) -> bool:
        return self._finished or self._limit_reached()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the learner's action, if its move is whole, and on until it is asked again or done.

        Raises:
            NotReady: the game was never reset, or is over for the learner.
            IllegalAction: the action is outside its space.
            ClientError: another player's call brought no completion. The learner's action was
                taken, whatever the next one is: the next `step` asks that player again.
        """
        self.table.ready()
        if self._done:
            raise NotReady(f"{self.game.name} is over for the learner: call reset()")
        if not self._owed:
            self._broke, self._played = False, {}
            if not self._ended and not self._take(self.seat, action):
                self._done = late = self._late()
                return self._observation(), 0.0, False, late, self._infos()
            self._owed = True
        self._play_on()
        late, ended, self._owed = self._late(), self._ended, False
        self._done = ended or late
        reward, self._reward = self._reward, 0.0
        truncated = late or (ended and not self._finished)
        return self._observation(), reward, self._finished, truncated, self._infos()

    def _late(self) -> bool:
        """Count a step; return whether it is the last of those that an episode may have."""
        self._steps += 1
        return self.max_episode_steps is not None and self._steps >= self.max_episode_steps

    def action_masks(self) -> Array:
        """Return the learner's legal actions, bool, for learners that mask (MaskablePPO)."""
        self.codec.need_masks()
        return self.codec.mask(self.view(self.agent))

    def render(self) -> Any:
        """Return the table as text or pixels (``rgb_array``), or print it (``human``)."""
        return super().render() if self.render_mode else self.table.picture()

    def _observation(self) -> Any:
        return self.windows.observation(self.view(self.agent))

    def _infos(self) -> dict[str, Any]:
        info = {
            "asked": self.seat in self.table.asked,
            "broke": self._broke,
            "payoff": self._payoff,
            "seat": self.seat,
            **self._played,
            **self._extras(self.seat),
        }
        if self._outcomes:
            info["opponents"], self._outcomes = dict(self._outcomes), Counter()
        return info | self.codec.reading

    def _play_on(self) -> None:
        """Play steps until the learner is asked, or done; also resumes after a failed call."""
        for _ in range(LONGEST_WAIT):
            moved = self.seat in self._moves
            asked = self.seat in self.table.asked and not moved
            if asked or self._ended:
                break
            decisions = self.seats.ask_now()
            models = (decision for decision in decisions.values() if decision.attempts)
            self._outcomes.update(decision.outcome for decision in models)
            self._moves |= moves_of(decisions)
            previous_state, reading = self.table.state, self.codec.reading
            outcome = self._play()
            reward = float(outcome.rewards[self.seat])
            self._reward, self._payoff = self._reward + reward, self._payoff + reward
            self._finished = bool(outcome.finished[self.seat])
            if moved:
                self._broke = bool(outcome.broke[self.seat])
                self._played = self._move_info(previous_state, outcome.record) | reading
            self.seats.hear()
        else:
            raise BadParameter(f"{self.game.name}: nobody ends the game; set max_cycles")
        if self.table.state.over and not self._looked_back:
            last_decisions = run_sync(self.seats.finish()) if self.seats.look_back else {}
            self._looked_back = True
            self._notes = {seat: decision.notes for seat, decision in last_decisions.items()}

    def _move_info(self, previous_state: Any, record: Mapping[str, Array]) -> dict[str, Any]:
        spoken = any_true(self.game.talking(previous_state))
        actions = self.game.core.in_units(record["actions"], spoken).tolist()
        infos: dict[str, Any] = {"action": actions[self.seat]}
        if self.game.division is not None and any_true(self.game.sharers(previous_state)):
            infos["plan"] = np.array(actions, np.int64)
        if self.regret is not None and not spoken:
            infos["regret"] = float(self.regret(self.game.core, record)[self.seat])
        return infos
