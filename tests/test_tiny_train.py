"""The training script: packs equal single prompts, and a few seconds of it make a model."""

from __future__ import annotations

import numpy as np
import pytest

from llm_games.baselines.tiny.runtime import WEIGHTS, Ask, TinyLM
from llm_games.benchmarks.studies.tiny import samples as data

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from llm_games.benchmarks.studies.tiny import __main__ as train  # noqa: E402

pytestmark = pytest.mark.slow


def test_packed_loss_equals_single_loss():
    drawn = list(data.samples(np.random.default_rng(1), 80))
    groups = train.encode(WEIGHTS, drawn)
    prefixes = sorted(groups, key=lambda p: len(groups[p]))[-2:]
    packs = [(p, groups[p][:3]) for p in prefixes]
    llama = train.build(WEIGHTS, train.Args(resume=True, sharpen=1.0))
    plain = transformers.LlamaForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32)
    loss, _ = train.train_step(llama, train.collate(packs, np.random.default_rng(0), 0.0))
    single = []
    for prefix, turns in packs:
        for question, answer in turns:
            ids = torch.tensor([[*prefix, *question, *answer]])
            n = len(answer)
            logits = plain(ids).logits[0, -n - 1 : -1]
            single.append(torch.nn.functional.cross_entropy(logits, ids[0, -n:], reduction="none"))
    assert loss == pytest.approx(torch.cat(single).mean().item(), abs=1e-5)


def test_training_from_scratch_and_on(tmp_path):
    args = train.Args(
        out=str(tmp_path), minutes=0.012, samples=200, vocabulary=512, width=32, hidden=64, packs=2
    )
    train.main(args)
    before = TinyLM(tmp_path).llama.embed.copy()
    train.main(train.Args(out=str(tmp_path), minutes=0.012, samples=200, resume=True, packs=2))
    model = TinyLM(tmp_path)
    assert not np.array_equal(model.llama.embed, before)
    assert len(model.generate([Ask("<|system|>", "<|user|>", max_tokens=3)])[0].tokens) <= 3
