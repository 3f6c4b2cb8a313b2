"""The tiny language model in NumPy: a Llama with a key-value cache, batches and seeded sampling.

A reply depends on its own prompt, seed and settings alone, not on what else is in the batch.
Two things see to that. Noise comes from each row's own generator. And no number of a row is
computed in another order of summation when its company changes: prompts are read one by one,
rows decode together only with rows of the same cache size, and batches are padded to whole blocks
of `BLOCK` rows, so that BLAS takes the same kernel for each of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np

from llm_games.baselines.tiny.model import BLOCK, Cache, Floats, Llama, TinyModelError, attention

WEIGHTS = Path(__file__).parent / "weights"
PAGE = 64  # the cache of a row grows by so many tokens
PREFIXES = 32  # system texts whose cache is kept


@dataclass(frozen=True)
class Ask:
    """One reply that is wanted.

    Attributes:
        prefix, prompt: the two parts of the rendered chat, see `chat.render`.
        seed: non-negative integers from which all noise of this reply comes.
        temperature: 0 takes the likeliest token each time.
        top_p: above 0; sample among the likeliest tokens that together have this probability.
        max_tokens: most tokens of the reply.
        allows: whether a text can begin a legal reply; None samples freely.
        complete: whether an allowed text is a whole reply, after which nothing is sampled.
        stop: texts before which the reply is cut off.
        top: how many of the likeliest tokens to report beside each sampled one.
    """

    prefix: str
    prompt: str
    seed: tuple[int, ...] = (0,)
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 256
    allows: Callable[[str], bool] | None = None
    complete: Callable[[str], bool] | None = None
    stop: tuple[str, ...] = ()
    top: int = 0


@dataclass
class Sampled:
    """One reply. Log-probabilities are the model's own, before temperature and constraints."""

    tokens_in: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[list[tuple[int, float]]] = field(default_factory=list)
    text: str = ""
    finish: Literal["stop", "length"] | None = None


class TinyLM:
    """A Llama in Hugging Face layout, computed in float32. Not for use by two threads at once.

    Raises:
        TinyModelError: the folder lacks files, or they are not those of such a model.
    """

    def __init__(self, folder: str | Path = WEIGHTS) -> None:
        self.llama = Llama(Path(folder))
        self._prefixes: OrderedDict[str, tuple[int, Cache]] = OrderedDict()

    def generate(self, asks: Sequence[Ask]) -> list[Sampled]:
        """Return one reply for each ask, in order."""
        replies: list[Sampled] = []
        rows: dict[int, list[_Row]] = {}
        read: dict[tuple[str, str], tuple[Floats, Cache]] = {}
        for ask in asks:
            start, before = self._prefix(ask.prefix)
            ids = self.llama.tokenizer.encode(ask.prompt, add_special_tokens=False).ids
            reply = min(ask.max_tokens, self.llama.limit // 4)  # of a long prompt, the end is read
            ids = ids[-max(1, self.llama.limit - start - reply) :]
            replies.append(Sampled(start + len(ids)))
            key = (ask.prefix, ask.prompt)
            if key not in read:
                read[key] = self.llama.read(ids, start, before)
            row = _Row(ask, replies[-1], start, before, len(ids), *read[key])
            rows.setdefault(-(-len(ids) // PAGE) * PAGE, []).append(row)
        for room, group in rows.items():
            self._decode(sorted(group, key=lambda row: row.ask.prefix), room)
        return replies

    def _prefix(self, text: str) -> tuple[int, Cache]:
        """Return the length and the cache of a system text, computed once."""
        if text not in self._prefixes:
            ids = self.llama.tokenizer.encode(text, add_special_tokens=False).ids[
                : self.llama.limit // 2
            ]
            self._prefixes[text] = (len(ids), self.llama.read(ids, 0, self.llama.empty())[1])
            if len(self._prefixes) > PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(text)
        return self._prefixes[text]

    def _decode(self, live: list[_Row], room: int) -> None:
        """Sample rows to their ends. `room`: tokens that each prompt takes, with padding."""
        for row in live:
            row.sample(self.llama, row.logits)
        live = [row for row in live if row.reply.finish is None]
        caches, mask, step = *_gather(_padded(live), self.llama.layers, room), 0
        while live:
            if step % PAGE == 0:
                caches, mask = _grown(caches, mask)
            rows, here = _padded(live), room + step
            mask[..., here] = 0
            x = self.llama.run(
                self.llama.embed[[row.reply.tokens[-1] for row in rows]],
                np.array([row.start + row.length + step for row in rows]),
                attention(_shared(rows), caches, mask, here),
            )
            for row, logits in zip(live, x @ self.llama.unembed, strict=False):
                if row.reply.finish is None:
                    row.sample(self.llama, logits)
            step += 1
            going = [i for i, row in enumerate(live) if row.reply.finish is None]
            if len(_padded(going)) < len(rows):
                live, going = [live[i] for i in going], _padded(going)
                caches, mask = [(k[going], v[going]) for k, v in caches], mask[going]


@dataclass
class _Row:
    """A reply in the making: what it goes on from, and its own noise.

    `start` and `before` are the system text's length and cache, `length`, `logits` and `cache`
    those of the prompt behind it.
    """

    ask: Ask
    reply: Sampled
    start: int
    before: Cache
    length: int
    logits: Floats
    cache: Cache

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.ask.seed)

    def sample(self, model: Llama, logits: Floats) -> None:
        """Add one token to the reply, or end it."""
        ask, reply = self.ask, self.reply
        scores: Any = logits
        if ask.temperature > 0:
            scores = logits / np.float32(ask.temperature)
            if ask.top_p < 1:
                scores = _nucleus(scores, ask.top_p)
            scores = scores + self._rng.gumbel(size=len(logits))
        token = int(scores.argmax()) if ask.allows is None else self._allowed(model, scores)
        if token == model.end:
            reply.finish = "stop"
        else:
            self._add(model, token, logits)
        if reply.finish is None and (
            len(reply.tokens) >= ask.max_tokens
            or reply.tokens_in + len(reply.tokens) >= model.limit
        ):
            reply.finish = "length"
        if reply.finish and not ask.stop and ask.allows is None:
            reply.text = model.tokenizer.decode(reply.tokens)

    def _allowed(self, model: Llama, scores: Any) -> int:
        allows, text = self.ask.allows, self.reply.text
        assert allows is not None
        first: dict[str, bool] = {}  # most pieces are wrong from their first letter on
        for token in np.argsort(-scores).tolist():
            piece = model.pieces[token]
            if piece and "\ufffd" not in piece:
                letter = piece[0]
                if letter not in first:
                    first[letter] = allows(text + letter)
                if first[letter] and (piece == letter or allows(text + piece)):
                    return token
        raise TinyModelError(f"no token of the model may follow {text!r}")

    def _add(self, model: Llama, token: int, logits: Floats) -> None:
        ask, reply = self.ask, self.reply
        logprobs = logits - logits.max()
        logprobs -= np.log(np.exp(logprobs).sum())
        reply.tokens.append(token)
        reply.logprobs.append(float(logprobs[token]))
        if ask.top:
            best = np.argsort(-logprobs)[: ask.top].tolist()
            reply.top.append([(i, float(logprobs[i])) for i in best])
        reply.text += model.pieces[token]
        cut = min((at for s in ask.stop if (at := reply.text.find(s)) >= 0), default=None)
        if cut is not None:
            reply.text, reply.finish = reply.text[:cut], "stop"
        elif ask.complete is not None and ask.complete(reply.text):
            reply.finish = "stop"


def _nucleus(scores: Floats, top_p: float) -> Any:
    """Put all but the likeliest tokens that together have this probability out of reach."""
    order = np.argsort(-scores, kind="stable")
    chances = np.exp(scores[order].astype(np.float64) - scores.max())
    chances /= chances.sum()
    likelier = np.empty(len(scores))
    likelier[order] = chances.cumsum() - chances  # what is likelier than each
    return np.where(likelier < top_p, scores, scores - np.float32(1e9))


def _padded(items: list[Any]) -> list[Any]:
    """Fill up with copies of the last item to whole blocks."""
    return items + items[-1:] * (-len(items) % BLOCK)


def _shared(rows: list[_Row]) -> list[tuple[slice, Cache]]:
    """Return which rows follow each other on the same system text, and its cache."""
    runs: list[tuple[slice, Cache]] = []
    for _, group in groupby(range(len(rows)), key=lambda i: rows[i].ask.prefix):
        places = list(group)
        runs.append((slice(places[0], places[-1] + 1), rows[places[0]].before))
    return runs


def _gather(rows: list[_Row], layers: int, pages: int) -> tuple[Cache, Floats]:
    """Stack the rows' caches, ``(rows, groups, pages, size)`` a layer, and mask what is padding."""
    caches = []
    for layer in range(layers if rows else 0):
        pairs = zip(*(row.cache[layer] for row in rows), strict=True)
        k, v = (
            np.stack([np.pad(a, ((0, 0), (0, pages - a.shape[1]), (0, 0))) for a in pair])
            for pair in pairs
        )
        caches.append((k, v))
    unseen = np.arange(pages) >= np.array([row.length for row in rows], int)[:, None]
    return caches, np.where(unseen, -np.inf, 0).astype(np.float32)[:, None, None]


def _grown(caches: Cache, mask: Floats) -> tuple[Cache, Floats]:
    """Make room for `PAGE` more tokens."""
    room = ((0, 0), (0, 0), (0, PAGE), (0, 0))
    wider = np.pad(mask, ((0, 0), (0, 0), (0, 0), (0, PAGE)), constant_values=-np.inf)
    return [(np.pad(k, room), np.pad(v, room)) for k, v in caches], wider
