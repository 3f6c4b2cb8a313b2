"""One generic PettingZoo environment for all rulebooks, in PettingZoo's two forms.

`SimultaneousGame` is a `ParallelEnv`, `SequentialGame` an `AECEnv`. Both sit on a `Table`, which
holds the state of one game; neither knows any game. Every game has both forms.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv

from llm_games.errors import BadParameter, IllegalAction, NotReady, unknown
from llm_games.questions import Action
from llm_games.rulebook import Array, Outcome, Rulebook, check_choice, check_integer
from llm_games.view import Sight, View
from llm_games.words import Prompts

OBS_MODES = ("text", "numeric", "both")
CHARACTERS = frozenset(string.printable)
LONGEST_TEXT = 32_768


class Table:
    """One table of a game: its state, its chance, and what each seat sees.

    Raises:
        BadParameter: an argument outside its range.
        UnknownName: `obs_mode` or `prompts` names what is not there.
    """

    def __init__(
        self,
        game: Rulebook,
        *,
        obs_mode: str | Mapping[str, str] = "text",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        prompts: str = "v1",
        prompt_folder: str | None = None,
        on_illegal: str = "fallback",
    ) -> None:
        check_choice("render_mode", render_mode, (None, "ansi", "human"))
        check_choice("on_illegal", on_illegal, ("fallback", "raise"))
        if max_cycles is not None:
            check_integer("max_cycles", max_cycles, 1)
        self.game, self.agents = game, game.names()
        self.seats = {agent: seat for seat, agent in enumerate(self.agents)}
        self.obs_modes = _modes(obs_mode, self.agents)
        modes = set(self.obs_modes.values())
        # The mode of all seats, where an observation is of one part: what is fast to make.
        self._alike = modes.pop() if len(modes) == 1 and not game.masked else None
        self.on_illegal, self.render_mode = on_illegal, render_mode
        self._wording = (game.name, prompts, prompt_folder)
        self._rules: list[str] | None = None
        if any(mode != "numeric" for mode in self.obs_modes.values()):
            self.rules()
        self.action_spaces = {a: game.space(seat) for a, seat in self.seats.items()}
        self.numbers = spaces.Box(
            np.array([column.low for column in game.columns()], np.float32),
            np.array([column.high for column in game.columns()], np.float32),
        )
        self.observation_spaces = {agent: self._space(agent) for agent in self.agents}
        self.np_random: np.random.Generator | None = None
        self.state: Any = None

    def _space(self, agent: str) -> spaces.Space[Any]:
        mode, action = self.obs_modes[agent], self.action_spaces[agent]
        numbers = spaces.Box(self.numbers.low, self.numbers.high, dtype=np.float32)
        parts: dict[str, spaces.Space[Any]] = {}
        if mode != "text":
            parts["observation"] = numbers
        if self.game.masked and isinstance(action, spaces.Discrete):
            parts["action_mask"] = spaces.Box(0, 1, (int(action.n),), np.int8)
        if mode != "numeric":
            parts["text"] = spaces.Text(LONGEST_TEXT, min_length=0, charset=CHARACTERS)
        return numbers if list(parts) == ["observation"] else spaces.Dict(parts)

    def reset(self, seed: int | None) -> None:
        """Start a game. With a seed, chance starts afresh; without one it goes on."""
        if seed is not None or self.np_random is None:
            self.np_random, _ = seeding.np_random(seed)
        self._enter(self.game.reset(self.np_random))

    def _enter(self, state: Any) -> None:
        """Take a new state; see once who has to move in it, in seat order."""
        self.state, self._sight = state, Sight(self.game, state)
        asked = self.game.asked(state).tolist()
        self.asked = [agent for agent, has_to in zip(self.agents, asked, strict=True) if has_to]

    def ready(self) -> Any:
        """Return the state; raise NotReady if there is none yet."""
        if self.state is None:
            raise NotReady(f"{self.game.name} was never reset: call reset() first")
        return self.state

    def decode(self, agent: str, action: Any) -> Action:
        """Turn an action of a seat's space into one of the rules.

        Raises:
            IllegalAction: it is not in the space.
        """
        return self.game.decode(self.state, self.seats[agent], action)

    def step(self, moves: Mapping[int, Action]) -> Outcome:
        """Play the asked seats' moves. The state is unchanged if this raises."""
        actions = self.game.assemble(self.state, moves)
        if self.on_illegal == "raise":
            broke = np.flatnonzero(self.game.breaks(self.state, actions))
            for seat in broke:
                raise IllegalAction(
                    f"{self.agents[seat]}: {moves.get(int(seat))!r} is against the rules now; "
                    f"legal is {self._wanted(int(seat))}"
                )
        assert self.np_random is not None
        state, outcome = self.game.step(self.state, actions, self.np_random)
        self._enter(state)
        return outcome

    def _wanted(self, seat: int) -> str:
        question = self.game.question(self.state, seat)
        return "nothing" if question is None else question.wanted()

    def view(self, agent: str) -> View:
        """Return what one agent sees, for policies."""
        if agent not in self.seats:
            raise unknown("agent", agent, self.agents)
        self.ready()
        return self._sight.view(self.seats[agent])

    def rules(self) -> list[str]:
        """Return the rules as each seat hears them."""
        if self._rules is None:
            self._prompts = Prompts(*self._wording)
            seats = range(self.game.players)
            self._rules = [self._prompts.rules(self.game, seat) for seat in seats]
        return self._rules

    def texts(self, agents: list[str]) -> dict[str, str]:
        """Return what each of these agents sees, in words: rules, report and request."""
        if not agents:
            return {}
        self.ready()
        rules, texts = self.rules(), {}
        for agent in agents:
            seat = self.seats[agent]
            text = self._prompts.text(self._sight.view(seat), rules[seat])
            texts[agent] = text if text.isascii() else text.encode("ascii", "replace").decode()
        return texts

    def observations(self, agents: list[str]) -> dict[str, Any]:
        """Return new observations, one for each agent."""
        state, modes = self.ready(), self.obs_modes
        if self._alike == "text":
            return {agent: {"text": text} for agent, text in self.texts(agents).items()}
        columns: list[tuple[str, dict[str, Any]]] = []
        if any(modes[agent] != "text" for agent in agents):
            numbers = dict(zip(self.agents, self.game.observe(state), strict=True))
            if self._alike == "numeric":
                return {agent: numbers[agent] for agent in agents}
            columns.append(("observation", {a: numbers[a] for a in agents if modes[a] != "text"}))
        if self.game.masked:
            masks = self.game.mask(state).view(np.int8)
            columns.append(("action_mask", dict(zip(self.agents, masks, strict=True))))
        columns.append(("text", self.texts([a for a in agents if modes[a] != "numeric"])))
        return {a: self._dressed(a, columns) for a in agents}

    def _dressed(self, agent: str, columns: list[tuple[str, dict[str, Any]]]) -> Any:
        parts = {key: values[agent] for key, values in columns if agent in values}
        return parts["observation"] if list(parts) == ["observation"] else parts

    def everything(self) -> Array:
        """Return all seats' numbers in a row, float32 ``(players * columns,)``."""
        return self.game.observe(self.ready()).ravel()

    def everything_space(self) -> spaces.Box:
        """Return the space of `everything`."""
        return spaces.Box(
            np.tile(self.numbers.low, self.game.players),
            np.tile(self.numbers.high, self.game.players),
            dtype=np.float32,
        )

    def picture(self) -> str:
        """Draw the whole table as a spectator sees it."""
        caption, headers, rows = self.game.picture(self.ready())
        widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in (headers, ["-" * width for width in widths], *rows)
        ]
        return "\n".join([caption, *(line.rstrip() for line in lines)])


class _TableEnv:
    """What both forms share: spaces, text, views, rendering."""

    metadata: dict[str, Any]
    max_cycles: int | None

    def _sit_down(self, game: Rulebook, settings: Mapping[str, Any]) -> None:
        self.table = Table(game, **settings)
        self.game, self.render_mode = game, self.table.render_mode
        self.max_cycles = settings.get("max_cycles")
        self.possible_agents = list(self.table.agents)
        self.state_space = self.table.everything_space()
        self.metadata = {
            "name": f"{game.name}_v0",
            "render_modes": ["ansi", "human"],
            "render_fps": 1,
            "is_parallelizable": not game.turns,
        }

    @property
    def np_random(self) -> np.random.Generator | None:
        """The generator of this table's chance."""
        return self.table.np_random

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's observation space, the same object every time."""
        return self.table.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's action space, the same object every time."""
        return self.table.action_spaces[agent]

    def observe_text(self, agent: str) -> str:
        """Return what the agent knows, in words, whatever its observation mode."""
        return self.table.texts([agent])[agent]

    def view(self, agent: str) -> View:
        """Return what a policy in this seat gets to see."""
        return self.table.view(agent)

    def state(self) -> Array:
        """Return all seats' numbers in a row."""
        return self.table.everything()

    def render(self) -> str | None:
        """Return the table as text (``ansi``) or print it (``human``)."""
        if self.render_mode is None:
            raise BadParameter(
                'there is no render_mode: make the environment with "ansi" or "human"'
            )
        picture = self.table.picture()
        if self.render_mode == "ansi":
            return picture
        print(picture, flush=True)
        return None

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def _limit_reached(self) -> bool:
        return self.max_cycles is not None and int(self.table.state.round) >= self.max_cycles


class SimultaneousGame(_TableEnv, ParallelEnv[str, Any, Any]):
    """A game as a `ParallelEnv`; in games of turns, only the asked seats' actions count.

    ``infos[agent]`` has ``asked`` (whether the agent has to move now) and ``broke`` (whether its
    last action was against the rules, so that the game's declared move was played instead).
    Arguments and errors: see `llm_games.make`.
    """

    def __init__(self, game: Rulebook, **settings: Any) -> None:
        self._sit_down(game, settings)
        self.agents: list[str] = []

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start a game; see `ParallelEnv.reset`. `options` are ignored."""
        self.table.reset(seed)
        self.agents = list(self.possible_agents)
        return self.table.observations(self.agents), self._infos(self.agents, None)

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play one step; see `ParallelEnv.step`. An action of None means no answer.

        Raises:
            NotReady: the game was never reset, or is over.
            IllegalAction: an action outside its space, of an agent that is not there, or missing.
        """
        self.table.ready()
        live = self.agents
        if not live:
            if actions:
                raise NotReady(f"{self.game.name} is over: call reset() to play again")
            return {}, {}, {}, {}, {}
        outcome = self.table.step(self._moves(actions))
        seats, paid, done = self.table.seats, outcome.rewards.tolist(), outcome.finished.tolist()
        rewards, finished = {a: paid[seats[a]] for a in live}, {a: done[seats[a]] for a in live}
        limit = self._limit_reached()
        truncations = {a: limit and not finished[a] for a in live}
        self.agents = [a for a in live if not (finished[a] or truncations[a])]
        infos = self._infos(live, outcome)
        return self.table.observations(live), rewards, finished, truncations, infos

    def _moves(self, actions: Mapping[str, Any]) -> dict[int, Action]:
        for agent in actions:
            if agent not in self.agents:
                raise IllegalAction(f"{agent!r} has no move: still playing are {self.agents}")
        moves = {}
        for agent in self.table.asked:
            if agent not in actions:
                raise IllegalAction(f"{agent} has to move, but there is no action for it")
            moves[self.table.seats[agent]] = self.table.decode(agent, actions[agent])
        return moves

    def _infos(self, agents: list[str], outcome: Outcome | None) -> dict[str, dict[str, Any]]:
        asked = set(self.table.asked)
        broke = [False] * self.game.players if outcome is None else outcome.broke.tolist()
        return {a: {"asked": a in asked, "broke": broke[self.table.seats[a]]} for a in agents}


class SequentialGame(_TableEnv, AECEnv[str, Any, Any]):
    """A game as an `AECEnv`: the asked seats move one after another, blind to moves of one step.

    ``infos`` as in `SimultaneousGame`. Arguments and errors: see `llm_games.make`.
    """

    def __init__(self, game: Rulebook, **settings: Any) -> None:
        super().__init__()
        self._sit_down(game, settings)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game; see `AECEnv.reset`. `options` are ignored."""
        self.table.reset(seed)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {"asked": False, "broke": False} for agent in self.agents}
        self._skip_agent_selection = None
        self._ask()

    def _ask(self) -> None:
        """Begin a step of the rules: nobody has moved yet."""
        self._moves: dict[int, Action] = {}
        self._waiting = self.table.asked
        for agent in self._waiting:
            self.infos[agent]["asked"] = True
        self.agent_selection = self._waiting[0] if self._waiting else self.agents[0]

    def observe(self, agent: str) -> Any:
        """Return what the agent knows; moves of a step under way are hidden."""
        if agent not in self.table.seats:
            raise unknown("agent", agent, self.possible_agents)
        return self.table.observations([agent])[agent]

    def step(self, action: Any) -> None:
        """Take the selected agent's action; None of an agent that is done, or gives no answer.

        Raises:
            NotReady: the game was never reset, or is over.
            IllegalAction: the action is outside its space.
        """
        self.table.ready()
        if not self.agents:
            raise NotReady(f"{self.game.name} is over: call reset() to play again")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._moves[self.table.seats[agent]] = self.table.decode(agent, action)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._waiting = self._waiting[1:]
        if self._waiting:
            self.agent_selection = self._waiting[0]
            return
        self._resolve(self.table.step(self._moves))

    def _resolve(self, outcome: Outcome) -> None:
        limit = self._limit_reached()
        for agent in self.agents:
            seat = self.table.seats[agent]
            self.rewards[agent] = float(outcome.rewards[seat])
            self.terminations[agent] = bool(outcome.finished[seat])
            self.truncations[agent] = limit and not self.terminations[agent]
            self.infos[agent] = {"asked": False, "broke": bool(outcome.broke[seat])}
        self._accumulate_rewards()
        self._ask()
        self._deads_step_first()


def _modes(obs_mode: str | Mapping[str, str], agents: list[str]) -> dict[str, str]:
    """Return each agent's observation mode; agents that a mapping leaves out get ``"numeric"``."""
    if isinstance(obs_mode, str):
        obs_mode = dict.fromkeys(agents, obs_mode)
    for agent, mode in obs_mode.items():
        if agent not in agents:
            raise unknown("agent", agent, agents)
        if mode not in OBS_MODES:
            raise unknown("obs_mode", mode, OBS_MODES)
    return {agent: obs_mode.get(agent, "numeric") for agent in agents}
