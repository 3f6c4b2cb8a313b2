"""The tiny language model in NumPy: a Llama with a key-value cache, batches and seeded sampling.

A reply depends on its own prompt, seed and settings alone, not on its batch: noise is a row's own,
and a row's sums have the same order in every batch. Prompts are read one by one, rows decode with
rows of the same cache size, padded to blocks of `BLOCK`, so that BLAS takes the same kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    """A request for one reply to the two parts of a rendered chat, see `chat.render`."""

    prefix: str
    prompt: str
    seed: tuple[int, ...] = (0,)  # not negative; all noise of this reply comes from it
    temperature: float = 1.0  # 0 takes the likeliest token each time
    top_p: float = 1.0  # above 0; sample among the likeliest tokens of this probability together
    max_tokens: int = 256
    allows: Callable[[str], bool] | None = None  # can a text begin a legal reply? None: any can
    complete: Callable[[str], bool] | None = None  # is an allowed text a whole reply?
    stop: tuple[str, ...] = ()  # texts before which the reply is cut off
    top: int = 0  # how many of the likeliest tokens to report beside each sampled one


@dataclass
class SampledText:
    """One reply. Log-probabilities are the model's own, before temperature and constraints."""

    tokens_in: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[list[tuple[int, float]]] = field(default_factory=list)
    text: str = ""
    finish: Literal["stop", "length"] | None = None


class TinyLM:
    """A `Llama` that samples replies. Not for use by two threads at once."""

    def __init__(self, folder: str | Path = WEIGHTS) -> None:
        self.llama = Llama(Path(folder))
        self._prefixes: dict[str, Cache] = {}

    def generate(self, asks: Sequence[Ask]) -> list[SampledText]:
        replies: list[SampledText] = []
        rows: dict[int, list[_TokenRow]] = {}
        read: dict[tuple[str, str], tuple[Floats, Cache]] = {}
        for ask in asks:
            prefix_cache = self._prefix(ask.prefix)
            start = prefix_cache[0][0].shape[1]
            reply = min(ask.max_tokens, self.llama.limit // 4)  # of a long prompt, the end is read
            ids = self.llama.tokenizer.encode(ask.prompt, add_special_tokens=False).ids
            ids = ids[-max(1, self.llama.limit - start - reply) :]
            replies.append(SampledText(start + len(ids)))
            if (key := (ask.prefix, ask.prompt)) not in read:
                read[key] = self.llama.read(ids, prefix_cache)
            logits, cache = read[key]
            row = _TokenRow(ask, replies[-1], prefix_cache, cache)
            row.sample(self.llama, logits)
            if row.reply.finish is None:
                rows.setdefault(-(-len(ids) // PAGE) * PAGE, []).append(row)
        for room, group in rows.items():
            self._decode(sorted(group, key=lambda row: row.ask.prefix), room)
        return replies

    def _prefix(self, text: str) -> Cache:
        """Return the cache of a system text; the last `PREFIXES` are cached."""
        cache = self._prefixes.pop(text, None)
        if cache is None:
            ids = self.llama.tokenizer.encode(text, add_special_tokens=False).ids
            cache = self.llama.read(ids[: self.llama.limit // 2], self.llama.nothing)[1]
        self._prefixes[text] = cache
        if len(self._prefixes) > PREFIXES:
            del self._prefixes[next(iter(self._prefixes))]
        return cache

    def _decode(self, live: list[_TokenRow], room: int) -> None:
        """Sample rows to their ends. `room`: tokens that each prompt takes, with padding."""
        caches, mask, step = *_gather(_pad(live), room), 0
        while live:
            if step % PAGE == 0:  # make room for more tokens
                padding = ((0, 0), (0, 0), (0, PAGE), (0, 0))
                caches = [(np.pad(k, padding), np.pad(v, padding)) for k, v in caches]
                mask = np.pad(mask, ((0, 0), (0, PAGE)), constant_values=-np.inf)
            rows, here = _pad(live), room + step
            mask[:, here] = 0
            runs = [list(run) for _, run in groupby(rows, key=lambda row: row.ask.prefix)]
            x = self.llama.run(
                self.llama.embed[[row.reply.tokens[-1] for row in rows]],
                np.array([row.reply.tokens_in + step for row in rows]),
                attention([(len(run), run[0].prefix_cache) for run in runs], caches, mask, here),
            )
            for row, logits in zip(live, x @ self.llama.unembed, strict=False):
                if row.reply.finish is None:
                    row.sample(self.llama, logits)
            step += 1
            going = [i for i, row in enumerate(live) if row.reply.finish is None]
            if len(_pad(going)) < len(rows):
                live, going = [live[i] for i in going], _pad(going)
                caches, mask = [(k[going], v[going]) for k, v in caches], mask[going]


class _TokenRow:
    """An unfinished reply: the caches of its system text and its prompt, and its own noise."""

    def __init__(self, ask: Ask, reply: SampledText, prefix_cache: Cache, cache: Cache) -> None:
        self.ask, self.reply, self.prefix_cache, self.cache = ask, reply, prefix_cache, cache
        self._rng = np.random.default_rng(ask.seed)

    def sample(self, model: Llama, logits: Floats) -> None:
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
        limit = min(ask.max_tokens, model.limit - reply.tokens_in)
        if reply.finish is None and len(reply.tokens) >= limit:
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
        cut = min((index for s in ask.stop if (index := reply.text.find(s)) >= 0), default=None)
        if cut is not None:
            reply.text, reply.finish = reply.text[:cut], "stop"
        elif ask.complete is not None and ask.complete(reply.text):
            reply.finish = "stop"


def _nucleus(scores: Floats, top_p: float) -> Any:
    """Subtract 1e9 from the scores of all but the likeliest tokens that sum to `top_p`."""
    order, likelier = np.argsort(-scores, kind="stable"), np.empty(len(scores))
    chances = np.exp(scores[order].astype(np.float64) - scores.max())
    chances /= chances.sum()
    likelier[order] = chances.cumsum() - chances  # what is likelier than each
    return np.where(likelier < top_p, scores, scores - np.float32(1e9))


def _pad(items: list[Any]) -> list[Any]:
    """Fill up with copies of the last item to whole blocks."""
    return items + items[-1:] * (-len(items) % BLOCK)


def _gather(rows: list[_TokenRow], room: int) -> tuple[Cache, Floats]:
    """Stack the rows' caches, ``(rows, groups, room, size)`` a layer, and mask what is padding."""

    def stack(arrays: Iterable[Floats]) -> Floats:
        return np.stack([np.pad(a, ((0, 0), (0, room - a.shape[1]), (0, 0))) for a in arrays])

    layers = zip(*(row.cache for row in rows), strict=True)
    caches = [(stack(k for k, _ in layer), stack(v for _, v in layer)) for layer in layers]
    is_filled = np.arange(room) < [[row.cache[0][0].shape[1]] for row in rows]
    return caches, np.where(is_filled, np.float32(0), np.float32(-np.inf))
