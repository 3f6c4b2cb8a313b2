"""Talking players that follow rules: ``announcer:KIND``, ``liar:KIND`` and ``proposer``.

Each moves as a rule player does. When it may speak, and moves next, it names one move: by a
sentence in which `Question.named` finds it, or by a symbol, see `symbols`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.players import make_player, rule_of
from llm_games.baselines.rules import RulePolicy
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.questions import Action, Question, Shares
from llm_games.rulebook import Array, Rulebook
from llm_games.view import Sight, View
from llm_games.wrappers.policy import Decided, Decision, Policy, views_of

TRIES = 20  # draws of another move to name
PROPOSAL = "Let us all do what is best for all of us."


class TalkerMemory(NamedTuple):
    """Memory of a talker, of one table or of a batch.

    `plays` and `names` are the memories of the rules that it moves by and names moves by (None: the
    same), then its seeds and its number of moves.
    """

    plays: Any
    names: Any
    seed: Any
    moved: Any


class Talker(Policy):
    """Moves as `plays` does, and names the move of `names`, by default its own, after `before`.

    A liar names that one if it is not its own, else any other.
    """

    speaks = True

    def __init__(
        self,
        name: str,
        plays: RulePolicy,
        names: str | None = None,
        *,
        lies: bool = False,
        before: str = "",
    ) -> None:
        self.name, self.plays, self.names = name, plays, names
        self.lies, self.before = lies, before

    def _named_by(self, game: Rulebook) -> RulePolicy | None:
        if self.names is None or (self.lies and rule_of(self.names, game.name) is None):
            return None
        return rule_player(self.names)

    def start(self, game: Rulebook, seat: int, seed: int) -> TalkerMemory:
        core, other = game.core, self._named_by(game)
        plays = self.plays.start(core, seat, seed)
        return TalkerMemory(plays, other and other.start(core, seat, seed), seed, 0)

    def act(self, view: View, memory: TalkerMemory) -> tuple[Decision, TalkerMemory]:
        """Decide by the rule, or speak; naming a move draws nothing from the move's chance."""
        core, other = view.core, self._named_by(view.game)
        speaks, question = bool(view.sight.talking), core.question
        if speaks and question is None:
            return Decision(view.game.talk.silence), memory
        decision, plays = self.plays.act(core, memory.plays)
        named, names = other.act(core, memory.names) if other else (decision, None)
        if not speaks:
            return decision, TalkerMemory(plays, names, memory.seed, memory.moved + 1)
        noise = Noise(memory.seed).of("lie", memory.moved)
        if view.game.talk.alphabet is None:
            assert question is not None
            return Decision(self._words(question, decision.action, named.action, noise)), memory
        mine, its = (np.asarray(_amount(choice.action, core.seat)) for choice in (decision, named))
        return Decision(int(self._symbols(view.game, mine, its, noise))), memory

    def _words(self, question: Question, own_move: Action, named: Action, noise: Noise) -> str:
        """Return the speech of a player about to make `own_move` that names `named`, or another."""
        if self.lies:
            drawn = (question.sample(noise.of(i)) for i in range(TRIES))
            named = next((move for move in (named, *drawn) if move != own_move), own_move)
            if named == own_move:
                return ""  # there is no other move
        return " ".join(filter(None, (self.before, sentence(question, named))))

    def _symbols(self, game: Any, own_moves: Array, named: Array, noise: Noise) -> Array:
        """Return the spoken symbols, for moves as in `_words`."""
        count = game.talk.alphabet
        if not self.lies:
            return symbols(game.core, named, count)
        mine, named_symbols = (symbols(game.core, moves, count) for moves in (own_moves, named))
        used = int(symbols(game.core, np.asarray(game.bounds()[1]), count))
        if used == 1:
            return np.zeros_like(mine)
        other = 1 + (mine + noise.integers(used - 1)) % used
        return np.where(named_symbols != mine, named_symbols, other)

    def start_batch(
        self, game: Rulebook, mask: Array, seeds: Array, memory: TalkerMemory | None = None
    ) -> TalkerMemory:
        previous = memory or TalkerMemory(None, None, seeds, np.zeros(seeds.shape, np.int64))
        core, other = game.core, self._named_by(game)
        return TalkerMemory(
            self.plays.start_batch(core, mask, seeds, previous.plays),
            other and other.start_batch(core, mask, seeds, previous.names),
            np.where(mask, seeds, previous.seed),
            np.where(mask, 0, previous.moved),
        )

    async def decide_batch(
        self, sight: Sight, mask: Array, memory: TalkerMemory
    ) -> tuple[Decided, TalkerMemory]:
        """Decide as `act` in these cells; in words only at a single table."""
        game: Any = sight.game
        core, other, talking = sight.core, self._named_by(game), game.talking(sight.state)
        moves, speaks = mask & ~talking, mask & talking & core.turn
        actions, next_memory = np.zeros(mask.shape, np.int64), memory
        if moves.any():
            decided, plays = await self.plays.decide_batch(core, moves, memory.plays)
            names = other and (await other.decide_batch(core, moves, memory.names))[1]
            actions = decided.actions
            next_memory = TalkerMemory(plays, names, memory.seed, memory.moved + moves)
        if speaks.any():
            own_moves = (await self.plays.decide_batch(core, speaks, memory.plays))[0].actions
            theirs: Any = other and (await other.decide_batch(core, speaks, memory.names))[0]
            named = theirs.actions if theirs else own_moves
            noise = Noise(memory.seed.astype(np.uint64)).of("lie", memory.moved)
            if game.talk.alphabet is None:
                actions = self._texts(core, speaks, actions, (own_moves, named), noise)
            else:
                spoken = self._symbols(game, own_moves, named, noise)
                actions = np.where(speaks, spoken, actions)
        return Decided(actions), next_memory

    def _texts(
        self, core: Sight, speaks: Array, played: Array, named: tuple[Array, Array], noise: Noise
    ) -> Array:
        """Return the speeches of these cells, and the moves of the others, as an object array."""
        actions = np.where(speaks, "", played.astype(object))
        for (seat, table), view in views_of(core, speaks).items():
            cell = (slice(None), table) if isinstance(view.question, Shares) else (seat, table)
            own_move, other = (_move(values[cell]) for values in named)
            question, chance = view.question, noise.table((seat, table))
            assert question is not None
            actions[seat, table] = self._words(question, own_move, other, chance)
        return actions


def sentence(question: Question, action: Action) -> str:
    return f"I will choose {question.spoken(action)}."


def symbols(game: Rulebook, actions: Array, count: int) -> Array:
    """Return the symbols 1 to `count` that stand for actions, int64 of their shape.

    They go from the lowest that is ever legal; neighbours share one if there are too many.
    """
    low, high = game.bounds()
    together = max(1, -(-(high - low + 1) // count))
    return 1 + np.clip(actions - low, 0, high - low) // together


def _move(values: Array) -> Action:
    """Return a seat's move of a batch as an action; a plan is a column."""
    return tuple(values.tolist()) if values.ndim else int(values)


def _amount(action: Action, seat: int) -> int:
    """Return a move as a number; of a plan, the seat's share."""
    assert not isinstance(action, str), "a speech is no move"
    return action[seat] if isinstance(action, tuple) else action


def rule_player(name: str) -> RulePolicy:
    policy = make_player(name)
    if not isinstance(policy, RulePolicy):
        raise BadParameter(f"only players that follow a rule talk by rule, {name!r} does not")
    return policy


def announcer(value: str) -> Talker:
    return Talker(f"announcer:{value}", rule_player(value))


def liar(value: str) -> Talker:
    """Return a talker that promises its part of the common optimum, or names another move."""
    return Talker(f"liar:{value}", rule_player(value), "cooperative", lies=True)


def proposer(value: str) -> Talker:
    """Return a talker that proposes the common optimum, and does its part by default."""
    name = f"proposer:{value}" if value else "proposer"
    return Talker(name, rule_player(value or "cooperative"), "cooperative", before=PROPOSAL)
