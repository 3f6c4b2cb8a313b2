"""Train the tiny model: plays games with scripted players, then fits a Llama to their answers.

Run ``python -m llm_games.benchmarks.studies.tiny --resume`` after a change of a prompt: it goes on
from the present weights (a few minutes are enough for a small change of words). Without
``--resume`` it starts from nothing, which takes hours for all games. Needs torch and transformers.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.baselines.tiny.chat_template import END, SPECIAL, TEMPLATE
from llm_games.baselines.tiny.runtime import WEIGHTS
from llm_games.benchmarks.studies.tiny.samples import TrainingSample, samples
from llm_games.benchmarks.studies.tiny.thoughts import drills, thoughts

LIMIT = 2048  # tokens of a prompt and its reply


@dataclass(frozen=True)
class Args:
    """What can be set on the command line, by default of the shipped weights."""

    out: str = str(WEIGHTS)  # folder to write to
    resume: bool = False  # go on from the weights and the tokenizer in `out`
    minutes: float = 60.0  # wall-clock limit; the learning rate falls to zero at its end
    samples: int = 120_000  # scripted answers to draw before training
    focus: str = ""  # games that are played three times as often: "one,another", for a resumed run
    vocabulary: int = 2048  # of byte-level tokens
    width: int = 128
    layers: int = 4
    heads: int = 4
    groups: int = 2  # heads of keys and values
    hidden: int = 384  # width of the feed-forward part
    tokens: int = 1400  # of a pack: one system text, and the questions and answers that follow it
    packs: int = 4  # of a step
    rate: float = 0.02  # largest learning rate of the matrices (Muon)
    adam_rate: float = 0.004  # largest learning rate of embeddings and norms (AdamW)
    sharpen: float = 1.5  # factor on all logits of saved weights: fewer slips at temperature 1
    prompt_weight: float = 0.05  # of a prompt token in the loss; an answer token has 1
    threads: int = 1
    seed: int = 0


def main(args: Args) -> None:
    import torch

    start, out = time.monotonic(), Path(args.out)
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    drawn = list(samples(rng, args.samples, args.focus, planning=thoughts, drills=drills))
    print(f"{len(drawn)} samples after {time.monotonic() - start:.0f} s", flush=True)
    if not args.resume:
        save_tokenizer(out, drawn, args.vocabulary)
    groups, model = encode(out, drawn), build(out, args)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim < 2 or "embed" in n]
    optimizers = (
        (torch.optim.Muon(matrices, lr=args.rate, weight_decay=0.01), args.rate),
        (torch.optim.AdamW(others, lr=args.adam_rate, betas=(0.9, 0.98)), args.adam_rate),
    )
    begin = saved = time.monotonic()
    shown, right = 0, 0.0
    for step, batch in enumerate(batches(groups, rng, args)):
        took = time.monotonic() - begin
        share = took / (60 * args.minutes)
        if share >= 1:
            break
        loss, accuracy = train_step(model, batch)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        # Up in the first 3 %, then down a half cosine to 2 %.
        rate = min(1.0, share / 0.03 + 0.02) * (0.51 + 0.49 * math.cos(math.pi * share))
        for optimizer, top in optimizers:
            optimizer.param_groups[0]["lr"] = top * rate
            optimizer.step()
            optimizer.zero_grad()
        shown += batch[0].numel()
        right += 0.05 * (accuracy - right)
        if step % 20 == 0:
            progress = f"{took:5.0f} s, {shown / 1e6:.2f} M tokens"
            print(f"{progress}, answer loss {loss:.4f}, right {right:.4f}", flush=True)
        if time.monotonic() - saved > 120:
            save(out, model, args.sharpen)
            saved = time.monotonic()
    save(out, model, args.sharpen)
    print(f"saved in {out} after {time.monotonic() - start:.0f} s", flush=True)


def train_step(model: Any, batch: tuple[Any, ...]) -> tuple[float, float]:
    """Add gradients of the weighted loss; return answer loss and share of tokens guessed right."""
    import torch

    ids, places, weights, layout = batch
    nothing = torch.zeros(1, 1, 1, 1)  # no mask: who sees whom follows from the layout
    hidden = model.model(
        input_ids=ids, position_ids=places, attention_mask=nothing, layout=layout
    ).last_hidden_state
    chosen = weights[:, 1:] > 0
    logits = model.lm_head(hidden[:, :-1][chosen])
    targets, weights = ids[:, 1:][chosen], weights[:, 1:][chosen]
    losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    answers = weights == 1
    ((losses * weights).sum() / weights.sum()).backward()
    right = (logits.argmax(1) == targets)[answers].float().mean()
    return losses[answers].mean().item(), right.item()


def packed_attention(module: Any, q: Any, k: Any, v: Any, *_: Any, layout: Any, **__: Any) -> Any:
    """Attend within packs: a prefix to itself, every turn to the prefix and to itself.

    `q`, `k` and `v` are ``(1, heads, tokens, size)``, with fewer heads in `k` and `v`. `layout` is
    for each pack its prefix's length, the number of its turns and the tokens of each turn.
    """
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attend

    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    parts, start = [], 0
    for prefix, turns, size in layout:
        head = slice(start, start + prefix)
        body = slice(start + prefix, start + prefix + turns * size)
        parts.append(attend(q[:, :, head], k[:, :, head], v[:, :, head], is_causal=True))
        turns_of = [x[0, :, body].unflatten(1, (turns, size)).transpose(0, 1) for x in (q, k, v)]
        keys, values = (
            torch.cat((x[:, :, head].expand(turns, -1, -1, -1), y), 2)
            for x, y in zip((k, v), turns_of[1:], strict=True)
        )
        sees = torch.ones(size, prefix + size, dtype=torch.bool).tril(prefix)
        parts.append(attend(turns_of[0], keys, values, sees).transpose(0, 1).flatten(1, 2)[None])
        start = body.stop
    return torch.cat(parts, 2).transpose(1, 2), None


def batches(groups: dict[Any, Any], rng: np.random.Generator, args: Args) -> Iterator[Any]:
    """Yield batches of `packs` packs of several rules, pass after pass through the data."""
    while True:
        packs = []
        for prefix, turns in groups.items():
            # Turns of about the same length go together, since they are padded to one.
            lengths = [len(q) + len(a) + rng.normal(0, 4) for q, a in turns]
            pack: list[Any] = []
            for i in np.argsort(lengths):
                size = max(len(q) + len(a) for q, a in [*pack, turns[i]])
                if pack and len(prefix) + size * (len(pack) + 1) > args.tokens:
                    packs.append((prefix, pack))
                    pack = []
                pack.append(turns[i])
            packs.append((prefix, pack))
        order = rng.permutation(len(packs))
        for start in range(0, len(order) - args.packs + 1, args.packs):
            chosen = [packs[i] for i in order[start : start + args.packs]]
            yield collate(chosen, rng, args.prompt_weight)


def collate(packs: list[Any], rng: np.random.Generator, prompt_weight: float) -> tuple[Any, ...]:
    """Lay out packs one after another; return token ids, positions, loss weights and the layout.

    The positions of every turn go on from the prefix: the loss equals that of the turns alone.
    """
    import torch

    cells: list[tuple[int, int, float]] = []
    layout = []
    for prefix, turns in packs:
        start, size = len(prefix), max(len(q) + len(a) for q, a in turns)
        layout.append((start, len(turns), size))
        cells += zip(prefix, range(start), [0.0] + [prompt_weight] * (start - 1), strict=True)
        for question, answer in turns:
            rest = size - len(question) - len(answer)
            shown = 10 * prompt_weight if rng.random() < 0.1 else 0.0  # a tenth is enough
            ids = (*question, *answer, *(0,) * rest)
            weights = [shown] * len(question) + [1.0] * len(answer) + [0.0] * rest
            cells += zip(ids, range(start, start + size), weights, strict=True)
    return *(torch.tensor([column]) for column in zip(*cells, strict=True)), layout


def encode(folder: Path, drawn: list[TrainingSample]) -> dict[tuple[int, ...], list[Any]]:
    """Return tokenized questions and answers by their tokenized system text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = list({text for s in drawn for text in (s.prefix, s.prompt, s.answer + END)})
    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ids = {text: tuple(e.ids) for text, e in zip(texts, encodings, strict=True)}
    groups: dict[tuple[int, ...], list[Any]] = defaultdict(list)
    for s in drawn:
        groups[ids[s.prefix]].append((ids[s.prompt], ids[s.answer + END]))
    return groups


def build(folder: Path, args: Args) -> Any:
    """Return a new Llama, or the one in `folder` to go on with."""
    import torch
    from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM

    AttentionInterface.register("packed", packed_attention)
    if args.resume:
        model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
        model.model.norm.weight.data /= args.sharpen
    else:
        config = LlamaConfig(
            vocab_size=args.vocabulary,
            hidden_size=args.width,
            intermediate_size=args.hidden,
            num_hidden_layers=args.layers,
            num_attention_heads=args.heads,
            num_key_value_heads=args.groups,
            max_position_embeddings=LIMIT,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=0,
            pad_token_id=0,
        )
        model = LlamaForCausalLM(config)
        print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    model.set_attn_implementation("packed")
    return model


def save_tokenizer(folder: Path, drawn: list[TrainingSample], vocabulary: int) -> None:
    """Learn a vocabulary and write the tokenizer's files."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    # Digits stay single; everything between them may become one token, phrases as well as words,
    # since all prompts are made of the same sentences.
    phrases = pre_tokenizers.Split(Regex(r"\d|\n+|[^\d\n]+"), "isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([phrases, letters])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    rules = sorted({s.prefix for s in drawn})
    turns = [s.prompt + s.answer for s in drawn[:30_000]]
    tokenizer.train_from_iterator(rules * 3 + turns, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": LIMIT,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def save(folder: Path, model: Any, sharpen: float) -> None:
    from safetensors.torch import save_file

    tensors = dict(model.state_dict())
    tensors.pop("lm_head.weight", None)  # tied to the embeddings
    tensors["model.norm.weight"] = tensors["model.norm.weight"] * sharpen
    halves = {name: tensor.half() for name, tensor in tensors.items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})
    model.config.architectures = ["LlamaForCausalLM"]
    model.config.dtype = "float16"
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    for path in folder.iterdir():
        path.chmod(0o644)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for field in fields(Args):
        flag, default = f"--{field.name.replace('_', '-')}", field.default
        if default is False:
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(default), default=default)
    arguments = parser.parse_args()
    print(json.dumps(vars(arguments)), flush=True)
    main(Args(**vars(arguments)))
