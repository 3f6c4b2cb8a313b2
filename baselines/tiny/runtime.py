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
        self.end = self.tokenizer.token_to_id(END)
        self.pieces = [self.tokenizer.decode([i]) for i in range(len(self._embed))]
        self._prefixes: OrderedDict[str, tuple[int, Cache]] = OrderedDict()

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
            keys, values = (
                np.concatenate(pair, 1) for pair in zip(before[layer], cache[-1], strict=True)
            )
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
            x = x + (gate * (0.5 + 0.5 * np.tanh(0.5 * gate)) * up) @ down
        return _norm(x, self.eps)

    def _decode(self, live: list[_Row], prefix: tuple[int, Cache], pages: int) -> None:
        """Sample the rows of one group to their ends. `pages`: their prompts' room, in tokens."""
        start, before = prefix
        for row in live:
            row.sample(self, row.logits)
        live = [row for row in live if row.reply.finish is None]
        caches, mask, step = *_gather(_padded(live), self.layers, pages), 0
        while live:
            if step % PAGE == 0:
                caches, mask = _grown(caches, mask)
            rows, here = _padded(live), pages + step
            mask[..., here] = 0
            x = self._run(
                self._embed[[row.reply.tokens[-1] for row in rows]],
                np.array([start + row.length + len(row.reply.tokens) - 1 for row in rows]),
                _attention(before, caches, mask, start, here),
            )
            for row, logits in zip(live, x @ self._unembed, strict=False):
                if row.reply.finish is None:
                    row.sample(self, logits)
            step += 1
            going = [i for i, row in enumerate(live) if row.reply.finish is None]
            if len(_padded(going)) < len(rows):
                live, going = [live[i] for i in going], _padded(going)
                caches, mask = [(k[going], v[going]) for k, v in caches], mask[going]


@dataclass
class _Row:
    """A reply in the making: its prompt's length, last logits and cache, and its own noise."""

    ask: Ask
    reply: Reply
    length: int
    logits: Floats
    cache: Cache

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.ask.seed)

    def sample(self, model: TinyLM, logits: Floats) -> None:
        """Add one token to the reply, or end it."""
        ask, reply = self.ask, self.reply
        scores = logits
        if ask.temperature > 0:
            scores = logits / np.float32(ask.temperature)
            scores = scores - np.log(self._rng.standard_exponential(len(logits), np.float32))
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

    def _allowed(self, model: TinyLM, scores: Floats) -> int:
        assert self.ask.allows is not None
        for token in np.argsort(-scores).tolist():
            piece = model.pieces[token]
            if piece and "\ufffd" not in piece and self.ask.allows(self.reply.text + piece):
                return token
        raise TinyModelError(f"no token of the model may follow {self.reply.text!r}")

    def _add(self, model: TinyLM, token: int, logits: Floats) -> None:
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


def _padded(items: list[Any]) -> list[Any]:
    """Fill up with copies of the first item to whole blocks."""
    return items + items[:1] * (-len(items) % BLOCK)


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


def _attention(
    before: Cache, caches: Cache, mask: Floats, start: int, here: int
) -> Callable[..., Floats]:
    """Return attention of one new token a row to the shared prefix and to the row's own cache."""

    def attend(layer: int, q: Floats, k: Floats, v: Floats) -> Floats:
        (shared_keys, shared_values), (keys, values) = before[layer], caches[layer]
        keys[:, :, here], values[:, :, here] = k, v
        n, groups, _, size = q.shape
        flat = q.swapaxes(0, 1).reshape(groups, -1, size) @ shared_keys.swapaxes(1, 2)
        far = flat.reshape(groups, n, -1, start).swapaxes(0, 1)
        weights = _softmax(np.concatenate((far, q @ keys.swapaxes(2, 3) + mask), 3))
        far = weights[..., :start].swapaxes(0, 1).reshape(groups, -1, start) @ shared_values
        return weights[..., start:] @ values + far.reshape(groups, n, -1, size).swapaxes(0, 1)

    return attend


def _norm(x: Floats, eps: float) -> Floats:
    # The gain is part of the matrix that follows.
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + np.float32(eps))


def _rotate(x: Floats, cos: Floats, sin: Floats) -> Floats:
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)


def _softmax(x: Floats) -> Floats:
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def _load(folder: Path) -> tuple[dict[str, Any], Tokenizer, dict[str, Floats]]:
    names = ("config.json", "tokenizer.json", "model.safetensors")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise TinyModelError(
            f"{folder} is no tiny model: {', '.join(missing)} missing (needs {', '.join(names)}). "
            "Reinstall the package to get the shipped weights, or train your own with "
            "`python -m llm_games.baselines.tiny.train --out FOLDER`."
        )
    try:
        config = json.loads((folder / names[0]).read_text("utf-8"))
        tokenizer = Tokenizer.from_file(str(folder / names[1]))
        tensors = {k: v.astype(np.float32) for k, v in load_file(folder / names[2]).items()}
    except Exception as error:  # the three parsers have no common base of their errors
        raise TinyModelError(f"a file in {folder} cannot be read: {error}") from error
    if config.get("architectures") != ["LlamaForCausalLM"] or not config.get("tie_word_embeddings"):
        raise TinyModelError(
            f"{folder}/config.json must be of a LlamaForCausalLM with tied embeddings, got "
            f"{config.get('architectures')}"
        )
    if tokenizer.token_to_id(END) is None:
        raise TinyModelError(
            f"{folder}/tokenizer.json lacks the token {END}: it is another model's"
        )
    return config, tokenizer, tensors


def _matrices(tensors: dict[str, Floats], layers: int) -> tuple[Floats, Floats, list[Any]]:
    """Return embeddings, output matrix and the layers' matrices, with norms' gains multiplied in."""

    def matrix(gain: str, *names: str) -> Floats:
        joined = np.concatenate([tensors[f"{name}.weight"] for name in names]).T
        scale = tensors[f"{gain}.weight"][:, None] if gain else np.float32(1)
        return np.ascontiguousarray(joined * scale)

    try:
        blocks = []
        for i in range(layers):
            at, attention = f"model.layers.{i}", f"model.layers.{i}.self_attn"
            qkv = (f"{attention}.{x}_proj" for x in "qkv")
            blocks.append(
                (
                    matrix(f"{at}.input_layernorm", *qkv),
                    matrix("", f"{attention}.o_proj"),
                    matrix(
                        f"{at}.post_attention_layernorm", f"{at}.mlp.gate_proj", f"{at}.mlp.up_proj"
                    ),
                    matrix("", f"{at}.mlp.down_proj"),
                )
            )
        embed = tensors["model.embed_tokens.weight"]
        return embed, matrix("model.norm", "model.embed_tokens"), blocks
    except KeyError as error:
        raise TinyModelError(f"model.safetensors lacks the tensor {error}: not a Llama") from None
