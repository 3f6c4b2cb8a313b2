"""GRPO: games as rollouts, by decision and as conversations; the script, and what breaks it."""

import json
import math
import os
import resource
import shutil
import signal
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
torch = pytest.importorskip("torch")
pytest.importorskip("trl")
# Transformers renames what TRL calls by its old name.
pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing:FutureWarning")

from transformers import AutoTokenizer  # noqa: E402

import llm_games as lg  # noqa: E402
from llm_games.baselines.regret import regret  # noqa: E402
from llm_games.baselines.tiny.chat_template import GROWING  # noqa: E402
from llm_games.baselines.tiny.runtime import WEIGHTS  # noqa: E402
from llm_games.baselines.training.harness import curve  # noqa: E402
from llm_games.errors import BadParameter, DiskFull, TrainingBroke, UnknownName  # noqa: E402
from llm_games.wrappers.clients.base import ContextOverflow  # noqa: E402
from llm_games.wrappers.clients.budget import BudgetExceeded  # noqa: E402
from llm_games.wrappers.grpo_rollout import GameRollout, LearnerGame, LearnerTurn, games, score  # noqa: E402
from llm_games.wrappers.policy import Decision, Policy  # noqa: E402

END = 0  # the embedded model's token for the end of a reply


@cache
def tokenizer():
    return AutoTokenizer.from_pretrained(WEIGHTS)


@cache
def growing():
    own = AutoTokenizer.from_pretrained(WEIGHTS)
    own.chat_template = GROWING
    return own


class Stub:
    """What a rollout takes of a trainer; `says(prompt)` is drawn from in place of a model."""

    def __init__(self, says, processing_class=None, context=2048):
        self.says, self.processing_class = says, processing_class or tokenizer()
        self.chat_template_kwargs, self.eos_token_ids = {}, [END]
        self.max_completion_length, self.asked = 40, []
        self.model = SimpleNamespace(
            training=True, config=SimpleNamespace(max_position_embeddings=context)
        )

    def _generate_single_turn(self, ids, images, fields, generations):
        assert (images, fields, generations) == (None, {}, 1)
        self.asked.append(len(ids))
        said = [self.says(self.processing_class.decode(one)) for one in ids]
        return [self.processing_class(text)["input_ids"] for text in said], None


def noisy(form, seed=0):
    rng = np.random.default_rng(seed)
    return lambda prompt: form(rng) + "<|end|>"


def prompts(*seeds, size=4):
    return [[{"role": "user", "content": str(seed)}] for seed in seeds for _ in range(size)]


class Played(Policy):
    name = "played"

    def __init__(self, moves):
        self.moves = moves

    def start(self, game, seat, seed):
        return 0

    def act(self, view, memory):
        return Decision(self.moves[memory]), memory + 1


FORMS = {
    "public_goods": (
        {"players": 3, "rounds": 3},
        lambda rng: f'{{"tokens_contributed": "{rng.integers(25)}"}}',
    ),
    "sealed_bid_auction": (
        {"players": 3, "rounds": 2, "valuation_draw": "random"},
        lambda rng: f'{{"bid": "{rng.integers(250)}"}}',
    ),
    "battle_royale": (
        {"players": 3},
        lambda rng: f'{{"action": "shoot", "target": "player_{rng.integers(3)}"}}',
    ),
}


# -- rollouts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("credit", ["decision", "conversation"])
def test_scores_are_what_the_game_pays_from_there_on(name, credit, monkeypatch):
    params, form = FORMS[name]
    rollout = GameRollout(name, opponents=lg.player("random"), credit=credit, **params)
    kept = []
    rows = rollout._rows
    monkeypatch.setattr(
        rollout, "_rows", lambda played, found, places: (
            kept.append((played, places)) or rows(played, found, places)
        ),
    )  # fmt: skip
    trainer = Stub(noisy(form), growing() if credit == "conversation" else None)
    torch.manual_seed(3)
    found = rollout(prompts(1, 2, 3), trainer)
    (played, places), *_ = kept
    assert len(played) == len(found["score"]) == 12
    assert name == "battle_royale" or len({*found["score"]}) > 3
    for game, place, paid, payoff in zip(
        played, places, found["score"], found["payoff"], strict=True
    ):
        seat = game.seed % rollout.game.players
        moves = [turn.decision.action for turn in game.turns]
        seats = [lg.player("random") for _ in range(rollout.game.players)]
        seats[seat] = Played(moves)
        episode = lg.play(rollout.game, seats, seed=game.seed)
        own = [float(step.outcome.rewards[seat]) for step in episode.steps]
        assert payoff == pytest.approx(sum(own))
        assert paid == pytest.approx(sum(own[game.turns[place].step :]))
        if credit == "conversation":
            assert paid == pytest.approx(payoff)


def test_a_group_decides_in_the_same_situation():
    params, form = FORMS["sealed_bid_auction"]
    rollout = GameRollout("sealed_bid_auction", opponents=lg.player("random"), **params)
    found = rollout(prompts(5, 6), Stub(noisy(form)))
    first, second = found["prompt_ids"][:4], found["prompt_ids"][4:]
    assert len({*map(tuple, first)}) == len({*map(tuple, second)}) == 1
    assert first[0] != second[0]
    assert len({*map(tuple, found["completion_ids"])}) > 2
    assert "env_mask" not in found
    assert found["logprobs"] is None


def test_any_decision_of_a_game_can_be_the_sample():
    params, form = FORMS["public_goods"]
    rollout = GameRollout("public_goods", opponents=lg.player("random"), **params)
    lengths = set()
    for seed in range(6):
        torch.manual_seed(seed)
        found = rollout(prompts(0, size=2), Stub(noisy(form)))
        lengths.add(tokenizer().decode(found["prompt_ids"][0]).count("Round 1:"))
        assert max(found["score"]) <= max(found["payoff"])
    texts = {tokenizer().decode(ids) for ids in found["prompt_ids"]}
    assert len(texts) == 1


def test_regret_discount_and_penalty():
    params, _ = FORMS["public_goods"]
    rollout = GameRollout(
        "public_goods", opponents=lg.player("fixed:5"), regret=regret, credit="conversation",
        discount=0.5, penalty=3.0, **params,
    )  # fmt: skip
    said = iter(['{"tokens_contributed": "4"}', "no", '{"tokens_contributed": "9"}'])
    trainer = Stub(lambda _: next(said) + "<|end|>", growing())
    trainer.model.training = False  # an evaluation may have groups of one
    found = rollout(prompts(0, size=1), trainer)
    lost = 1 - 2 / 3  # of each token that is given; nothing is given without a legal reply
    assert found["score"] == [pytest.approx(-(4 * lost + 0.5 * 3 + 0.25 * 9 * lost))]
    assert found["legal"] == [pytest.approx(2 / 3)]


def test_where_players_talk_only_moves_have_regret():
    rollout = lg.rollouts(
        "public_goods", players=3, rounds=2, talk={"turns": 1}, opponents="announcer:rational",
        credit="conversation", regret=True,
    )  # fmt: skip
    trainer = Stub(lambda _: '{"tokens_contributed": "6"}<|end|>', growing())
    found = rollout(prompts(1, size=2), trainer)
    assert found["score"] == pytest.approx([-2 * 6 * (1 - 2 / 3)] * 2)
    assert found["legal"] == [0.5, 0.5]  # what it says is no speech
    text = trainer.processing_class.decode(found["completion_ids"][0])
    assert text.count('{"tokens_contributed": "6"}') == 4


def test_rewards_from_a_turn_on():
    decisions = [LearnerTurn([], Decision(1), at) for at in (1, 2, 5)]
    game = LearnerGame(0, decisions, rewards=[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert game.to_go(0, 1.0) == 21
    assert game.to_go(1, 1.0) == 20
    assert game.to_go(2, 1.0) == 11
    assert game.to_go(0, 0.5) == 1 + 0.5 * (9 + 0.5 * 11)


def test_a_conversation_is_one_text_in_which_its_own_tokens_count():
    params, _ = FORMS["public_goods"]
    replies = ['{"tokens_contributed": "4"}', "", "I do not know", '{"tokens_contributed": "9"}']
    rollout = GameRollout(
        "public_goods", opponents=lg.player("fixed:5"), credit="conversation", seat=0,
        **params | {"rounds": 4},
    )  # fmt: skip
    own = growing()
    said = iter(replies)
    trainer = Stub(lambda _: next(said) + "<|end|>", own)
    trainer.model.training = False
    found = rollout(prompts(7, size=1), trainer)
    prompt, tokens = found["prompt_ids"][0], found["completion_ids"][0]
    mask = found["env_mask"][0]
    assert len(mask) == len(tokens)
    mine = own.decode([t for t, m in zip(tokens, mask, strict=True) if m])
    assert mine == "".join(f"{reply}<|end|>" for reply in replies)
    text = own.decode([*prompt, *tokens])
    assert text.count("<|system|>") == 1
    assert text.count("<|user|>") == text.count("<|assistant|>") == 4
    for number in (2, 3, 4):
        assert text.count(f"Round {number} of 4") <= 1  # nothing is told twice
    assert text.endswith('{"tokens_contributed": "9"}<|end|>')


def test_a_reply_that_was_cut_off_is_ended_for_the_model():
    params, _ = FORMS["public_goods"]
    rollout = GameRollout(
        "public_goods", opponents=lg.player("fixed:5"), credit="conversation", seat=0, **params
    )
    trainer = Stub(lambda _: "well", growing())  # no end
    trainer.model.training = False
    found = rollout(prompts(7, size=1), trainer)
    tokens, mask = found["completion_ids"][0], found["env_mask"][0]
    well = trainer.processing_class("well")["input_ids"]
    assert tokens[: len(well) + 1] == [*well, END]
    assert mask[: len(well) + 1] == [1] * len(well) + [0]


class Shoots(Policy):
    name = "shoots"

    def start(self, game, seat, seed):
        return None

    def act(self, view, memory):
        return Decision(2), None


@pytest.mark.parametrize("credit", ["decision", "conversation"])
def test_a_seat_that_has_nothing_to_decide_sits_down_in_another_game(credit):
    params = {"players": 3, "hit_rates": [50, 50, 50], "opponents": Shoots(), "credit": credit}
    rollout = GameRollout("battle_royale", seat=2, **params)
    trainer = Stub(noisy(FORMS["battle_royale"][1]), growing())
    seeds = range(1, 9)
    shot = [game.seed for game in rollout.play(seeds, trainer) if not game.turns]
    assert 0 < len(shot) < 8
    found = rollout(prompts(*seeds, size=2), trainer)
    assert found["prompt_ids"][::2] == found["prompt_ids"][1::2]  # a group is of one game still
    assert len(found["score"]) == 16


def test_a_seat_that_never_has_anything_to_decide():
    params = {"players": 3, "hit_rates": [100, 100, 100]}
    rollout = GameRollout("battle_royale", opponents=Shoots(), seat=2, **params)
    _, form = FORMS["battle_royale"]
    with pytest.raises(BadParameter, match="nothing to decide in 100 games"):
        rollout(prompts(1), Stub(noisy(form)))


def test_opponents_that_ask_models_are_asked_once_for_all_tables():
    params, form = FORMS["public_goods"]
    opponent = lg.player("tiny", client={"samples": 1, "cache": ":memory:"}, memory="none")
    rollout = GameRollout("public_goods", opponents=opponent, **params | {"rounds": 2})
    found = rollout(prompts(1, 2, size=2), Stub(noisy(form)))
    assert len(found["score"]) == 4


# -- bad input -------------------------------------------------------------------------------------


def test_what_a_rollout_cannot_be():
    for given, fault in [
        ({"credit": "token"}, (UnknownName, "credit")),
        ({"discount": 1.5}, (BadParameter, "discount")),
        ({"penalty": -1}, (BadParameter, "penalty")),
        ({"penalty": math.nan}, (BadParameter, "penalty")),
        ({"seat": 99}, (BadParameter, "seat")),
        ({"opponents": "random"}, (BadParameter, "policies")),
        ({"credit": "conversation", "player": {"memory": 2}}, (BadParameter, "memory")),
        ({"player": {"prompts": "v1", "reading": "loose"}}, (UnknownName, "reading")),
    ]:
        with pytest.raises(fault[0], match=fault[1]):
            GameRollout("public_goods", **given)


def test_a_group_of_one_is_refused():
    rollout = GameRollout("public_goods", players=3)
    with pytest.raises(BadParameter, match="seed 4 is of one"):
        rollout(prompts(4, size=1), Stub(noisy(FORMS["public_goods"][1])))


def test_rows_that_are_no_seeds_are_refused():
    rollout = GameRollout("public_goods", players=3)
    with pytest.raises(BadParameter, match="a game's seed"):
        rollout([[{"role": "user", "content": "What is 2 + 2?"}]] * 2, Stub(None))
    with pytest.raises(BadParameter, match="count"):
        games(0)
    rows = games(3, first=7)
    assert [row["prompt"][0]["content"] for row in rows] == ["7", "8", "9"]


def test_a_template_that_drops_what_was_said_makes_no_conversation():
    params, form = FORMS["public_goods"]
    rollout = GameRollout("public_goods", credit="conversation", **params)
    with pytest.raises(BadParameter, match="template drops"):
        rollout(prompts(1), Stub(noisy(form)))


def test_a_chat_too_long_for_the_model():
    params, form = FORMS["public_goods"]
    rollout = GameRollout("public_goods", **params)
    with pytest.raises(ContextOverflow, match="takes 100"):
        rollout(prompts(1), Stub(noisy(form), context=100))


def test_rewards_that_are_no_numbers():
    params, form = FORMS["public_goods"]
    rollout = GameRollout(
        "public_goods", regret=lambda game, record: record["actions"] * np.nan, **params
    )
    with pytest.raises(BadParameter, match="no finite number"):
        rollout(prompts(1), Stub(noisy(form)))


def test_scores_are_logged():
    logged = []
    rows = {"score": [1.0, 2.0], "payoff": [3.0, 4.0], "legal": [1.0, 0.0]}
    assert score([], **rows, log_metric=lambda *pair: logged.append(pair)) == [1.0, 2.0]
    assert logged == [
        ("game/payoff", 3.0), ("game/payoff", 4.0), ("game/legal", 1.0), ("game/legal", 0.0),
    ]  # fmt: skip


# -- the script ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grpo():
    pytest.importorskip("tensorboard")
    return pytest.importorskip("llm_games.baselines.training.grpo")


def options(grpo, folder, **more):
    given = {
        "game": "public_goods", "param": ["players=3", "rounds=1"], "opponents": ["fixed:5"],
        "folder": folder, "copies": 4, "group": 2, "steps": 12, "episodes": 3, "rate": 3e-4,
        "tokens": 12, "seed": 3,
    }  # fmt: skip
    return grpo.GRPOOptions(**given | more)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A random Llama of one layer, in the embedded model's tokens, whose chats keep all."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("small")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1536, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=2048,
        eos_token_id=END, pad_token_id=END, bos_token_id=None,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    growing().save_pretrained(folder)
    return str(folder)


def spread(completions, **more):
    return [float(place) for place in range(len(completions))]


def weights(folder):
    from safetensors.torch import load_file

    return load_file(f"{folder}/model.safetensors")


@pytest.mark.long
def test_the_script_trains_a_player_that_sits_down(grpo, tmp_path, capsys):
    found = grpo.train(options(grpo, tmp_path / "a", steps=8))
    said = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert float(said["payoff"]) == pytest.approx(found.payoff, rel=1e-3)
    logged = curve(tmp_path / "a")
    assert {"payoff", "regret", "train/payoff", "train/legal", "train/entropy"} <= logged.keys()
    assert logged["train/payoff"][0].tolist() == [4, 8]
    players = [lg.player(said["player"], max_attempts=1), lg.player("fixed:5"), lg.player("random")]
    episode = lg.play("public_goods", players, players=3, rounds=1)
    assert np.isfinite(episode.payoffs).all()
    assert [path.name for path in (tmp_path / "a").glob("checkpoint-*")] == ["checkpoint-2"]


@pytest.mark.long
def test_ctrl_c_keeps_all_and_a_resumed_training_is_the_same(grpo, small, tmp_path, monkeypatch):
    monkeypatch.setattr(grpo, "score", spread)
    grpo.train(options(grpo, tmp_path / "whole", model=small))
    steps = iter(range(9))

    def pressed(completions, **more):
        if next(steps) == 1:
            assert signal.getsignal(signal.SIGINT) is not before  # else it would end the tests
            signal.raise_signal(signal.SIGINT)
        return spread(completions)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(grpo, "score", pressed)
    with pytest.raises(KeyboardInterrupt) as fault:
        grpo.train(options(grpo, tmp_path / "cut", model=small))
    assert any("saved at step 8" in note and "--resume" in note for note in fault.value.__notes__)
    assert signal.getsignal(signal.SIGINT) is before
    assert json.loads((tmp_path / "cut" / "state").read_bytes())["step"] == 8
    with pytest.raises(BadParameter, match="--resume"):
        grpo.train(options(grpo, tmp_path / "cut", model=small))
    grpo.train(options(grpo, tmp_path / "cut", model=small, resume=True))
    ours, theirs = weights(tmp_path / "whole" / "model"), weights(tmp_path / "cut" / "model")
    first = weights(small)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not any(torch.equal(ours[name], first[name]) for name in ours)


@pytest.mark.long
def test_weights_that_are_no_numbers_end_a_training(grpo, small, tmp_path, monkeypatch):
    monkeypatch.setattr(grpo, "score", spread)
    with pytest.raises(TrainingBroke, match="is no number at step") as fault:
        grpo.train(options(grpo, tmp_path / "a", model=small, rate=1e35))
    assert "smaller --rate" in str(fault.value)


@pytest.mark.long
def test_a_full_disk_leaves_what_was_kept(grpo, small, tmp_path, monkeypatch):
    monkeypatch.setattr(grpo, "score", spread)
    kept, limits = grpo.keep, resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(run):
        if run.sound >= 0:
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
        kept(run)

    monkeypatch.setattr(grpo, "keep", fill)
    try:
        with pytest.raises(DiskFull, match="no room is left in"):
            grpo.train(options(grpo, tmp_path / "a", model=small))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    state = json.loads((tmp_path / "a" / "state").read_bytes())
    assert [path.name for path in (tmp_path / "a").glob("checkpoint-*")] == [state["checkpoint"]]
    monkeypatch.setattr(grpo, "keep", kept)
    grpo.train(options(grpo, tmp_path / "a", model=small, resume=True))
    assert json.loads((tmp_path / "a" / "state").read_bytes())["step"] == 12


@pytest.mark.long
def test_a_budget_that_ends_keeps_the_training(grpo, small, tmp_path):
    given = {
        "param": ["players=2", "rounds=1"], "opponents": ["tiny"], "set": ["memory=none"],
    }  # fmt: skip
    given["model"] = small
    with pytest.raises(BudgetExceeded) as fault:
        grpo.train(options(grpo, tmp_path / "a", client=["budget={calls=12}"], **given))
    assert any("--resume" in note for note in fault.value.__notes__)
    step = json.loads((tmp_path / "a" / "state").read_bytes())["step"]
    assert 0 < step < 12
    more = given | {"client": ["budget={calls=90}"], "resume": True}
    grpo.train(options(grpo, tmp_path / "a", **more))
    assert json.loads((tmp_path / "a" / "state").read_bytes())["step"] == 12


@pytest.mark.long
def test_a_state_that_is_not_whole_is_refused(grpo, small, tmp_path):
    folder = tmp_path / "a"
    grpo.train(options(grpo, folder, model=small, steps=4))
    given = options(grpo, folder, model=small, steps=8, resume=True)
    other = {"opponents": ["rational"], "game": "diners_dilemma"}
    with pytest.raises(BadParameter, match=r"has a training with .*: give it the same options"):
        grpo.train(options(grpo, folder, model=small, resume=True, **other))
    (checkpoint,) = folder.glob("checkpoint-*")
    for file in (folder / "state", checkpoint / "model.safetensors", checkpoint / "optimizer.pt"):
        whole = file.read_bytes()
        file.write_bytes(whole[:20])
        with pytest.raises(BadParameter, match="is not whole") as fault:
            grpo.train(given)
        assert str(folder) in str(fault.value)
        assert not hasattr(fault.value, "__notes__")  # no way on that does not go on
        file.write_bytes(whole)
    checkpoint.rename(tmp_path / "b")
    with pytest.raises(BadParameter, match="is not whole"):
        grpo.train(given)
    (tmp_path / "b").rename(checkpoint)
    grpo.train(given)
    assert json.loads((folder / "state").read_bytes())["step"] == 8


@pytest.mark.long
def test_a_training_that_fails_before_it_learns_says_why(grpo, small, tmp_path):
    short = shutil.copytree(small, tmp_path / "short")
    about = json.loads((short / "config.json").read_bytes())
    (short / "config.json").write_text(json.dumps(about | {"max_position_embeddings": 100}))
    with pytest.raises(ContextOverflow, match="reads at most 100"):
        grpo.train(options(grpo, tmp_path / "a", model=str(short)))
    assert not (tmp_path / "a" / "state").exists()


def test_folders_that_hold_no_model(grpo, small, tmp_path):
    for name, fault in [
        ("model.safetensors", "no weights"),
        ("tokenizer*", "no tokenizer"),
        ("config.json", "no config.json"),
        ("chat_template*", "no chat template"),
    ]:
        folder = shutil.copytree(small, tmp_path / fault)
        for file in folder.glob(name):
            file.unlink()
        with pytest.raises(BadParameter, match=fault):
            grpo.train(options(grpo, tmp_path / "a", model=str(folder)))
    folder = shutil.copytree(small, tmp_path / "cut")
    (folder / "model.safetensors").write_bytes(b"0" * 99)
    with pytest.raises(BadParameter, match="cannot load the model"):
        grpo.train(options(grpo, tmp_path / "a", model=str(folder)))
    assert not (tmp_path / "a" / "state").exists()


def test_options_that_cannot_be(grpo, tmp_path):
    for given, fault in [
        ({"vllm": True}, "needs a GPU"),
        ({"rate": math.nan}, "--rate must be a finite number"),
        ({"entropy": math.inf}, "--entropy must be a finite number"),
        ({"player": ["promts=v2"]}, "did you mean 'prompts'"),
        ({"group": 1}, "nothing to be compared"),
        ({"group": 3}, "whole groups of 3"),
        ({"copies": 6, "group": 2, "rows": 4}, "whole parts of 4 rows"),
        ({"model": "no/such-model"}, "cannot load the model no/such-model"),
        ({"param": ["player=3"]}, "player"),
    ]:
        with pytest.raises((BadParameter, UnknownName), match=fault):
            grpo.train(options(grpo, tmp_path / "a", **given))


@pytest.mark.long
@pytest.mark.parametrize("credit", ["decision", "conversation"])
def test_replies_from_vllm_have_the_shapes_that_are_learned_from(grpo, small, credit, tmp_path):
    """TRL's own way through vLLM, with a stand-in that answers as vLLM does."""
    from llm_games.baselines.training.harness import Training

    given = options(
        grpo, tmp_path / "a", model=small, credit=credit, param=["players=3", "rounds=2"],
        penalty=5.0,
    )  # fmt: skip
    asked, legal = [], [*growing()('{"tokens_contributed": "3"}')["input_ids"], END]

    class Engine:
        def sync_weights(self):
            asked.append("weights")

        def generate(self, prompts, images, num_generations, profiler):
            asked.append((len(prompts), num_generations))
            said = [legal if k % 2 else [5, 6, END] for k in range(len(prompts))]
            chances = [[[-1.0] for _ in one] for one in said]
            return prompts, said, chances, [[[token] for token in one] for one in said]

    with Training("grpo", given) as run:
        trainer = grpo.make(run, given)
        trainer.use_vllm, trainer.vllm_generation, trainer._last_loaded_step = True, Engine(), -1
        trainer.args.max_steps = 2
        seen = []
        loss = trainer._compute_loss
        trainer._compute_loss = lambda model, inputs: seen.append(inputs) or loss(model, inputs)
        trainer.train()
    assert asked.count("weights") == 2
    assert all(one == 1 for _, one in (pair for pair in asked if pair != "weights"))
    for inputs in seen:
        assert inputs["completion_ids"].shape == inputs["sampling_per_token_logps"].shape
        assert inputs["sampling_per_token_logps"].min() == -1
        assert torch.isfinite(inputs["importance_sampling_ratio"]).all()
        assert inputs["advantages"].abs().sum() > 0
        if credit == "conversation":
            assert inputs["tool_mask"].shape == inputs["completion_ids"].shape
            assert (inputs["tool_mask"] * inputs["completion_mask"]).sum() > 0
            unsaid = inputs["sampling_per_token_logps"][inputs["tool_mask"] == 0]
            assert (unsaid == 0).all()


@pytest.mark.long
def test_the_script_of_the_docs(small, tmp_path, monkeypatch):
    page = (Path(__file__).parents[1] / "docs" / "models_as_learners.md").read_text()
    code = page.partition("# train/grpo.py\n")[2].partition("\n```")[0]
    monkeypatch.setattr(sys, "argv", ["train/grpo.py", small, "1"])
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "train/grpo.py", "exec"), {})
    assert (tmp_path / "trained-grpo" / "model.safetensors").exists()


def test_rollouts_by_names():
    one = lg.rollouts("public_goods", players=3, opponents=["rational", "fixed:5"], regret=True)
    assert [policy.name for policy in one.seating.policies] == ["rational", "fixed:5"]
    assert one.regret is not None
    other = lg.rollouts("public_goods", scenario="givers-one", discount=0.5)
    assert other.regret is None
    assert other.discount == 0.5
    with pytest.raises(UnknownName, match="player"):
        lg.rollouts("public_goods", opponents="rationale")
    with pytest.raises(UnknownName, match="parameter"):
        lg.rollouts("public_goods", playerz=3)


# -- figures ---------------------------------------------------------------------------------------


def test_the_results_are_of_all_trainings(grpo):
    from llm_games.benchmarks.studies import grpo_gains as figures
    from llm_games.benchmarks.studies.dated import read

    found = read(figures.TrainingPoint, figures.FILE)
    wanted = {figures.key(options): options.steps for options, _ in figures.wanted()}
    last = {}
    for point in found:
        one = (*point.training, point.seed)
        last[one] = max(point.samples, last.get(one, 0))
    assert last == wanted
    own = [point for point in found if point.training == found[0].training]
    before, after = figures.ends(own)
    assert len(before) == len(after) == len(figures.SETTINGS["seeds"])
    assert (after > before).all()
