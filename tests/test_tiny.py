"""The embedded language model: prompts, sampling, constraints, client, and the shipped weights."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from itertools import count

import numpy as np
import pytest
from playing import each_row, sampled

from llm_games.baselines.games.english_auction.graded_notes import BeliefAside
from llm_games.baselines.players import make_player, mind_of
from llm_games.baselines.tiny.chat_template import TEMPLATE, render
from llm_games.baselines.tiny.client import TinyClient, legal, schema_allows, whole
from llm_games.baselines.tiny.model import TinyModelError
from llm_games.baselines.tiny.runtime import WEIGHTS, Ask, TinyLM, _nucleus
from llm_games.benchmarks.papers.gamma_bench.scores import GAMES
from llm_games.benchmarks.studies.tiny import evaluate
from llm_games.benchmarks.studies.tiny import samples as data
from llm_games.benchmarks.studies.tiny.scripts import answer
from llm_games.benchmarks.studies.tiny.talks import sources
from llm_games.questions import Bid, Choice, Integer, Real, SealedBid, Shares, Target
from llm_games.registry import rulebook
from llm_games.view import View
from llm_games.words import PERSONAS, Prompts
from llm_games.wrappers.clients.base import Client, Request, Sampling
from llm_games.wrappers.clients.mock import MockClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.mind import Planning
from llm_games.wrappers.planning import PlanningPolicy

WORDINGS = ("v1", "v2", "v3", "v4", "v5")
CLASSICS = (
    *("matrix_game", "bargaining", "deal_or_no_deal", "trust_game"),
    *("minimum_effort", "money_request", "travelers_dilemma"),
)


@pytest.fixture(scope="module")
def model():
    return TinyLM()


@pytest.fixture(scope="module")
def prompts():
    rng = np.random.default_rng(7)
    names = [name for name in data.VARIANTS if name not in sources()]
    drawn = [s for name in names for s in data.episode(rulebook(name), rng)]
    return [(drawn[i].prefix, drawn[i].prompt) for i in rng.permutation(len(drawn))[:64]]


# -- the prompts ---------------------------------------------------------------------------------


def test_weights_are_small_and_readable_by_all():
    files = [path for path in WEIGHTS.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 4e6
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in files)


def test_only_rules_and_last_question_are_read():
    chat = [
        {"role": "system", "content": " rules "},
        {"role": "user", "content": "old"},
        {"role": "assistant", "content": "answer"},
        {"role": "user", "content": "new\n"},
    ]
    assert render(chat) == ("<|system|>rules<|end|>", "<|user|>new<|end|><|assistant|>")
    assert render([]) == ("<|system|><|end|>", "<|user|><|end|><|assistant|>")


def test_template_is_the_shipped_one():
    config = json.loads((WEIGHTS / "tokenizer_config.json").read_text("utf-8"))
    assert config["chat_template"] == TEMPLATE


@pytest.mark.parametrize(
    ("name", "persona"),
    [pair for i, n in enumerate(data.VARIANTS) for pair in ((n, None), (n, PERSONAS[i % 3]))],
)
def test_scripts_answer_legally(name, persona):
    rng = np.random.default_rng(3)
    for variant in ({}, *data.VARIANTS[name]):
        settings = data.ALWAYS.get(name, {}) | variant | {"talk": {"turns": 0}}
        game = rulebook(name, **settings)
        state = game.reset(int(rng.integers(2**31)))
        steps = count()
        while not state.over and next(steps) < 60:
            moves = {}
            for seat in np.flatnonzero(game.asked(state)).tolist():
                view = View.of(game, state, seat)
                moves[seat], reason = answer(view, persona, rng)
                reply = view.question.reply(moves[seat])
                assert view.question.allows(reply)
                assert '"' not in reason
            state, outcome = game.step(state, game.assemble(state, moves))
            assert not outcome.broke.any()


@pytest.mark.parametrize("name", [name for name in data.VARIANTS if name not in sources()])
@pytest.mark.parametrize("place", [0, -1])
def test_samples_are_what_the_policy_asks(name, place):
    """The training prompts are those of `LLMPolicy`, to the letter."""
    game = rulebook(name, **[{}, data.VARIANTS[name][-1]][place])
    state = game.reset(0)
    seat = int(np.flatnonzero(game.asked(state))[0])
    view = View.of(game, state, seat)
    seen = []

    class Spy(TinyClient):
        async def complete(self, request):
            seen.append(request)
            return await super().complete(request)

    for persona in (None, "selfish"):
        policy = LLMPolicy(Spy(constrained=True), prompts="v2", persona=persona)
        policy.act(view, policy.start(game, seat, 1))
        ours = data.sample(Prompts(name, "v2"), view, persona, False, np.random.default_rng(1))
        assert render(seen[-1].messages) == (ours.prefix, ours.prompt)


# -- sampling ------------------------------------------------------------------------------------


def test_a_reply_does_not_depend_on_its_company(model, prompts):
    asks = [Ask(*prompt, seed=(i, 0), max_tokens=60) for i, prompt in enumerate(prompts[:32])]
    together = model.generate(asks)
    alone = [model.generate([ask])[0] for ask in asks]
    split = model.generate(asks[:11]) + model.generate(asks[11:])
    assert [r.text for r in together] == [r.text for r in alone] == [r.text for r in split]
    # Kernels of some processors add up a batch in another order: the last digits may differ.
    for one, other in zip(together, alone, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, rel=1e-3, abs=1e-3)


def test_top_p_rules_out_what_is_unlikely(model, prompts):
    def texts(**how):
        asks = [Ask(*prompts[0], seed=(s,), temperature=2, max_tokens=8, **how) for s in range(12)]
        return [reply.text for reply in model.generate(asks)]

    cold = model.generate([Ask(*prompts[0], temperature=0, max_tokens=8)])[0].text
    assert texts(top_p=1e-6) == [cold] * 12
    assert texts(top_p=1) == texts() != texts(top_p=0.5)
    three = [0, 3, 1]
    for scores, top_p, kept in ((three, 0.8, [1]), (three, 0.9, [1, 2]), ([1, 1], 0.5, [0])):
        reach = _nucleus(np.array(scores, np.float32), top_p)
        assert np.flatnonzero(reach > -1e6).tolist() == kept


def test_seed_and_temperature(model, prompts):
    texts = {
        t: [
            r.text
            for r in model.generate([Ask(*prompts[0], seed=(s,), temperature=t) for s in range(40)])
        ]
        for t in (0, 1, 2)
    }
    assert len(set(texts[0])) == 1
    assert len(set(texts[2])) > len(set(texts[1]))
    again = model.generate([Ask(*prompts[0], seed=(s,), temperature=1) for s in range(40)])
    assert [r.text for r in again] == texts[1]


def test_logprobs_are_those_of_the_samples(model):
    """The share of a first token among many samples is its reported probability."""
    hello = render([{"role": "user", "content": "Hello"}])
    asks = [Ask(*hello, seed=(s,), max_tokens=1, top=2) for s in range(3000)]
    replies = [reply for reply in model.generate(asks) if reply.tokens]
    first, logprob = replies[0].top[0][0]  # of the same distribution in all of them
    share = sum(reply.tokens == [first] for reply in replies) / len(asks)
    assert share == pytest.approx(np.exp(logprob), abs=0.04)
    for reply in replies:
        assert len(reply.tokens) == len(reply.logprobs) == len(reply.top) == 1
        assert reply.logprobs[0] <= reply.top[0][0][1]
        assert reply.top[0][0][1] >= reply.top[0][1][1]


def test_limits(model, prompts):
    reply = model.generate([Ask(*prompts[0], max_tokens=2)])[0]
    assert (len(reply.tokens), reply.finish) == (2, "length")
    whole_reply = model.generate([Ask(*prompts[0], temperature=0)])[0]
    assert whole_reply.finish == "stop"
    cut = model.generate([Ask(*prompts[0], temperature=0, stop=("}",))])[0]
    assert cut.text == whole_reply.text.partition("}")[0]


def test_long_and_strange_texts_do_no_harm(model):
    asks = [
        Ask("<|system|>" + "rules " * 5000, "<|user|>" + "1 2 3 " * 5000, max_tokens=5),
        Ask(
            "<|system|>\u4f60\u597d \U0001f600<|end|>",
            "<|user|>\x00?<|end|><|assistant|>",
            max_tokens=5,
        ),
    ]
    assert all(len(reply.tokens) <= 5 for reply in model.generate(asks))


QUESTIONS = [
    Integer("bid", 0, 7),
    Integer("bid", 95, 130),
    Choice("decision", {"go": 1, "stay": 0}),
    Target("target", {"player_2": 2, "player_11": 11}, {}, {}, 12),
    Shares("proposal", (3, 4, 5, 6), 100, 6),
    Bid("bid", 1100, 10_000),
    Bid("bid", 1100, 1000),
    Real("answer", 0, 52_500, 2),
    SealedBid("bid", 0, 255, 0),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: type(q).__name__)
@pytest.mark.parametrize("reasoning", [False, True])
def test_constrained_replies_are_legal_whatever_is_asked(model, question, reasoning):
    """Even where the prompt is of another game, at a high temperature."""
    prompt = render([{"role": "system", "content": "Hello."}, {"role": "user", "content": "And?"}])
    allows = legal(question, reasoning)
    replies = model.generate(
        [
            Ask(*prompt, seed=(s,), temperature=1.5, max_tokens=400, allows=allows, complete=whole)
            for s in range(12)
        ]
    )
    for reply in replies:
        question.read(json.loads(reply.text, parse_float=Decimal)[question.key])
        assert reply.finish == "stop"
        assert list(json.loads(reply.text)) == ["explanation"] * reasoning + [question.key]


@each_row("question", QUESTIONS, ids=lambda q: type(q).__name__)
def test_our_schemas_constrain_like_the_questions(question):
    rng = np.random.default_rng(0)
    allows = schema_allows(question.schema())
    for _ in range(20):
        reply = question.reply(sampled(question, rng))
        assert all(allows(reply[:end]) for end in range(len(reply) + 1))
        assert not allows(reply + "}")
    assert not allows('{"other": ')
    assert schema_allows(question.schema(reasoning=True))('{"explanation": "so", "')


def test_schemas_of_several_keys_constrain_like_the_forms():
    truth = {"remaining_budget": 3, "total_profits": {"Ann": 1}, "winning_bids": {"Ann": {}}}
    form = BeliefAside("belief", "Ann", truth, ("Widget A",))
    allows = schema_allows(form.schema(reasoning=True))
    reply = '{"explanation": "so", "summary": "a", "remaining_budget": 3, "total_profits": {"Ann": '
    assert all(allows(reply[:end]) for end in range(len(reply) + 1))
    assert not allows(reply + '"')
    assert not allows('{"explanation": "' + "a" * 300)


def test_explanations_end():
    allows = legal(Integer("bid", 0, 7), reasoning=True)
    assert allows('{"explanation": "well, yes", "bid": 7}')
    assert not allows('{"explanation": "a\\n')
    assert not allows('{"explanation": "' + "a" * 1000)


@each_row(
    "schema",
    [
        {"type": "array"},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/b"}]}}},
    ],
)
def test_other_schemas_are_refused(schema):
    with pytest.raises(ValueError, match="json_schema must be"):
        schema_allows(schema)


# -- the client ----------------------------------------------------------------------------------


def request(name="public_goods", seed=0, **settings):
    game = rulebook(name)
    state = game.reset(0)
    seat = int(np.flatnonzero(game.asked(state))[0])
    view = View.of(game, state, seat)
    texts = Prompts(name)
    messages = (
        {"role": "system", "content": texts.rules(game, seat)},
        {"role": "user", "content": texts.request(view)},
    )
    return Request(messages, view.question, sampling=Sampling(**settings), seed=seed)


def test_client_batches_what_waits():
    client = TinyClient()
    sizes = []
    inner = client._batcher.model.generate
    client._batcher.model.generate = lambda asks: sizes.append(len(asks)) or inner(asks)

    async def ask(count):
        return await asyncio.gather(*(client.complete(request(seed=s)) for s in range(count)))

    first = asyncio.run(ask(100))
    assert sizes == [64, 36]
    assert asyncio.run(ask(30)) is not None  # and in another event loop
    alone = asyncio.run(client.complete(request(seed=5)))
    assert alone.text == first[5].text
    assert alone.tokens_in > alone.tokens_out > 0
    assert isinstance(client, Client)
    assert client.name == "tiny"
    assert TinyClient(constrained=True).name == "tiny-constrained"


def test_client_gives_errors_to_those_who_asked():
    client = TinyClient()
    bad = request()
    client._batcher.model.generate = lambda asks: 1 / 0
    with pytest.raises(ZeroDivisionError):
        asyncio.run(client.complete(bad))


@pytest.mark.parametrize(
    ("name", "reasoning"), [(name, bool(i % 2)) for i, name in enumerate(data.VARIANTS)]
)
def test_constrained_play_is_legal(name, reasoning):
    short = {
        "water_allocation": {"days": 2},
        "english_auction": {"items": "items_1"},
        "emergency_evacuation": {"players": 2, "max_rounds": 3},
    }
    game = rulebook(name, **short.get(name, {} if rulebook(name).turns else {"rounds": 2}))
    for client in (TinyClient(constrained=True), MockClient()):
        policy = LLMPolicy(client, prompts="v3", reasoning=reasoning)
        counts = asyncio.run(evaluate.play(game, policy, seed=1))
        assert {outcome for _, outcome in counts} == {"valid"}, client.name


def cells(game):
    for index, (label, (name, _)) in enumerate(evaluate.SETTINGS.items()):
        if name == game:
            wordings = WORDINGS if label in (*GAMES, *CLASSICS) else [WORDINGS[index % 5]]
            yield from ((label, wording) for wording in wordings)


@pytest.mark.toy
@pytest.mark.parametrize("game", data.VARIANTS)
def test_free_play_is_nearly_always_legal(game):
    """A prompt may change without a training; where this fails, the game is trained again."""
    counts = Counter()
    for label, wording in cells(game):
        policy = LLMPolicy(TinyClient(), prompts=wording)
        counts += evaluate.validity(policy, label, replies=200, seed=100)
    readable = counts["belief", "out_of_range"]
    legal = readable + sum(count for (_, outcome), count in counts.items() if outcome == "valid")
    assert legal / counts.total() >= 0.95
    for kind in {kind for kind, _ in counts}:  # moves, what is said, and asked beside
        assert evaluate.share(counts, kind) >= 0.9, kind


@pytest.mark.toy
@pytest.mark.parametrize("version", WORDINGS)
def test_free_thoughts_are_nearly_always_legal(version):
    policy = PlanningPolicy(TinyClient(), Planning(learning=True), mind_of, prompts=version)
    game = rulebook("english_auction", players=3, items="items_5", item_order="shuffled")
    counts = sum((asyncio.run(evaluate.play(game, policy, seed)) for seed in range(4)), Counter())
    for kind in ("plan", "move", "belief", "replan", "learn"):
        assert evaluate.share(counts, kind) >= 0.9, kind  # of small samples


@pytest.mark.slow
@pytest.mark.parametrize("player", ["tiny:constrained", "mock"])
def test_constrained_thoughts_are_legal(player):
    policy = make_player(player, learning=True, belief_checks=1)
    game = rulebook("english_auction", players=2, items="items_2")
    counts = asyncio.run(evaluate.play(game, policy, seed=7))
    for kind in ("plan", "move", "belief", "replan", "learn"):
        assert evaluate.share(counts, kind) == 1, kind


@pytest.mark.slow
def test_personas_differ():
    means = {}
    for persona in (None, *PERSONAS):
        policy = LLMPolicy(TinyClient(), persona=persona)
        game = rulebook("public_goods")
        view = View.of(game, game.reset(0), 0)
        given = [policy.act(view, policy.start(game, 0, s))[0].action for s in range(30)]
        means[persona] = np.mean(given)
    assert means["cooperative"] > means[None] + 2
    assert means[None] > means["selfish"] + 1


# -- folders that are no models ------------------------------------------------------------------


def test_a_folder_without_weights_says_what_is_missing(tmp_path):
    with pytest.raises(TinyModelError, match=r"config\.json, tokenizer\.json, model\.safetensors"):
        TinyClient(weights=tmp_path)
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(WEIGHTS / name, tmp_path)
    with pytest.raises(TinyModelError, match=r"model\.safetensors missing.*train"):
        TinyLM(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.json", "{", "cannot be read"),
        ("config.json", '{"architectures": ["GPT2LMHeadModel"]}', "must be of a LlamaForCausalLM"),
        ("tokenizer.json", "[]", "cannot be read"),
        ("model.safetensors", "no tensors", "cannot be read"),
    ],
)
def test_wrong_files_are_named(tmp_path, name, text, message):
    folder = shutil.copytree(WEIGHTS, tmp_path / "model")
    (folder / name).write_text(text)
    with pytest.raises(TinyModelError, match=message):
        TinyLM(folder)


# -- weight of the runtime -----------------------------------------------------------------------

ONE_ANSWER = """
import sys
from llm_games.baselines.tiny.runtime import Ask, TinyLM
print(TinyLM().generate([Ask("<|system|>Hi.<|end|>", "<|user|>Go?<|end|><|assistant|>")])[0].finish)
heavy = {"torch", "transformers", "openai", "pydantic"} & set(sys.modules)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(sorted(heavy), int(peak.split()[1]) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads its size from /proc")
def test_one_answer_is_quick_and_light():
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    seconds = []
    for _ in range(3):
        begin = os.times()
        out = subprocess.run(
            [sys.executable, "-c", ONE_ANSWER], env=environment, capture_output=True, check=True
        ).stdout.decode()
        end = os.times()  # of CPU, since others may be at work
        seconds.append(end.children_user + end.children_system - sum(begin[2:4]))
    heavy, size = out.splitlines()[1].rsplit(" ", 1)
    assert heavy == "[]"
    assert float(size) < 80  # MB
    assert min(seconds) < 1.5  # 0.3 s on a quiet machine


@pytest.mark.slow
def test_transformers_gives_the_same_text(model, prompts):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(WEIGHTS)
    llama = transformers.LlamaForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32)
    for prefix, prompt in prompts[:8]:
        chat = [
            {
                "role": "system",
                "content": prefix.removeprefix("<|system|>").removesuffix("<|end|>"),
            },
            {"role": "user", "content": "forgotten"},
            {"role": "assistant", "content": "forgotten"},
            {"role": "user", "content": prompt.removeprefix("<|user|>").partition("<|end|>")[0]},
        ]
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert text == prefix + prompt == "".join(render(chat))
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
        out = llama.generate(ids, max_new_tokens=60, do_sample=False)
        theirs = tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)
        ours = model.generate([Ask(prefix, prompt, temperature=0, max_tokens=60)])[0]
        assert (ours.tokens_in, ours.text) == (ids.shape[1], theirs)
