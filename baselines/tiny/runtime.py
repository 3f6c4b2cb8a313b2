"""The tiny language model in NumPy: a Llama with a key-value cache, batches and seeded sampling.

A reply depends on its own prompt, seed and settings alone, not on what else is in the batch.
Two things see to that. Noise comes from each row's own generator. And no number of a row is
computed in another order of summation when its company changes: prompts are read one by one,
rows decode together only with rows of the same rules and cache size, and batches are padded to
whole blocks of `BLOCK` rows, so that BLAS takes the same kernel for each of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from llm_games.baselines.tiny.chat import END
from llm_games.errors import LLMGamesError

WEIGHTS = Path(__file__).parent / "weights"
BLOCK = 8  # rows of a batch are padded to a multiple of this
PAGE = 64  # the cache of a row grows by so many tokens
PREFIXES = 24  # system texts whose cache is kept
Floats = NDArray[np.float32]
Cache = list[tuple[Floats, Floats]]


class TinyModelError(LLMGamesError):
    """The folder of a tiny model cannot be used."""


@dataclass(frozen=True)
class Ask:
    """One reply that is wanted.

    Attributes:
        prefix, prompt: the two parts of the rendered chat, see `chat.render`.
        seed: non-negative integers from which all noise of this reply comes.
        temperature: 0 takes the likeliest token each time.
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
    max_tokens: int = 256
    allows: Callable[[str], bool] | None = None
    complete: Callable[[str], bool] | None = None
    stop: tuple[str, ...] = ()
    top: int = 0


@dataclass
class Reply:
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
        config, self.tokenizer, tensors = _load(Path(folder))
        self.layers: int = config["num_hidden_layers"]
        self.heads: int = config["num_attention_heads"]
        self.groups: int = config["num_key_value_heads"]
        self.size: int = config["hidden_size"] // self.heads
        self.limit: int = config["max_position_embeddings"]
        self.eps: float = config["rms_norm_eps"]
        theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
        turns = np.arange(0, self.size, 2) / self.size
        angles = np.outer(np.arange(self.limit), 1.0 / theta**turns)
        self._cos = np.cos(angles).astype(np.float32)
        self._sin = np.sin(angles).astype(np.float32)
        self._embed, self._unembed, self._blocks = _matrices(tensors, self.layers)
        self._end = self.tokenizer.token_to_id(END)
        self._pieces = [self.tokenizer.decode([i]) for i in range(len(self._embed))]
        self._prefixes: OrderedDict[str, tuple[int, Cache]] = OrderedDict()

    def piece(self, token: int) -> str:
        """Return the text of one token."""
        return self._pieces[token]

    def generate(self, asks: Sequence[Ask]) -> list[Reply]:
        """Return one reply for each ask, in order."""
        replies: list[Reply] = []
        rows: dict[tuple[str, int], list[_Row]] = {}
        read: dict[tuple[str, str], tuple[Floats, Cache]] = {}
        for ask in asks:
            length, prefix = self._prefix(ask.prefix)
            ids = self.tokenizer.encode(ask.prompt, add_special_tokens=False).ids
            ids = ids[-max(1, self.limit - length - 1) :]
            replies.append(Reply(length + len(ids)))
            key = (ask.prefix, ask.prompt)
            if key not in read:
                read[key] = self._read(ids, length, prefix)
            row = _Row(ask, replies[-1], len(ids), *read[key])
            rows.setdefault((ask.prefix, -(-len(ids) // PAGE)), []).append(row)
        for (text, pages), group in rows.items():
            self._decode(group, self._prefix(text), pages * PAGE)
        return replies

    def _prefix(self, text: str) -> tuple[int, Cache]:
        """Return the length and the cache of a system text, computed once."""
        if text not in self._prefixes:
            ids = self.tokenizer.encode(text, add_special_tokens=False).ids[: self.limit // 2]
            empty = np.zeros((self.groups, 0, self.size), np.float32)
            cache = self._read(ids, 0, [(empty, empty)] * self.layers)[1]
            self._prefixes[text] = (len(ids), cache)
            if len(self._prefixes) > PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(text)
        return self._prefixes[text]

    def _read(self, ids: Sequence[int], start: int, before: Cache) -> tuple[Floats, Cache]:
        """Run one prompt; return the last logits ``(vocabulary,)`` and its keys and values.

        Args:
            ids: the tokens.
            start: how many tokens come before them.
            before: their keys and values, ``(groups, start, size)`` for each layer.
        """
        n, cache = len(ids), []
        causal = np.triu(np.full((n, n), -np.inf, np.float32), 1)

        def attend(layer: int, q: Floats, k: Floats, v: Floats) -> Floats:
            cache.append((k.swapaxes(0, 1).copy(), v.swapaxes(0, 1).copy()))
            keys, values = (np.concatenate(pair, 1) for pair in zip(before[layer], cache[-1]))
            q = q.transpose(1, 2, 0, 3).reshape(self.groups, -1, self.size)
            scores = (q @ keys.swapaxes(1, 2)).reshape(self.groups, -1, n, start + n)
            scores[..., start:] += causal
            mixed = _softmax(scores).reshape(self.groups, -1, start + n) @ values
            return mixed.reshape(self.groups, -1, n, self.size).transpose(2, 0, 1, 3)

        x = self._run(self._embed[ids], np.arange(start, start + n), attend)
        last = np.repeat(x[-1:], BLOCK, 0) @ self._unembed
        return last[0], cache

    def _run(self, x: Floats, places: NDArray[np.int64], attend: Callable[..., Floats]) -> Floats:
        """Run the layers on rows ``(rows, width)`` at the given positions; return the last norm."""
        cos, sin = self._cos[places][:, None, None], self._sin[places][:, None, None]
        n, queries = len(x), self.heads * self.size
        keys = queries + self.groups * self.size
        for layer, (qkv, out, gate_up, down) in enumerate(self._blocks):
            h = _norm(x, self.eps) @ qkv
            q = h[:, :queries].reshape(n, self.groups, -1, self.size)
            k = h[:, queries:keys].reshape(n, self.groups, 1, self.size)
            v = h[:, keys:].reshape(n, self.groups, self.size)
            q, k = _rotate(q, cos, sin) * np.float32(self.size**-0.5), _rotate(k, cos, sin)
            x = x + attend(layer, q, k[:, :, 0], v).reshape(n, -1) @ out
            gate, up = np.split(_norm(x, self.eps) @ gate_up, 2, axis=1)
            x = x + (gate / (1 + np.exp(-gate)) * up) @ down
        return _norm(x, self.eps)

    def _decode(self, rows: list[_Row], prefix: tuple[int, Cache], pages: int) -> None:
        """Sample all rows of one group to their ends. `pages`: prompt tokens, rounded up."""
        start, before = prefix
        live = _pad([row for row in rows if row.sample(self, row.logits)])
        step, caches, mask = 0, self._gather(live, pages), self._mask(live, pages)
        while live:
            places = np.array([start + row.length + step for row in live])
            if step % PAGE == 0:
                room = ((0, 0), (0, 0), (0, PAGE), (0, 0))
                caches = [(np.pad(k, room), np.pad(v, room)) for k, v in caches]
                unseen = np.full((len(live), 1, 1, PAGE), -np.inf, np.float32)
                mask = np.concatenate((mask, unseen), 3)
            here = pages + step
            mask[..., here] = 0
            attend = self._attend(before, caches, mask, here)
            x = self._run(self._embed[[row.reply.tokens[-1] for row in live]], places, attend)
            logits = x @ self._unembed
            going = {id(row): row.sample(self, logits[i]) for i, row in _first(live)}
            step += 1
            keep = [i for i, row in _first(live) if going[id(row)]]
            if len(_pad(keep)) < len(live):
                keep = _pad(keep)
                live, mask = [live[i] for i in keep], mask[keep]
                caches = [(k[keep], v[keep]) for k, v in caches]
