"""One generic PettingZoo environment for all rulebooks, in PettingZoo's two forms.

Both sit at a `Table` and look through `Windows`; neither knows any game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from llm_games.codecs import ACTIONS, LONGEST_TEXT, Codec, codec, in_text_space, text_space
from llm_games.errors import BadParameter, IllegalAction, NotReady, unknown
from llm_games.facts import check_choice, check_integer
from llm_games.normalisation import Scale
from llm_games.pictures import POSSIBLE_MODES, RENDER_MODES
from llm_games.questions import Action
from llm_games.rulebook import Array, Outcome, Rulebook
from llm_games.table import Table
from llm_games.view import Sight, View
from llm_games.words import Prompts

OBS_MODES = ("text", "numeric", "both")
MASKS = ("observation", "info")


class Windows:
    """Spaces, observations and unfinished moves of the seats of a table; arguments as of `make`."""

    def __init__(
        self,
        game: Rulebook,
        obs_mode: str | Mapping[str, str] = "text",
        actions: str | Mapping[str, str] = "index",
        prompts: str = "v1",
        prompt_folder: str | None = None,
        reask: int = 0,
        normalize: bool = False,
        masks: str = "observation",
        words: bool = False,
    ) -> None:
        check_integer("reask", reask, 0)
        check_choice("words", words, (False, True))
        check_choice("masks", masks, MASKS)
        check_choice("normalize", normalize, (False, True))
        self.game, self.agents = game, game.names()
        self.seats = {agent: seat for seat, agent in enumerate(self.agents)}
        self.modes = self._each("obs_mode", obs_mode, OBS_MODES, "numeric")
        kinds = self._each("actions", actions, ACTIONS, "index")
        self.codecs = [codec(game, self.seats[a], kind, reask) for a, kind in kinds.items()]
        self.holding = [each for each in self.codecs if type(each).begin is not Codec.begin]
        self.mute = [] if game.core is game else [c.seat for c in self.codecs if not c.speaks]
        self.wordy = any(kind == "text" for kind in kinds.values())
        modes = set(self.modes.values())
        self.masks_apart, self.in_parts = masks == "info", words
        self.has_extras = self.masks_apart or words  # in infos
        free = not any(map(self.shows_mask, self.codecs))  # short ways for most environments
        self._plain = free and modes == {"numeric"} and not self.holding
        self._texts = free and modes == {"text"}
        self._words: Prompts | None = None
        self._wording, self._rules = (prompts, prompt_folder), dict[int, str]()
        if modes != {"numeric"}:
            self.words()
        columns = game.columns()
        self.low = np.array([column.low for column in columns], np.float32)
        self.high = np.array([column.high for column in columns], np.float32)
        self.scale = Scale(columns) if normalize else None
        if normalize:
            self.low, self.high = np.full_like(self.low, -1), np.full_like(self.high, 1)
        self.spaces = {agent: self._space(agent) for agent in self.agents}
        self._text_cache: tuple[Sight | None, dict[int, str]] = None, {}

    def _each(
        self, name: str, value: str | Mapping[str, str], choices: Sequence[str], default: str
    ) -> dict[str, str]:
        if not isinstance(value, (str, Mapping)):
            raise BadParameter(f"{name} must be one of {choices}, or one by agent, got {value!r}")
        chosen = dict.fromkeys(self.agents, value) if isinstance(value, str) else value
        for agent, choice in chosen.items():
            if agent not in self.agents:
                raise unknown("agent", agent, self.agents)
            if choice not in choices:
                raise unknown(name, choice, choices)
        return {agent: chosen.get(agent, default) for agent in self.agents}

    def _space(self, agent: str) -> spaces.Space[Any]:
        mode, codec = self.modes[agent], self.codecs[self.seats[agent]]
        parts: dict[str, spaces.Space[Any]] = {}
        if mode != "text":
            parts["observation"] = spaces.Box(self.low, self.high, dtype=np.float32)
        if self.shows_mask(codec):
            parts["action_mask"] = spaces.Box(0, 1, (int(codec.space.n),), dtype=np.int8)
        if mode != "numeric":
            parts["text"] = text_space()
        return parts["observation"] if list(parts) == ["observation"] else spaces.Dict(parts)

    def shows_mask(self, codec: Codec) -> bool:
        """Observations of a seat with this codec have a mask."""
        return codec.masked and not self.masks_apart

    def extras(self, view: View) -> dict[str, Any]:
        """Return what the infos of a seat have on request: its mask, and its words in parts."""
        codec, extras = self.codecs[view.seat], dict[str, Any]()
        if codec.masked and self.masks_apart:
            extras["action_mask"] = codec.mask(view).astype(np.int8)
        if self.in_parts:
            prompts, question = self.words(), view.question
            extras["words"] = {
                "rules": prompts.rules(view.game, view.seat),
                "report": prompts.report(view),
                "request": prompts.request(view),
                "schema": None if question is None else question.schema(),
                "past": view.game.past_turns,
            }
        return extras

    def begin(self) -> None:
        """Forget unfinished moves: another step has come."""
        for holder in self.holding:
            holder.begin()

    def words(self) -> Prompts:
        """Return the wording, loaded on first use."""
        if self._words is None:
            self._words = Prompts(self.game.name, *self._wording)
        return self._words

    def text(self, view: View) -> str:
        """Return a seat's rules, report and request in words."""
        return self.texts(view.sight, [view.seat])[view.seat]

    def texts(self, sight: Sight, seats: Sequence[int]) -> dict[int, str]:
        """Return seats' texts, see `text`, by seat; rendered once a step."""
        if self._text_cache[0] is not sight:
            self._text_cache = sight, {}
        texts = self._text_cache[1]
        if new := [seat for seat in seats if seat not in texts]:
            words, game = self.words(), sight.game
            if game.core is not game and sight.state.mute.all():
                sight = sight.core  # no seat has words: the text leaves talk out
            for seat, text in zip(new, words.texts(sight, new, self._rules), strict=True):
                texts[seat] = in_text_space(text) if len(text) > LONGEST_TEXT else text
        return texts

    def observations(self, sight: Sight, agents: Sequence[str]) -> dict[str, Any]:
        """Return new observations."""
        seats = self.seats
        if self._texts:
            texts = self.texts(sight, [seats[agent] for agent in agents])
            return {agent: {"text": texts[seats[agent]]} for agent in agents}
        if not self._plain:
            return {agent: self.observation(sight.view(seats[agent])) for agent in agents}
        rows = self.numbers(sight)
        return {agent: rows[seats[agent]] for agent in agents}

    def numbers(self, sight: Sight) -> Array:
        """Return all seats' numbers as observed, a copy, ``(players, columns)``."""
        return self.scaled(sight.numbers.copy())

    def scaled(self, numbers: Array) -> Array:
        """Return numbers ``(..., columns)`` as observed."""
        return self.scale(numbers) if self.scale else numbers

    def observation(self, view: View) -> Any:
        """Return a new observation of a seat."""
        codec, mode = self.codecs[view.seat], self.modes[self.agents[view.seat]]
        parts: dict[str, Any] = {}
        if mode != "text":
            parts["observation"] = self.scaled(codec.shown(view.numbers.copy()))
        if self.shows_mask(codec):
            parts["action_mask"] = codec.mask(view).astype(np.int8)
        if mode != "numeric":
            parts["text"] = self.text(view)
        return parts["observation"] if list(parts) == ["observation"] else parts


def options_of(options: Any) -> Mapping[str, Any]:
    """Check the options of a reset; BadParameter if they are no mapping."""
    if not isinstance(options, (dict, type(None), Mapping)):
        raise BadParameter(f'options must be such as {{"chance": {{...}}}}, got {options!r}')
    return options or {}


class Seated(Protocol):
    """A player on a seat, of which the environment knows what it gave for this step."""

    speaks: bool

    def begin(self, seat: int) -> None:
        """An episode begins; the table was reset."""

    def hear(self) -> None:
        """The table has entered another state."""

    def finish(self) -> Any:
        """Look back at an episode that is over, once."""

    def claim(self, action: Any) -> Action:
        """Return the exact move behind the action it gave; IllegalAction for any other."""


class TableEnv:
    """Base of all forms: text, views, rendering, and moves that come in parts."""

    metadata: dict[str, Any]
    _readings: dict[int, dict[str, Any]]

    def _sit_down(
        self,
        game: Rulebook,
        render_mode: str | None = None,
        max_cycles: int | None = None,
        on_illegal: str = "fallback",
        **windows: Any,
    ) -> None:
        check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        check_choice("on_illegal", on_illegal, ("fallback", "raise"))
        if max_cycles is not None:
            check_integer("max_cycles", max_cycles, 1)
        self.table, self.windows = Table(game), Windows(game, **windows)
        self.game, self.render_mode, self.max_cycles = game, render_mode, max_cycles
        self.strict = on_illegal == "raise"
        self.seated: dict[int, Seated] = {}
        self.possible_agents = list(self.windows.agents)
        low, high = self.windows.low, self.windows.high
        n = game.players
        self.state_space = spaces.Box(np.tile(low, n), np.tile(high, n), dtype=np.float32)
        self.metadata = {
            "name": f"{game.name}_v0",
            "render_modes": list(POSSIBLE_MODES),
            "render_fps": 1,
            "is_parallelizable": not game.turns,
        }

    def _deal(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        for player in self.seated.values():
            player.finish()
        self.table.reset(seed, options_of(options).get("chance"))
        self.agents, self._readings = list(self.possible_agents), {}
        self._open()
        self._next()

    def _open(self) -> None:
        """Tell the talk not to wait for seats without words; those who are seated begin."""
        speakers = {seat: player.speaks for seat, player in self.seated.items()}
        if self.game.core is not self.game:
            unseated = [seat for seat in self.windows.mute if seat not in speakers]
            self.table.hush(unseated + [seat for seat, speaks in speakers.items() if not speaks])
        for seat, player in self.seated.items():
            player.begin(seat)

    def seat_player(self, player: Seated, agent: str) -> None:
        """Let a player sit on an agent's seat, in place of whoever sat there, see `llm_games.sit`.

        Raises:
            NotReady: in the middle of an episode.
        """
        if self._is_playing() and not self._can_reopen():
            raise NotReady(f"{agent} is in the middle of an episode: sit down before it begins")
        seat = self._seat(agent)
        if seat in self.seated:
            self.seated[seat].finish()
        self.seated[seat] = player
        if self._is_playing():
            self.table.reopen()
            self._open()
            self._next()

    def _can_reopen(self) -> bool:
        """Nobody has moved yet."""
        return not (self.table.steps or self._moves)

    def _is_playing(self) -> bool:
        return self.table.sight is not None and bool(self.agents)

    def _next(self) -> None:
        self.windows.begin()
        self._moves: dict[int, Action] = {}
        self._waiting = self.table.ready().asked

    def _take(self, seat: int, action: Any) -> bool:
        """Take an asked seat's action; return whether it made a whole move."""
        sight = self.table.sight
        assert sight is not None
        if seat in self.seated:  # its failed reply is the declared move, as in `play`
            self._moves[seat] = self.seated[seat].claim(action)
            return True
        move = self.windows.codecs[seat].take(View(sight, seat), action)
        if move is None:
            return False
        if self.strict:
            self.table.check({seat: move})
        self._moves[seat] = move
        return True

    def _play(self) -> Outcome:
        talks = self.windows.wordy and self.game.core is not self.game
        spoken = talks and bool(self.table.ready().talking)
        outcome = self.table.step(self._moves)
        for player in self.seated.values():
            player.hear()
        self._readings, codecs = {}, self.windows.codecs
        if self.windows.wordy:  # another move may be played where one broke a rule or was no speech
            actions = self.game.core.in_units(outcome.record["actions"], spoken).tolist()
            for seat, move in self._moves.items():
                if reading := codecs[seat].reading:
                    played = tuple(actions) if isinstance(move, tuple) else actions[seat]
                    self._readings[seat] = reading | {"played": played}
        self._next()
        return outcome

    def _info(self, seat: int, broke: bool, asked: bool) -> dict[str, Any]:
        reading = self.windows.codecs[seat].reading or self._readings.get(seat, {})
        info = {"asked": asked, "broke": broke, **reading}
        return info | self._extras(seat) if self.windows.has_extras else info

    def _extras(self, seat: int) -> dict[str, Any]:
        if not self.windows.has_extras:
            return {}
        return self.windows.extras(self.table.ready().view(seat))

    def observe_text(self, agent: str) -> str:
        """Return what the agent knows, in words, whatever its observation mode."""
        return self.windows.text(self.view(agent))

    def view(self, agent: str) -> View:
        """Return what a policy in this seat sees."""
        return self.table.ready().view(self._seat(agent))

    def _seat(self, agent: str) -> int:
        if agent not in self.windows.seats:
            raise unknown("agent", agent, self.possible_agents)
        return self.windows.seats[agent]

    def state(self) -> Array:
        """Return all seats' numbers in a row."""
        return self.windows.numbers(self.table.ready()).ravel()

    def render(self) -> Any:
        """Return text (``ansi``), pixels, uint8 ``(height, width, 3)``, or print it (``human``)."""
        if self.render_mode is None:
            modes = ", ".join(map(repr, RENDER_MODES))
            raise BadParameter(f"render_mode is None: make the environment with one of {modes}")
        if self.render_mode == "rgb_array":
            return self.table.image()
        picture = self.table.picture()
        if self.render_mode == "ansi":
            return picture
        print(picture, flush=True)
        return None

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def _limit_reached(self) -> bool:
        return self.max_cycles is not None and self._rounds() >= self.max_cycles

    def _rounds(self) -> int:
        """Return the number of rounds played."""
        return int(self.table.state.round) - self.game.core.begun


class _AgentsEnv(TableEnv):
    """Spaces by agent, for both of PettingZoo's forms."""

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's observation space, the same object every time."""
        return self.windows.spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's action space, the same object every time."""
        return self.windows.codecs[self._seat(agent)].space


class SimultaneousGame(_AgentsEnv, ParallelEnv[str, Any, Any]):
    """A game as a `ParallelEnv`; in games of turns, only the asked seats' actions count.

    ``infos[agent]`` has ``asked`` (whether the agent has to move now) and ``broke`` (whether its
    last action was against the rules, so that the game's declared move was played instead); with
    actions in words also the ``outcome`` of the reply, ``why``, and the move that was ``played``.
    Arguments and errors: see `llm_games.make`.
    """

    def __init__(self, game: Rulebook, **settings: Any) -> None:
        self._sit_down(game, **settings)
        self.agents: list[str] = []

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start a game; see `ParallelEnv.reset`. ``options={"chance": {...}}`` gives chance."""
        self._deal(seed, options)
        observations = self.windows.observations(self.table.ready(), self.agents)
        return observations, self._infos(self.agents, [False] * self.game.players)

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play one step; see `ParallelEnv.step`. An action of None means no answer.

        Where a seat's move needs several actions, the others wait and nothing is played.

        Raises:
            NotReady: the game was never reset, or is over.
            IllegalAction: an action outside its space, of an agent that is not there, or missing.
        """
        self.table.ready()
        if not isinstance(actions, (dict, Mapping)):
            raise IllegalAction(f"actions must be a dict, one for each agent, got {actions!r}")
        live = self.agents
        if not live:
            if actions:
                raise NotReady(f"{self.game.name} is over: call reset() to play again")
            return {}, {}, {}, {}, {}
        for agent in actions:
            if agent not in live:
                raise IllegalAction(f"{agent!r} has no move: still playing are {live}")
        names = self.possible_agents
        for seat in self._waiting:
            if names[seat] not in actions:
                raise IllegalAction(f"{names[seat]} has to move, but there is no action for it")
        self._waiting = [s for s in self._waiting if not self._take(s, actions[names[s]])]
        none = np.zeros(len(names))
        outcome = Outcome(none, none > 0, broke=none > 0) if self._waiting else self._play()
        payoffs, done = outcome.rewards.tolist(), outcome.finished.tolist()
        seats = self.windows.seats
        rewards, finished = {a: payoffs[seats[a]] for a in live}, {a: done[seats[a]] for a in live}
        limit = self._limit_reached()
        truncations = {a: limit and not finished[a] for a in live}
        self.agents = [a for a in live if not (finished[a] or truncations[a])]
        observations = self.windows.observations(self.table.ready(), live)
        infos = self._infos(live, outcome.broke.tolist())
        return observations, rewards, finished, truncations, infos

    def _infos(self, agents: Sequence[str], broke: Sequence[bool]) -> dict[str, dict[str, Any]]:
        asked, seats = set(self._waiting), self.windows.seats
        if not (self.windows.wordy or self.windows.has_extras):
            return {a: {"asked": seats[a] in asked, "broke": broke[seats[a]]} for a in agents}
        return {a: self._info(seats[a], broke[seats[a]], seats[a] in asked) for a in agents}


class SequentialGame(_AgentsEnv, AECEnv[str, Any, Any]):
    """A game as an `AECEnv`: the asked seats move one after another, blind to moves of one step.

    A seat whose move needs several actions stays selected. Else as `SimultaneousGame`.
    """

    def __init__(self, game: Rulebook, **settings: Any) -> None:
        super().__init__()
        self._sit_down(game, **settings)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game; see `AECEnv.reset`. ``options={"chance": {...}}`` gives chance."""
        self._deal(seed, options)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {a: self._info(s, False, False) for a, s in self.windows.seats.items()}
        self._skip_agent_selection = None
        self._select()

    def seat_player(self, player: Seated, agent: str) -> None:
        """Do the same, and select whoever is asked first now."""
        super().seat_player(player, agent)
        if self._is_playing():
            for info in self.infos.values():
                info["asked"] = False
            self._select()

    def _select(self) -> None:
        for seat in self._waiting:
            self.infos[self.possible_agents[seat]]["asked"] = True
        first = self._waiting[0] if self._waiting else None
        self.agent_selection = self.agents[0] if first is None else self.possible_agents[first]

    def observe(self, agent: str) -> Any:
        """Return what the agent knows; moves of a step under way are hidden."""
        return self.windows.observation(self.view(agent))

    def step(self, action: Any) -> None:
        """Take the selected agent's action; None of an agent that is done, or gives no answer.

        Raises NotReady or IllegalAction as `SimultaneousGame.step`.
        """
        self.table.ready()
        if not self.agents:
            raise NotReady(f"{self.game.name} is over: call reset() to play again")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        whole = self._take(self.windows.seats[agent], action)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._waiting = self._waiting[whole:]
        if self._waiting:
            self.agent_selection = self.possible_agents[self._waiting[0]]
            seat = self.windows.seats[agent]
            self.infos[agent] |= self.windows.codecs[seat].reading | self._extras(seat)
            return
        outcome, limit = self._play(), self._limit_reached()
        for agent in self.agents:
            seat = self.windows.seats[agent]
            self.rewards[agent] = float(outcome.rewards[seat])
            self.terminations[agent] = bool(outcome.finished[seat])
            self.truncations[agent] = limit and not self.terminations[agent]
            self.infos[agent] = self._info(seat, bool(outcome.broke[seat]), False)
        self._accumulate_rewards()
        self._select()
        self._deads_step_first()
