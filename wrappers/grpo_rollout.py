"""A language model learns in one seat of a game, by TRL's GRPO.

``GRPOTrainer(..., reward_funcs=score, train_dataset=games(1000), rollout_func=GameRollout(...))``:
a row of the data is the seed of a game, and the trainer's group of a row plays it with the same
chance. It needs the extra ``trl``.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from llm_games.errors import BadParameter, unknown
from llm_games.facts import check_integer, check_number
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.replies import Finish
from llm_games.rulebook import Array, Rulebook
from llm_games.table_batch import Tables
from llm_games.view import Sight
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.clients.base import Chat, Completion, ContextOverflow, Request
from llm_games.wrappers.clients.transformers import encode
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.policy import Decision, added, assembled, views_of
from llm_games.wrappers.single_agent import LONGEST_WAIT, Regret, seating
from llm_games.wrappers.vector_env import regret_of

CREDITS = ("decision", "conversation")
TRIES = 100  # games looked through, from a seed on, for one in which the learner decides
WHOLE = {"memory": "full", "remember": "replies", "notices": True}  # a chat grows at its end


def kept_whole(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a player with those of `WHOLE`; BadParameter if one of them is another."""
    for name, value in WHOLE.items():
        if settings.get(name, value) != value:
            fault = f"a conversation that is learned from as a whole has {name} = {value!r}"
            raise BadParameter(f"{name} = {settings[name]!r}: {fault}")
    return {**settings, **WHOLE}


# -- replies of the model --------------------------------------------------------------------------


class GeneratedReply(NamedTuple):
    """One reply of the learner, in the tokens that were read and drawn, with the chat before it.

    `chances` are the tokens' log-probabilities, None where the trainer has none.
    """

    prompt: list[int]
    tokens: list[int]
    chances: list[float] | None
    completion: Completion
    messages: Chat


class LearnerTurn(NamedTuple):
    """A decision of the learner after so many steps, with its replies, one unless asked again."""

    replies: list[GeneratedReply]
    decision: Decision
    step: int


@dataclass
class LearnerGame:
    """A game of the learner: its turns, and what each step paid."""

    seed: int
    turns: list[LearnerTurn] = field(default_factory=list)
    payoffs: list[float] = field(default_factory=list)  # by step, in the game's own payoffs
    rewards: list[float] = field(default_factory=list)  # by step, what is learned from

    @property
    def payoff(self) -> float:
        return sum(self.payoffs)

    @property
    def legal(self) -> float:
        valid = [turn.decision.outcome == "valid" for turn in self.turns]
        return sum(valid) / len(valid) if valid else 1.0

    def to_go(self, turn: int, discount: float) -> float:
        """Return the rewards from a turn on, each discounted by the turns in between."""
        value, end = 0.0, len(self.rewards)
        for later in reversed(self.turns[turn:]):
            value, end = sum(self.rewards[later.step : end]) + discount * value, later.step
        return value


@types.coroutine
def _reply(request: Request) -> Generator[Request, Completion, Completion]:
    """Hand the request to whoever drives the coroutine, and return its completion."""
    return (yield request)


class DrivenClient:
    """A client that hands each request to whoever drives the coroutine of its player."""

    def __init__(self, name: str = "learner") -> None:
        self.name = name

    async def complete(self, request: Request) -> Completion:
        return await _reply(request)

    async def close(self) -> None:
        """Nothing to let go of."""


# -- rollouts --------------------------------------------------------------------------------------


class GameRollout:
    """Games in which the model of a trainer plays one seat: the `rollout_func` of `GRPOTrainer`.

    All games of a step are played together, all their replies drawn in one call of the trainer's
    own generation (with vLLM too). Tokens are learned from as they were drawn. With `credit`
    ``"decision"`` a sample is one decision, scored by the rewards from there on: for each group a
    game is played first, one of its decisions is drawn, and each of the group plays on from that
    very situation. With ``"conversation"`` it is a whole game in one chat, scored by all its
    rewards, in which only the model's own tokens are learned from (`env_mask`); the model's chat
    template must keep what was said before.

    Args:
        game: a rulebook, or a game's name with its `parameters`.
        seat, opponents: as of `SingleAgentEnv`; ``"rotate"`` is the seed modulo the seats.
        credit: one of `CREDITS`.
        regret: if given, the reward of a step is minus the learner's regret in it; else its payoff.
        discount: of rewards, for each own decision between.
        penalty: the cost of a decision without a legal reply beside the rules', in payoffs.
        max_steps: the most steps of a game; needed where it has no limit of its own.
        player: settings of `LLMPolicy`, such as ``{"prompts": "v2", "reasoning": True}``. By
            default a decision is one reply, ``max_attempts=1``.

    Raises:
        BadParameter, UnknownName: an argument is not one of these.
    """

    def __init__(
        self,
        game: str | Rulebook,
        *,
        seat: int | str = "rotate",
        opponents: Any = None,
        credit: str = "decision",
        regret: Regret | None = None,
        discount: float = 1.0,
        penalty: float = 0.0,
        max_steps: int | None = None,
        player: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        self.game = rulebook(game, **parameters)
        self.seating = seating(self.game, seat, opponents)
        if credit not in CREDITS:
            raise unknown("credit", credit, CREDITS)
        check_number("discount", discount, 0)
        if discount > 1:
            raise BadParameter(f"discount must be from 0 to 1, got {discount!r}")
        check_number("penalty", penalty, 0)
        if max_steps is not None:
            check_integer("max_steps", max_steps, 1)
        elif self.game.length() is None:
            raise BadParameter(f"{self.game.name} may never end: give max_steps, such as 1000")
        self.credit, self.regret, self.max_steps = credit, regret, max_steps
        self.discount, self.penalty = discount, penalty
        settings = {"max_attempts": 1, **(player or {})}
        if credit == "conversation":
            settings = kept_whole(settings)
        self.player = LLMPolicy(DrivenClient(), **settings)

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """Return one sample for each prompt, as `GRPOTrainer` takes them.

        Beside them stand, by sample, ``score``, ``payoff`` of the whole game and ``legal``.

        Raises:
            BadParameter: prompts are not of `games`, a group is of one, the chat template drops
                what was said, or opponents do not play alike when they are asked again.
            ContextOverflow: a chat has become too long for the model.
            ClientError: an opponent's call brought no completion, `BudgetExceeded` too.
        """
        groups = [(seed, len([*same])) for seed, same in groupby(map(_seed, prompts))]
        alone = [seed for seed, size in groups if size < 2]
        if alone and trainer.model.training:
            raise BadParameter(
                f"the group of seed {alone[0]} is of one, which has nothing to be compared with: "
                "num_generations >= 2, and a batch of whole groups on every process"
            )
        if self.credit == "decision":
            return self._decisions(groups, trainer)
        played = self._deciding([seed for seed, size in groups for _ in range(size)], trainer)
        return self._rows(played, [*map(_whole, played)], [0] * len(played))

    def _decisions(self, groups: Sequence[tuple[int, int]], trainer: Any) -> dict[str, Any]:
        from torch import randint

        trunks = self._deciding([seed for seed, _ in groups], trainer)
        picks = [int(randint(len(trunk.turns), ())) for trunk in trunks]
        chosen = zip(groups, trunks, picks, strict=True)
        rows = [(trunk, pick) for (_, size), trunk, pick in chosen for _ in range(size)]
        starts = [trunk.turns[:pick] for trunk, pick in rows]
        played, places = self.play([t.seed for t, _ in rows], trainer, starts), [k for _, k in rows]
        if any(len(game.turns) <= index for game, index in zip(played, places, strict=True)):
            raise BadParameter(
                f"{self.game.name}: opponents did not play alike when they were asked again; give "
                'those that ask models samples, client={"samples": 4}'
            )
        replies = [game.turns[index].replies[0] for game, index in zip(played, places, strict=True)]
        samples = [(reply.prompt, reply.tokens, reply.chances, None) for reply in replies]
        return self._rows(played, samples, places)

    def _deciding(self, seeds: Sequence[int], trainer: Any) -> list[LearnerGame]:
        """Play games in which the learner decides: of each seed, or of one derived from it."""
        played = self.play(seeds, trainer)
        for attempt in range(1, TRIES):
            empty = [index for index, game in enumerate(played) if not game.turns]
            if not empty:
                return played
            others = [int(Noise(seeds[index]).of("again", attempt).seed()) for index in empty]
            for index, game in zip(empty, self.play(others, trainer), strict=True):
                played[index] = game
        raise BadParameter(f"{self.game.name}: the learner has nothing to decide in {TRIES} games")

    def _rows(
        self, played: Sequence[LearnerGame], samples: Sequence[Any], places: Sequence[int]
    ) -> dict[str, Any]:
        """Return samples as TRL has them, of the turns from these places on."""
        prompts, tokens, chances, masks = zip(*samples, strict=True)
        rows: dict[str, Any] = {
            "prompt_ids": list(prompts),
            "completion_ids": list(tokens),
            "logprobs": None if chances[0] is None else list(chances),
            "score": [g.to_go(k, self.discount) for g, k in zip(played, places, strict=True)],
            "payoff": [game.payoff for game in played],
            "legal": [game.legal for game in played],
        }
        odd = [game.seed for game, s in zip(played, rows["score"], strict=True) if not isfinite(s)]
        if odd:
            raise BadParameter(f"{self.game.name}: what seed {odd[0]} pays is no finite number")
        return rows if masks[0] is None else rows | {"env_mask": list(masks)}

    # -- playing -----------------------------------------------------------------------------------

    def play(
        self, seeds: Sequence[int], trainer: Any, starts: Sequence[Sequence[LearnerTurn]] = ()
    ) -> list[LearnerGame]:
        """Play a game of each seed; `starts` are turns with which each begins, replayed."""
        game, every = self.game, np.ones(len(seeds), np.bool_)
        tables, seat = Tables(game, len(seeds)), self.seating.seats(np.array(seeds, np.uint64), -1)
        sits = self.seating.sits(seat)
        seats = BatchSeats(tables, self.seating.policies, sits)
        tables.reset([int(seed) for seed in seeds])
        seats.start(every)
        played = [LearnerGame(int(seed)) for seed in seeds]
        prefix_turns = [deque(turns) for turns in starts or [()] * len(played)]
        table = _GroupTable(self, trainer, played, prefix_turns)
        table.start(seat)
        done = ~every
        for _ in range(self.max_steps or game.length() or LONGEST_WAIT):
            sight = tables.ready()
            turn = sight.turn & ~done
            moves = table.decide(sight, turn & (sits < 0))
            actions = added(moves, seats.ask_now(turn & (sits >= 0)))
            part = np.flatnonzero(~done)
            talking = sight.talking[part]
            outcome = tables.step(actions, None if len(part) == len(seeds) else part)
            seats.hear(~done)
            row = seat[part], np.arange(len(part))
            lost = None
            if self.regret is not None:
                lost = regret_of(game, self.regret, outcome, talking)[row] * turn[seat[part], part]
            self._pay(played, part, outcome.rewards[row], lost)
            done[part] = outcome.finished[row]
            if done.all():
                break
        return played

    def _pay(
        self, played: list[LearnerGame], part: Array, payoffs: Array, lost: Array | None
    ) -> None:
        rewards = payoffs if lost is None else -lost
        for index, payoff, reward in zip(part.tolist(), payoffs.tolist(), rewards, strict=True):
            game = played[index]
            decided_now = game.turns and game.turns[-1].step == len(game.payoffs)
            is_bad = decided_now and game.turns[-1].decision.outcome != "valid"
            game.payoffs.append(payoff)
            game.rewards.append(float(reward) - self.penalty * bool(is_bad))


class _GroupTable:
    """The learner in games that are played together: its memories, and how it is asked."""

    def __init__(
        self,
        rollout: GameRollout,
        trainer: Any,
        played: list[LearnerGame],
        starts: list[deque[LearnerTurn]],
    ) -> None:
        self.player, self.whole = rollout.player, rollout.credit == "conversation"
        self.game, self.trainer, self.played, self.starts = rollout.game, trainer, played, starts
        self.tokenizer, self.settings = trainer.processing_class, trainer.chat_template_kwargs
        self.ends = {*trainer.eos_token_ids}
        self.memories: dict[int, Any] = {}

    def start(self, seats: Array) -> None:
        for index, (game, seat) in enumerate(zip(self.played, seats.tolist(), strict=True)):
            seed = int(Noise(game.seed).of("seat", seat).seed())
            self.memories[index] = self.player.start(self.game, seat, seed)

    def decide(self, sight: Sight, mask: Array) -> Array:
        """Decide in these cells, bool ``(players, tables)``, and return the moves of all."""
        views = views_of(sight, mask)
        work = {cell[1]: self.player.decide(v, self.memories[cell[1]]) for cell, v in views.items()}
        first_steps = {index: len(self.played[index].payoffs) for index in work}
        turns = {index: self.starts[index].popleft() for index in work if self.starts[index]}
        outcomes = self._driven(work, {p: deque(turn.replies) for p, turn in turns.items()})
        moves = {}
        for cell in views:
            replies, (decision, memory) = outcomes[cell[1]]
            self.memories[cell[1]] = memory
            self.played[cell[1]].turns.append(LearnerTurn(replies, decision, first_steps[cell[1]]))
            moves[cell] = decision.action
        return assembled(mask, views, moves)

    def _driven(
        self,
        work: Mapping[int, Coroutine[Any, Any, Any]],
        starts: Mapping[int, deque[GeneratedReply]],
    ) -> dict[int, tuple[list[GeneratedReply], Any]]:
        """Run coroutines that wait for nothing but replies, and answer all of them together."""
        replies: dict[int, list[GeneratedReply]] = {index: [] for index in work}
        answers: dict[int, Completion | None] = dict.fromkeys(work)
        outcomes = {}
        try:
            while answers:
                asked = {}
                for index, answer in answers.items():
                    try:
                        asked[index] = work[index].send(answer)
                    except StopIteration as done:
                        outcomes[index] = replies[index], done.value
                for index, reply in self._answered(asked, starts).items():
                    replies[index].append(reply)
                answers = {index: replies[index][-1].completion for index in asked}
        finally:
            for coroutine in work.values():
                coroutine.close()
        return outcomes

    def _answered(
        self, asked: Mapping[int, Request], starts: Mapping[int, deque[GeneratedReply]]
    ) -> dict[int, GeneratedReply]:
        """Return replies: those that are known, and of all others what the model says now."""
        old = {index: starts[index].popleft() for index in asked if starts.get(index)}
        new = {index: request for index, request in asked.items() if index not in old}
        if not new:
            return old
        ids = [self._ids(index, request) for index, request in new.items()]
        drawn, chances = self.trainer._generate_single_turn(ids, None, {}, 1)
        for index, prompt, tokens, token_chances in zip(
            new, ids, drawn, chances or [None] * len(ids), strict=True
        ):
            text = self.tokenizer.decode(tokens, skip_special_tokens=True)
            finish: Finish = "stop" if tokens[-1] in self.ends else "length"
            reply = Completion(
                text, finish, len(prompt), len(tokens), model=self.player.client.name
            )
            chat = new[index].messages
            old[index] = GeneratedReply(prompt, [*tokens], token_chances, reply, chat)
        return old

    def _ids(self, index: int, request: Request) -> list[int]:
        """Return a prompt in tokens; in a conversation what was read and said so far stays."""
        turns = self.played[index].turns
        if self.whole and turns:
            last = turns[-1].replies[-1]
            ids = [*last.prompt, *last.tokens, *self._since(last, request.messages)]
        else:
            ids = encode(self.tokenizer, request.messages, **self.settings)
        config = self.trainer.model.config
        longest = getattr(config, "max_position_embeddings", None) or 2**31
        if len(ids) + self.trainer.max_completion_length > longest:
            raise ContextOverflow(
                f"{self.game.name}: a chat of {len(ids)} tokens has no room for a reply of "
                f"{self.trainer.max_completion_length}: the model takes {longest}. Fewer rounds, a "
                'smaller memory, or credit = "decision"'
            )
        return ids

    def _since(self, last: GeneratedReply, messages: Chat) -> list[int]:
        """Return the tokens between the model's last reply and its next."""
        text = messages[-1]["content"]
        if len(messages) == len(last.messages):  # its reply was empty, and is no message
            text = text.removeprefix(last.messages[-1]["content"]).lstrip()
        sample_chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        begin = _templated(self.tokenizer, sample_chat, **self.settings)
        both = [*sample_chat, {"role": "user", "content": text}]
        full = _templated(self.tokenizer, both, add_generation_prompt=True, **self.settings)
        ends = [index for index, token in enumerate(begin) if token in self.ends]
        begin = begin[: ends[-1] + 1] if ends else begin
        if full[: len(begin)] != begin:
            raise BadParameter(
                "the model's chat template drops what was said before, so that a game is no one "
                'conversation: credit = "decision", or another template'
            )
        ended = last.tokens[-1] in self.ends
        return [*([] if ended or not ends else [begin[-1]]), *full[len(begin) :]]


def _templated(tokenizer: Any, chat: Any, **settings: Any) -> list[int]:
    text = tokenizer.apply_chat_template(chat, tokenize=False, **settings)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _whole(game: LearnerGame) -> tuple[list[int], list[int], list[float] | None, list[int]]:
    """Return a game's chat as one sample: first prompt, later tokens, the mask of replies."""
    replies = [part for turn in game.turns for part in turn.replies]
    prompt, last = replies[0].prompt, replies[-1]
    tokens = [*last.prompt[len(prompt) :], *last.tokens]
    mask, chances = [0] * len(tokens), [0.0] * len(tokens)
    for part in replies:
        begin = len(part.prompt) - len(prompt)
        cut = slice(begin, begin + len(part.tokens))
        mask[cut], chances[cut] = [1] * len(part.tokens), part.chances or [0.0] * len(part.tokens)
    return prompt, tokens, None if replies[0].chances is None else chances, mask


# -- further arguments of the trainer --------------------------------------------------------------


def _seed(prompt: Any) -> int:
    try:
        return int(prompt[-1]["content"])
    except (LookupError, TypeError, ValueError):
        raise BadParameter(f"a prompt is a game's seed, as in games(100); got {prompt!r}") from None


def games(count: int, first: int = 1) -> Any:
    """Return the data set of the games of so many seeds, from `first` on."""
    from datasets import Dataset

    check_integer("count", count, 1)
    rows = [[{"role": "user", "content": str(seed)}] for seed in range(first, first + count)]
    return Dataset.from_dict({"prompt": rows})


def score(completions: Any, score: Sequence[float], **columns: Any) -> list[float | None]:
    """Return the rewards of samples, and log what the games paid and how many moves were legal."""
    for name in ("payoff", "legal"):
        for value in columns[name] if "log_metric" in columns else ():
            columns["log_metric"](f"game/{name}", value)
    return [*score]
