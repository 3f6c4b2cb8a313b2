"""The client for local models, with a small random Llama made here."""

import asyncio
import json
import shutil
import sys

import pytest
from playing import each_row

from llm_games.errors import BadParameter
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.view import View
from llm_games.wrappers.clients.base import Client, ClientError, Completion, Request, Sampling
from llm_games.wrappers.clients.transformers import TransformersClient, _sample
from llm_games.wrappers.llm_policy import LLMPolicy

pytestmark = pytest.mark.slow

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
CONTEXT = 512


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("llama")
    signs = ["<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytes_only = Tokenizer(models.BPE({sign: i for i, sign in enumerate(signs)}, []))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = decoders.ByteLevel()
    bytes_only.add_special_tokens(["<end>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_only, eos_token="<end>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(signs),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=CONTEXT,
        bos_token_id=None,
        eos_token_id=0,
        initializer_range=0.5,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def client(folder):
    client = TransformersClient(folder, max_tokens=40)
    yield client
    asyncio.run(client.close())


def ask(text="hi", seed=0, **settings):
    return Request(({"role": "user", "content": text},), sampling=Sampling(**settings), seed=seed)


def run(client, *requests):
    """Complete all requests at once; errors come back as values."""

    async def go():
        calls = (client.complete(request) for request in requests)
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(go())


ASKS = [
    ask("x" * (7 * i % 50), seed=i, temperature=[1.0, 0.5, 0.0, None][i % 4], max_tokens=20 + i)
    for i in range(12)
]


def test_a_reply_does_not_depend_on_its_batch(client):
    together = run(client, *ASKS)
    alone = [run(client, request)[0] for request in ASKS]
    assert [c.text for c in together] == [c.text for c in alone]
    assert [c.finish for c in together] == [c.finish for c in alone]
    assert [c.tokens_out for c in together] == [c.tokens_out for c in alone]


def test_calls_that_wait_together_are_one_batch(folder):
    client, sizes = TransformersClient(folder, max_batch=8, max_tokens=5), []
    answer = client._answer
    client._answer = lambda jobs: (sizes.append(len(jobs)), answer(jobs))
    run(client, *ASKS)
    asyncio.run(client.close())
    assert sum(sizes) == 12
    assert max(sizes) == 8


def test_seed_and_temperature_decide_the_reply(client):
    first, same, other = run(client, ask(seed=1), ask(seed=1), ask(seed=2))
    assert first.text == same.text != other.text
    cold = run(client, ask(seed=1, temperature=0), ask(seed=2, temperature=0))
    assert cold[0].text == cold[1].text


def test_top_p_rules_out_what_is_unlikely(client):
    def texts(**how):
        return [reply.text for reply in run(client, *(ask(seed=s, **how) for s in range(8)))]

    assert texts(top_p=1e-6) == texts(temperature=0)
    assert texts(top_p=1) == texts()
    some = texts(top_p=0.4)
    assert some != texts()
    assert len(set(some)) > 1


def test_sampling_follows_the_models_probabilities(client):
    import torch

    model, tokenizer = client._loaded or (run(client, ask()), client._loaded)[1]
    text = tokenizer.apply_chat_template(
        list(ask().messages), tokenize=False, add_generation_prompt=True
    )
    ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        wanted = model(ids).logits[0, -1].div(2.0).softmax(-1)
    n, chat = 2000, ids[0].tolist()
    got = _sample(model, [(ask(temperature=2.0, seed=seed), chat, 1) for seed in range(n)])
    share = torch.bincount(torch.tensor(got)[:, 0], minlength=len(wanted)) / n
    assert ((share - wanted).abs() <= 4 * (wanted / n).sqrt() + 2 / n).all()


def test_limits_and_ends_are_told(client):
    (cut,) = run(client, ask(max_tokens=3, seed=3))
    assert (cut.finish, cut.tokens_out) == ("length", 3)
    (default,) = run(client, ask(seed=3))
    assert default.tokens_out <= 40
    whole = run(client, *(ask(seed=seed, max_tokens=400) for seed in range(16)))
    ended = [c for c in whole if c.finish == "stop"]
    assert ended
    assert all("<end>" not in c.text for c in ended)
    prompt = len("<user>hi<assistant>") + 1
    assert {c.tokens_in for c in whole} == {prompt}
    assert all(c.model == client.name and c.latency > 0 for c in whole)


def test_a_chat_too_long_fails_alone(client):
    long, short = run(client, ask("y" * CONTEXT), ask())
    assert isinstance(long, ClientError)
    assert f"reads at most {CONTEXT}" in str(long)
    assert isinstance(short, Completion)
    near = run(client, ask("y" * (CONTEXT - 30), max_tokens=500))[0]
    assert near.tokens_in + near.tokens_out <= CONTEXT


def test_a_template_without_system_text_hears_it_from_the_user(client):
    (plain,) = run(client, ask())
    tokenizer = client._loaded[1]
    strict = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    try:
        tokenizer.chat_template = strict + TEMPLATE
        chat = ({"role": "system", "content": "rules"}, {"role": "user", "content": "go"})
        (merged,) = run(client, Request(chat))
        assert merged.tokens_in == len("<user>rules\n\ngo<assistant>") + 1
        tokenizer.chat_template = "{{ raise_exception('never') }}"
        assert "does not take this chat: never" in str(run(client, ask())[0])
    finally:
        tokenizer.chat_template = TEMPLATE
    assert run(client, ask())[0].text == plain.text


def test_a_closed_client_can_be_used_again(folder):
    client = TransformersClient(folder, max_tokens=5)
    first = run(client, ask())[0]
    asyncio.run(client.close())
    asyncio.run(client.close())
    assert client._loaded is None
    assert run(client, ask())[0].text == first.text
    asyncio.run(client.close())


def test_a_cancelled_call_does_not_hold_up_others(client):
    async def go():
        first = asyncio.create_task(client.complete(ask()))
        second = asyncio.create_task(client.complete(ask()))
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.gather(first, second, return_exceptions=True)

    first, second = asyncio.run(go())
    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(second, Completion)


# -- what can be wrong with a model ----------------------------------------------------------------


def test_a_failure_is_told_to_each_call(client, monkeypatch):
    def fail(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr("llm_games.wrappers.clients.transformers._sample", fail)
    one, other = run(client, ask(), ask("you"))
    assert str(one) == str(other) == f"{client.name}: sampling failed: RuntimeError: out of memory"
    assert one is not other


def broken(folder, tmp_path, *gone):
    copy = shutil.copytree(folder, tmp_path / "model")
    for name in gone:
        for file in copy.glob(name):
            file.unlink()
    return copy


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (["*.safetensors"], "has no weights"),
        (["config.json"], "has no config.json"),
        (["tokenizer*"], "has no tokenizer"),
    ],
)
def test_a_folder_that_lacks_a_part_is_refused_at_once(folder, tmp_path, gone, words):
    with pytest.raises(ClientError, match=words):
        TransformersClient(broken(folder, tmp_path, *gone))


def test_a_model_without_a_chat_template_is_refused(folder, tmp_path):
    (failure,) = run(TransformersClient(broken(folder, tmp_path, "chat_template*")), ask())
    assert "has no chat template: take one tuned for chats" in str(failure)
    assert not failure.transient


def test_a_broken_model_is_named(folder, tmp_path):
    copy = broken(folder, tmp_path)
    (copy / "config.json").write_text("{")
    assert f"cannot load the model {copy}" in str(run(TransformersClient(copy), ask())[0])
    (copy / "config.json").write_text(json.dumps({"model_type": "nonsense"}))
    assert f"cannot load the model {copy}" in str(run(TransformersClient(copy), ask())[0])


@each_row("path", ["./nothing", "/no/such/folder", "~/no-such-folder", "a/b/c"])
def test_a_folder_that_is_not_there_is_refused_at_once(path):
    with pytest.raises(ClientError, match="there is no folder"):
        TransformersClient(path)


def test_the_hub_is_not_asked_unless_one_says_so(monkeypatch):
    import socket

    def refuse(*arguments, **settings):
        raise AssertionError("the network was used")

    client = TransformersClient("some-org/no-such-model")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    text = str(run(client, ask())[0])
    assert "no folder here and not in the Hugging Face cache; fetch it: hf download" in text


def test_a_device_that_is_not_there_is_named(folder):
    client = TransformersClient(folder, device="cuda:99")
    assert "cannot go to device 'cuda:99'" in str(run(client, ask())[0])


def test_missing_packages_and_bad_arguments(folder, monkeypatch):
    with pytest.raises(BadParameter, match="max_batch"):
        TransformersClient(folder, max_batch=0)
    with pytest.raises(BadParameter, match="max_tokens"):
        TransformersClient(folder, max_tokens=0)
    assert isinstance(TransformersClient(folder), Client)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ClientError, match=r"pip install 'llm-games\[transformers\]'"):
        TransformersClient(folder)


def test_it_sits_at_a_table(client):
    game = PublicGoods(players=2, rounds=1)
    view = View.of(game, game.reset(0), 0)
    policy = LLMPolicy(client, memory="none", max_tokens=10, max_attempts=2)
    with pytest.raises(ClientError, match="smaller memory"):
        policy.act(view, policy.start(game, 0, 1))
