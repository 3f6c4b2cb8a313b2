"""A small Llama in NumPy: loading a folder in Hugging Face layout, and the layers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from llm_games.baselines.tiny.chat_template import END
from llm_games.errors import LLMGamesError

Floats = NDArray[np.float32]
Cache = list[tuple[Floats, Floats]]  # keys and values of each layer, ``(groups, tokens, size)``

BLOCK = 8  # rows are padded to a multiple of this, see `runtime`


class TinyModelError(LLMGamesError):
    """The folder holds no usable tiny model."""


class Llama:
    """A Llama with tied embeddings in float32; a `TinyModelError` says what a folder lacks."""

    def __init__(self, folder: Path) -> None:
        config, self.tokenizer, tensors = _load(folder)
        layers: int = config["num_hidden_layers"]
        self.heads: int = config["num_attention_heads"]
        self.groups: int = config["num_key_value_heads"]
        self.size: int = config["hidden_size"] // self.heads
        self.limit: int = config["max_position_embeddings"]
        self.eps: float = config["rms_norm_eps"]
        theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
        turns = np.arange(0, self.size, 2) / self.size
        angles = np.outer(np.arange(self.limit), 1.0 / theta**turns)
        self._cos, self._sin = (f(angles).astype(np.float32) for f in (np.cos, np.sin))
        self.embed, self.unembed, self._blocks = _matrices(tensors, layers)
        self.end = self.tokenizer.token_to_id(END)
        self.nothing: Cache = [(np.zeros((self.groups, 0, self.size), np.float32),) * 2] * layers
        self.pieces = [self.tokenizer.decode([i]) for i in range(len(self.embed))]

    def read(self, ids: Sequence[int], prefix_cache: Cache) -> tuple[Floats, Cache]:
        """Run one prompt after a text; return the last logits ``(vocabulary,)`` and its cache."""
        n, start, cache = len(ids), prefix_cache[0][0].shape[1], []
        causal = np.triu(np.full((n, n), -np.inf, np.float32), 1)

        def attend(layer: int, q: Floats, k: Floats, v: Floats) -> Floats:
            cache.append((k.swapaxes(0, 1).copy(), v.swapaxes(0, 1).copy()))
            pairs = zip(prefix_cache[layer], cache[-1], strict=True)
            keys, values = (np.concatenate(pair, 1) for pair in pairs)
            q = q.transpose(1, 2, 0, 3).reshape(self.groups, -1, self.size)
            scores = (q @ keys.swapaxes(1, 2)).reshape(self.groups, -1, n, start + n)
            scores[..., start:] += causal
            mixed = _softmax(scores).reshape(self.groups, -1, start + n) @ values
            return mixed.reshape(self.groups, -1, n, self.size).transpose(2, 0, 1, 3)

        x = self.run(self.embed[ids], np.arange(start, start + n), attend)
        last = np.repeat(x[-1:], BLOCK, 0) @ self.unembed
        return last[0], cache

    def run(self, x: Floats, places: NDArray[np.int64], attend: Callable[..., Floats]) -> Floats:
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


def attention(
    shared: list[tuple[int, Cache]], caches: Cache, mask: Floats, here: int
) -> Callable[..., Floats]:
    """Return attention of one new token a row to a shared prefix and to the row's own cache.

    `shared`: counts of rows with a prefix, and its cache; `caches`: ``(rows, groups, room, size)``.
    """

    def attend(layer: int, q: Floats, k: Floats, v: Floats) -> Floats:
        keys, values = caches[layer]
        keys[:, :, here], values[:, :, here] = k, v
        near, mixed, first = q @ keys.swapaxes(2, 3) + mask[:, None, None], [], 0
        for count, prefix_cache in shared:
            rows, first = slice(first, first + count), first + count
            far_keys, far_values = prefix_cache[layer]
            start = far_keys.shape[1]
            # Row by row, since BLAS would sum in another order for another number of rows.
            scores = np.concatenate((q[rows] @ far_keys.swapaxes(1, 2), near[rows]), 3)
            weights = _softmax(scores)
            mixed.append(weights[..., :start] @ far_values + weights[..., start:] @ values[rows])
        return np.concatenate(mixed)

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
            "`python -m llm_games.benchmarks.studies.tiny --out FOLDER`."
        )
    try:
        config = json.loads((folder / names[0]).read_text("utf-8"))
        tokenizer = Tokenizer.from_file(str(folder / names[1]))
        tensors = {k: v.astype(np.float32) for k, v in load_file(folder / names[2]).items()}
    except Exception as error:  # the three parsers have no common base of their errors
        raise TinyModelError(f"a file in {folder} cannot be read: {error}") from error
    if config.get("architectures") != ["LlamaForCausalLM"] or not config.get("tie_word_embeddings"):
        wanted, kind = "a LlamaForCausalLM with tied embeddings", config.get("architectures")
        raise TinyModelError(f"{folder}/config.json must be of {wanted}, got {kind}")
    if tokenizer.token_to_id(END) is None:
        raise TinyModelError(f"{folder}/tokenizer.json lacks {END}: it is another model's")
    return config, tokenizer, tensors


def _matrices(tensors: dict[str, Floats], layers: int) -> tuple[Floats, Floats, list[Any]]:
    """Return embeddings, output and layer matrices, with the gains of the norms multiplied in."""

    def matrix(gain: str, *names: str) -> Floats:
        joined = np.concatenate([tensors[f"{name}.weight"] for name in names]).T
        scale = tensors[f"{gain}.weight"][:, None] if gain else np.float32(1)
        return np.ascontiguousarray(joined * scale)

    try:
        blocks = []
        for i in range(layers):
            layer, attention = f"model.layers.{i}", f"model.layers.{i}.self_attn"
            qkv = matrix(f"{layer}.input_layernorm", *(f"{attention}.{x}_proj" for x in "qkv"))
            gate_up = (f"{layer}.mlp.{x}_proj" for x in ("gate", "up"))
            wide = matrix(f"{layer}.post_attention_layernorm", *gate_up)
            narrow = matrix("", f"{layer}.mlp.down_proj")
            blocks.append((qkv, matrix("", f"{attention}.o_proj"), wide, narrow))
        embed = tensors["model.embed_tokens.weight"]
        return embed, matrix("model.norm", "model.embed_tokens"), blocks
    except KeyError as error:
        raise TinyModelError(f"model.safetensors lacks the tensor {error}: not a Llama") from None
