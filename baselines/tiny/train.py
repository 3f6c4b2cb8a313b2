"""Train the tiny model: plays games with scripted players, then fits a Llama to their answers.

Run ``python -m llm_games.baselines.tiny.train --resume`` after a change of a prompt: it goes on
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
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.baselines.games.english_auction.thoughts import drills, thoughts
from llm_games.baselines.tiny.chat import END, SPECIAL, TEMPLATE
from llm_games.baselines.tiny.data import Sample, prompts_hashes, samples
from llm_games.baselines.tiny.runtime import WEIGHTS


@dataclass(frozen=True)
class Args:
    """What can be set on the command line."""

    out: str = str(WEIGHTS)
    """folder to write to"""
    resume: bool = False
    """go on from the weights and the tokenizer in `out`"""
    minutes: float = 60.0
    """wall-clock limit; the learning rate falls to zero at its end"""
    samples: int = 120_000
    """scripted answers to draw before training"""
    focus: str = ""
    """a game that is played three times as often, for a resumed run"""
    vocabulary: int = 2048
    """size of the byte-level vocabulary"""
    width: int = 128
    layers: int = 4
    heads: int = 4
    groups: int = 2
    """heads of keys and values"""
    hidden: int = 384
    """width of the feed-forward part"""
    tokens: int = 1400
    """tokens of a pack: one system text and the questions and answers that follow it"""
    packs: int = 4
    """packs of a step"""
    rate: float = 0.02
    """largest learning rate of the matrices (Muon)"""
    adam_rate: float = 0.004
    """largest learning rate of embeddings and norms (AdamW)"""
    sharpen: float = 1.5
    """factor on all logits when the weights are saved: fewer slips at temperature 1"""
    prompt_weight: float = 0.05
    """weight of a prompt token in the loss; an answer token has 1"""
    threads: int = 1
    seed: int = 0


def main(args: Args) -> None:
    """Draw data, train within the time limit, save along the way."""
    import torch

    start, out = time.monotonic(), Path(args.out)
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    drawn = list(samples(rng, args.samples, args.focus, {"planning": thoughts, "drills": drills}))
    print(f"{len(drawn)} samples after {time.monotonic() - start:.0f} s", flush=True)
    if not args.resume:
        save_tokenizer(out, drawn, args)
    groups = encode(out, drawn)
    model = build(out, args)
    optimizers = build_optimizers(model, args)
    begin = time.monotonic()
    share, shown, saved, mean = 0.0, 0, begin, np.zeros(2)
    while share < 1:
        for step, batch in enumerate(batches(groups, rng, args)):
            share = min(1.0, (time.monotonic() - begin) / (60 * args.minutes))
            if share == 1:
                break
            for optimizer, top in optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = top * schedule(share)
            loss, accuracy = train_step(model, batch)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimizer, _ in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            shown += batch["ids"].numel()
            mean += 0.05 * (np.array([loss, accuracy]) - mean)
            if step % 20 == 0:
                took = time.monotonic() - begin
                print(
                    f"{took:5.0f} s, {shown / 1e6:.2f} M tokens, answer loss {loss:.4f}, "
                    f"right {mean[1]:.4f}",
                    flush=True,
                )
            if time.monotonic() - saved > 120:
                save(out, model, args.sharpen)
                saved = time.monotonic()
    save(out, model, args.sharpen)
    print(f"saved in {out} after {time.monotonic() - start:.0f} s", flush=True)


def schedule(share: float) -> float:
    """Return the learning rate's factor: up in the first 3 %, then down a half cosine to 2 %."""
    return min(1.0, share / 0.03 + 0.02) * (0.51 + 0.49 * math.cos(math.pi * share))


def train_step(model: Any, batch: dict[str, Any]) -> tuple[float, float]:
    """Add gradients of the weighted loss; return answer loss and share of tokens guessed right."""
    import torch

    nothing = torch.zeros(1, 1, 1, 1)  # no mask: who sees whom follows from the layout
    hidden = model.model(
        input_ids=batch["ids"],
        position_ids=batch["places"],
        attention_mask=nothing,
        layout=batch["layout"],
    ).last_hidden_state[:, :-1]
    weights = batch["weights"][:, 1:]
    chosen = weights > 0
    logits = model.lm_head(hidden[chosen])
    targets, weights = batch["ids"][:, 1:][chosen], weights[chosen]
    losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    answers = weights == 1
    ((losses * weights).sum() / weights.sum()).backward()
    right = (logits.argmax(1) == targets)[answers].float().mean()
    return losses[answers].mean().item(), right.item()


def packed_attention(
    module: Any, q: Any, k: Any, v: Any, mask: Any, layout: Any, **_: Any
) -> tuple[Any, None]:
    """Attend within packs: a prefix to itself, every turn to the prefix and to itself.

    Args:
        module: the layer, unused.
        q, k, v: ``(1, heads, tokens, size)``, fewer heads in `k` and `v`.
        mask: unused.
        layout: for each pack, prefix length, number of turns and tokens of each turn.
    """
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attend

    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    parts, at = [], 0
    for prefix, turns, size in layout:
        head = slice(at, at + prefix)
        body = slice(at + prefix, at + prefix + turns * size)
        parts.append(attend(q[:, :, head], k[:, :, head], v[:, :, head], is_causal=True))
        own = [x[0, :, body].unflatten(1, (turns, size)).transpose(0, 1) for x in (q, k, v)]
        keys, values = (
            torch.cat((x[:, :, head].expand(turns, -1, -1, -1), y), 2)
            for x, y in zip((k, v), own[1:], strict=True)
        )
        sees = torch.ones(size, prefix + size, dtype=torch.bool).tril(prefix)
        parts.append(attend(own[0], keys, values, sees).transpose(0, 1).flatten(1, 2)[None])
        at = body.stop
    return torch.cat(parts, 2).transpose(1, 2), None


def batches(
    groups: dict[Any, Any], rng: np.random.Generator, args: Args
) -> Iterator[dict[str, Any]]:
    """Yield one pass through the data, each batch of `packs` packs of several rules."""
    packs = []
    for prefix, turns in groups.items():
        # Turns of about the same length go together, since they are padded to one.
        lengths = [len(q) + len(a) + rng.normal(0, 4) for q, a in turns]
        pack: list[Any] = []
        for i in np.argsort(lengths):
            size = max((len(q) + len(a) for q, a in [*pack, turns[i]]))
            if pack and len(prefix) + size * (len(pack) + 1) > args.tokens:
                packs.append((prefix, pack))
                pack = []
            pack.append(turns[i])
        packs.append((prefix, pack))
    order = rng.permutation(len(packs))
    for at in range(0, len(order) - args.packs + 1, args.packs):
        yield collate([packs[i] for i in order[at : at + args.packs]], rng, args.prompt_weight)


def collate(packs: list[Any], rng: np.random.Generator, prompt_weight: float) -> dict[str, Any]:
    """Lay out packs one after another: token ids, positions, loss weights and the layout.

    The positions of every turn go on from the prefix, so that the loss equals that of the turns
    one by one.
    """
    import torch

    ids: list[int] = []
    places: list[int] = []
    weights: list[float] = []
    layout = []
    for prefix, turns in packs:
        size = max(len(q) + len(a) for q, a in turns)
        layout.append((len(prefix), len(turns), size))
        ids += prefix
        places += range(len(prefix))
        weights += [0.0] + [prompt_weight] * (len(prefix) - 1)
        for question, answer in turns:
            rest = size - len(question) - len(answer)
            shown = 10 * prompt_weight * (rng.random() < 0.1)  # a tenth of the questions is enough
            ids += (*question, *answer, *(0,) * rest)
            places += range(len(prefix), len(prefix) + size)
            weights += [shown] * len(question) + [1.0] * len(answer) + [0.0] * rest
    arrays = {"ids": np.array([ids]), "places": np.array([places])}
    arrays["weights"] = np.array([weights], np.float32)
    return {name: torch.from_numpy(a) for name, a in arrays.items()} | {"layout": layout}


def encode(folder: Path, drawn: list[Sample]) -> dict[tuple[int, ...], list[Any]]:
    """Return tokenized questions and answers by their tokenized system text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = [text for s in drawn for text in (s.prefix, s.prompt, s.answer + END)]
    unique = list(dict.fromkeys(texts))
    found = tokenizer.encode_batch_fast(unique, add_special_tokens=False)
    ids = {text: tuple(e.ids) for text, e in zip(unique, found, strict=True)}
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
        model = LlamaForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="packed"
        )
        model.model.norm.weight.data /= args.sharpen
        return model
    settings: dict[str, Any] = {"attn_implementation": "packed"}
    config = LlamaConfig(
        vocab_size=args.vocabulary,
        hidden_size=args.width,
        intermediate_size=args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        num_key_value_heads=args.groups,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
        **settings,
    )
    model = LlamaForCausalLM(config)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    return model


def build_optimizers(model: Any, args: Args) -> list[tuple[Any, float]]:
    """Return the optimizers with their largest learning rates: Muon for matrices, else AdamW."""
    import torch

    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim < 2 or "embed" in n]
    return [
        (torch.optim.Muon(matrices, lr=args.rate, weight_decay=0.01), args.rate),
        (torch.optim.AdamW(others, lr=args.adam_rate, betas=(0.9, 0.98)), args.adam_rate),
    ]


def save_tokenizer(folder: Path, drawn: list[Sample], args: Args) -> None:
    """Learn the vocabulary and write the tokenizer's files."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    # Digits stay single; everything between them may become one token, phrases as well as words,
    # since all prompts are made of the same sentences.
    pattern = Regex(r"\d|\n+|[^\d\n]+")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=args.vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    rules = {s.prefix for s in drawn}
    tokenizer.train_from_iterator(
        [*sorted(rules) * 3, *(s.prompt + s.answer for s in drawn[:30_000])], trainer
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 2048,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def save(folder: Path, model: Any, sharpen: float) -> None:
    """Write the weights in half precision, the config, and the hash of the prompts."""
    import torch
    from safetensors.torch import save_file

    tensors = {k: v.detach().clone() for k, v in model.state_dict().items()}
    tensors.pop("lm_head.weight", None)  # tied to the embeddings
    tensors["model.norm.weight"] *= sharpen
    tensors = {k: v.to(torch.float16) for k, v in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    model.config.architectures = ["LlamaForCausalLM"]
    model.config.dtype = "float16"
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    about = {
        "prompts_sha256": prompts_hashes(),
        "retrain": "python -m llm_games.baselines.tiny.train",
    }
    (folder / "trained_on.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")
    for path in folder.iterdir():
        path.chmod(0o644)


def parse() -> Args:
    """Read the command line: one flag for each argument."""
    parser = argparse.ArgumentParser(description=__doc__)
    for field in fields(Args):
        flag = f"--{field.name.replace('_', '-')}"
        if isinstance(field.default, bool):
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(field.default), default=field.default)
    return Args(**vars(parser.parse_args()))


if __name__ == "__main__":
    arguments = parse()
    print(json.dumps(asdict(arguments)), flush=True)
    main(arguments)
