"""TRL: GRPO of the embedded language model, which answers in words in one seat."""

import os
import tempfile

os.environ |= {"TRL_EXPERIMENTAL_SILENCE": "1", "HF_HUB_OFFLINE": "1"}

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trial import report
from trl import GRPOConfig, GRPOTrainer

import llm_games as lg
from llm_games.baselines.tiny.runtime import WEIGHTS
from llm_games.wrappers.single_agent import SingleAgentEnv

GROUP = 4
"""Games that share their chance."""
LONGEST = 64
"""Tokens of a reply."""


def score(completions, payoff, legal, **_):
    """Pay what the game paid until the next turn, and a little for a reply that is a move."""
    return [paid + 0.1 * fine for paid, fine in zip(payoff, legal, strict=True)]


def played(game, seeds, trainer, tokenizer):
    """Play a turn in a game of each seed: prompts and replies in tokens, and what came of them."""
    rows = {"prompt_ids": [], "completion_ids": [], "payoff": [], "legal": []}
    for seed in seeds:
        env = SingleAgentEnv(game, opponents=lg.player("random"), obs_mode="text", actions="text")
        observation, _ = env.reset(seed=seed)
        chat = [{"role": "user", "content": observation["text"]}]
        ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
        ids = ids[-1900:]
        with torch.no_grad():
            found = trainer.model.generate(
                torch.tensor([ids]), do_sample=True, max_new_tokens=LONGEST, use_cache=True
            )[0, len(ids) :].tolist()
        text = tokenizer.decode(found, skip_special_tokens=True)
        _, reward, _, _, info = env.step(text)
        rows["prompt_ids"].append(ids)
        rows["completion_ids"].append(found)
        rows["payoff"].append(reward)
        rows["legal"].append(info["outcome"] == "valid")
    return rows | {"logprobs": None}


def grpo(game):
    torch.manual_seed(1)
    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS)
    model = AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32)
    before, scores = model.model.norm.weight.detach().clone(), set()

    def rollout(prompts, trainer):
        rows = played(game, [int(p[0]["content"]) for p in prompts], trainer, tokenizer)
        scores.update(score(None, **rows))
        return rows

    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            folder,
            per_device_train_batch_size=GROUP,
            num_generations=GROUP,
            max_steps=1,
            learning_rate=1e-3,
            max_completion_length=LONGEST,
            gradient_checkpointing=False,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
        )
        seeds = [{"prompt": [{"role": "user", "content": str(seed)}]} for seed in range(8)]
        trainer = GRPOTrainer(
            model,
            score,
            args=config,
            train_dataset=Dataset.from_list(seeds),
            processing_class=tokenizer,
            rollout_func=rollout,
        )
        trainer.train()
    after = model.model.norm.weight.detach()
    assert torch.isfinite(after).all()
    assert len(scores) == 1 or not torch.equal(before, after), "nothing was learned"


if __name__ == "__main__":
    report({"GRPO, text": grpo})
