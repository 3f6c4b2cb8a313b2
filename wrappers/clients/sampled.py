"""A few replies of a model for each situation, for learners that meet it a million times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import check_integer
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import Who
from llm_games.wrappers.clients.base import Chat, Client, Completion, Request, Sampling
from llm_games.wrappers.clients.budget import BudgetExceeded, Ledger
from llm_games.wrappers.clients.cache import Cache, ReplyCache, digest_of, key_of, tried

MOST_SEATS = 100_000  # seats of which is known what they asked last
NEIGHBOURS = 8  # situations that are looked through for one with a reply


class SampledRequest(NamedTuple):
    """A seat's first request for a decision: step, situation, and how many asked it before."""

    step: int
    situation: bytes
    rank: int


class ReplySampler(Cache):
    """Keeps so many replies (`samples`) for each situation, and draws one whenever it comes up.

    A situation is a request without its seed: model, source, messages, schema, tools, sampling and
    ways of asking. The draw is keyed noise of the episode's seed, the step and how many asked the
    same in it before. A share (`fresh`) of draws is asked for anew, in place of the reply before.
    The sampling seed that is sent comes from the key: it makes no difference who asks first.

    Once a budget has ended, what is known is served; else, with `nearest`, a reply in the nearest
    situation of the same game, rules, question and settings, by all that the seat knows as numbers;
    without one `BudgetExceeded` comes out. `hits`, `misses` and `near` count.
    """

    def __init__(
        self,
        client: Client,
        file: ReplyCache,
        source: str = "",
        how: str = "",
        *,
        samples: int = 1,
        fresh: float = 0.0,
        nearest: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        super().__init__(client, file, source, always=True, how=how)
        check_integer("samples", samples, 1)
        if not isinstance(fresh, (int, float)) or not 0 <= fresh <= 1:
            raise BadParameter(f"fresh must be a share from 0 to 1, got {fresh!r}")
        self.samples, self.fresh, self.nearest, self.near = samples, fresh, nearest, 0
        self.ledger = ledger
        self._seats: dict[tuple[str, int, int], SampledRequest] = {}
        self._placed: set[bytes] = set()

    async def complete(self, request: Request) -> Completion:
        asked, who = self._asked(request), request.who
        situation = digest_of(asked)
        draw, anew = self._draw(situation, request)
        key = key_of(situation, [draw])
        words = (who.seed, who.step, who.call) if anew else ()
        seed = Noise(int.from_bytes(key[:8], "little"), *words).seed(31)
        try:
            completion = await self._served(replace(request, seed=seed), key, anew)
        except BudgetExceeded as error:
            self.misses -= 1  # it was not asked
            if (fallback := tried(self._stored, asked, request, draw)) is not None:
                return fallback
            way = "" if self.nearest else ", or let the nearest known situation answer (nearest)"
            raise BudgetExceeded(error.limit, f"{error}{way}") from error
        if request.view is not None and situation not in self._placed:
            self._placed.add(situation)
            tried(self.file.put_coordinates, situation, *_lies(asked, request))
        return completion

    def situation(self, request: Request) -> bytes:
        return digest_of(self._asked(request))

    def keeps(self, situation: bytes, sample: int) -> bool:
        """Test whether a sample of a situation is stored."""
        return tried(self.file.get, key_of(situation, [sample])) is not None

    @property
    def ended(self) -> bool:
        return self.ledger is not None and self.ledger.ended

    def draws(self, seeds: Any, steps: Any, ranks: Any, sampling: Sampling) -> tuple[Any, Any]:
        """Return samples' numbers and whether they are asked anew, for numbers or arrays."""
        if sampling.temperature == 0:  # one is all there is
            return np.zeros(np.shape(seeds), np.int64), np.zeros(np.shape(seeds), np.bool_)
        noise = Noise(seeds).of("sample", steps, ranks)
        return noise.integers(self.samples), noise.of("fresh").random() < self.fresh

    def asked_by(self, who: Who) -> SampledRequest | None:
        """Return a seat's first request for its decision in this step."""
        asked = self._seats.get((who.run, who.episode, who.seat))
        return asked if asked and asked.step == who.step else None

    def _draw(self, situation: bytes, request: Request) -> tuple[int, bool]:
        """Return the number of the sample, and whether it is asked for anew."""
        who = request.who
        if not who.run:
            return (request.seed % self.samples if request.sampling.temperature != 0 else 0), False
        asked = self.asked_by(who) if who.call else None
        if asked is None:
            rank = self.file.rank(situation, who._replace(call=0))
            asked = SampledRequest(who.step, situation, rank)
            self._seats.pop(seat := (who.run, who.episode, who.seat), None)
            self._seats[seat] = asked  # the latest stands last
            if len(self._seats) > MOST_SEATS:
                del self._seats[next(iter(self._seats))]
        draw, anew = self.draws(who.seed, who.step, asked.rank, request.sampling)
        return int(draw), bool(anew)

    def _stored(self, asked: dict[str, Any], request: Request, draw: int) -> Completion | None:
        """Return a stored reply to a situation, or to the nearest one."""
        situation = digest_of(asked)
        completion = self._any(situation, draw)
        self.hits += completion is not None
        if completion is None and self.nearest and request.view is not None:
            near = self.file.nearest(*_lies(asked, request), NEIGHBOURS)
            replies = (self._any(situation, draw) for situation in near)
            completion = next((reply for reply in replies if reply is not None), None)
            self.near += completion is not None
        return completion

    def _any(self, situation: bytes, first: int) -> Completion | None:
        """Return a stored reply to a situation: of the first stored draw from this one on."""
        draws = ((first + offset) % self.samples for offset in range(self.samples))
        replies = (self.file.get(key_of(situation, [draw])) for draw in draws)
        return next((reply for reply in replies if reply is not None), None)


def _lies(asked: dict[str, Any], request: Request) -> tuple[bytes, Array]:
    """Return the family of a situation (game, rules, question, settings) and the numbers."""
    rules = Chat.of(request.messages[:1]).digest.hex()
    assert request.view is not None
    return digest_of(asked | {"messages": rules}), np.append(request.view.numbers, request.who.call)
