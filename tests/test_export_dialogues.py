"""Replies as data to train on: what is in a run's file, whole, and judged as its theory judges."""

import json
import re
import resource
import runpy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from playing import NAMES, QUICK, sampled

import llm_games as lg
from llm_games.baselines import regret as theory
from llm_games.baselines.players import PLAYERS, Kind
from llm_games.benchmarks.record.editions import OtherEdition
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.record.store import Unwritable
from llm_games.benchmarks.show.export import dialogues
from llm_games.benchmarks.show.export.dialogues import preferences, sft, write
from llm_games.errors import UnknownName
from llm_games.questions import MISSING
from llm_games.registry import rulebook
from llm_games.replies import read_reply
from llm_games.table import Table
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy

DOCS = Path(__file__).parents[1] / "docs" / "models_as_learners.md"
BAD = "I shall not say."


def answer(request):
    if request.question is None:
        return "hello"
    rng = np.random.default_rng(request.seed)
    if rng.random() < 0.2:
        return BAD
    return request.question.reply(sampled(request.question, rng))


@pytest.fixture
def run(registry, tmp_path):
    PLAYERS["scripted"] = Kind("says", model=lambda v, c, m: LLMPolicy(ScriptedClient(answer), **m))
    opened = []

    def play(name, params=None, seats=("scripted", "scripted", "random"), **more):
        params = QUICK[name] if params is None else params
        players = rulebook(name, **params).players
        table = [seats[seat % len(seats)] for seat in range(players)]
        game = {"game": name, "params": params, "seats": table, **more}
        raw = {"title": "a run", "episodes": 2, "games": [game]}
        path = lg.run(raw, tmp_path / f"{name}.db").path
        opened.append(Records.open_readonly(path))
        return opened[-1]

    yield play
    for records in opened:
        records.close()


def decided(records):
    found = {}
    for game in games(records):
        for episode in game.played:
            for one in episode.decisions():
                found[game.label, episode.row.number, one.step, one.seat] = (episode, one)
    return found


def place(row):
    return row["label"], row["episode"], row["step"], row["seat"]


def test_every_legal_reply_is_there_once_with_the_prompt_that_was_sent(run):
    records = run("public_goods", {"players": 3, "rounds": 3}, talk={"turns": 1})
    rows = list(sft(records))
    [game] = games(records)
    sent = {
        (episode.row.number, call.step, call.seat): (records.messages(call.prompt), call.text)
        for episode in game.played
        for call in episode.attempts()
        if call.kind == "move" and call.outcome == "valid"
    }
    assert {
        place(row)[1:]: (row["prompt"], row["completion"][0]["content"]) for row in rows
    } == sent
    assert len(rows) == len(sent) > 5
    assert {row["completion"][0]["role"] for row in rows} == {"assistant"}
    for row in rows:
        episode = game.played[row["episode"]]
        moves = [step.step for step in episode.steps]
        assert row["regret"] == episode.regret()[row["seat"], moves.index(row["step"])]
        assert row["payoff"] == episode.rewards.sum(axis=0)[row["seat"]]
        assert row["player"] == episode.seats[row["seat"]]
    least = sorted(row["regret"] for row in rows)[len(rows) // 2]
    some = [row for row in rows if row["regret"] <= least]
    assert list(sft(records, most_regret=least)) == some
    spoken = list(sft(records, kinds=["speech"]))
    assert {row["kind"] for row in spoken} == {"speech"}
    assert {row["regret"] for row in spoken} == {None}


@pytest.mark.parametrize("name", NAMES)
def test_pairs_of_every_game_are_replies_to_one_prompt_the_worse_of_which_lost_more(run, name):
    records = run(name)
    left_out = Counter()
    rows, made = list(preferences(records, left_out=left_out)), decided(records)
    assert rows or left_out
    for row in rows:
        _, one = made[place(row)]
        chosen, rejected = (row[side][0]["content"] for side in ("chosen", "rejected"))
        assert chosen != rejected
        table, _ = before(row, made)
        question = table.game.question(table.state, row["seat"])
        assert read_reply(chosen, question).outcome == "valid"
        if row["rejected_regret"] is None:
            assert read_reply(rejected, question).outcome != "valid"
        else:
            assert row["chosen_regret"] < row["rejected_regret"]
            assert read_reply(rejected, question).action == move(one)


def move(decision):
    action = decision.action
    return MISSING if action is None else tuple(action) if isinstance(action, list) else action


def before(row, made):
    episode, _ = made[place(row)]
    table = Table(episode.rules)
    table.reset(episode.row.seed, episode.row.given)
    for step in episode.steps:
        moves = {s: move(made[(*place(row)[:2], step.step, s)][1]) for s in step.asked}
        if step.step == row["step"]:
            return table, moves
        table.step(moves)
    raise AssertionError(row)


def test_regrets_of_pairs_are_what_the_round_had_paid_more(run):
    """A move's regret is the most that any had brought there, less its own."""
    records = run("divide_dollar", {"players": 2, "rounds": 4, "golds": 10}, ["scripted", "random"])
    rows, made = list(preferences(records)), decided(records)
    asked = Counter(json.dumps(row["prompt"]) for row in sft(records))
    alone = [row for row in rows if row["source"] == "rules" and row["rejected_regret"] is not None]
    alone = [row for row in alone if asked[json.dumps(row["prompt"])] == 1]
    assert len(alone) > 2
    for row in alone:
        paid = []
        for own in range(11):
            table, moves = before(row, made)
            paid.append(table.step(moves | {row["seat"]: own}).rewards[row["seat"]])
        for side in ("chosen", "rejected"):
            [own] = json.loads(row[side][0]["content"]).values()
            assert row[f"{side}_regret"] == max(paid) - paid[own]
        assert row["chosen_regret"] == 0


def test_replies_to_the_same_prompt_are_compared_where_the_record_has_several(run, registry):
    said = iter([0, 9, 3, 7])

    def counted(request):
        return request.question.reply(next(said)) if request.question else "hello"

    PLAYERS["counted"] = Kind("c", model=lambda v, c, m: LLMPolicy(ScriptedClient(counted), **m))
    params = {"players": 3, "rounds": 1, "ratio": 2}
    records = run("public_goods", params, ["counted", "fixed:5", "fixed:20"], order="fixed")
    rows = list(preferences(records))
    texts = [tuple(row[side][0]["content"] for side in ("chosen", "rejected")) for row in rows]
    assert texts == [('{"tokens_contributed": 0}', '{"tokens_contributed": 9}')]
    assert {row["source"] for row in rows} == {"record"}
    # Each token that is kept is worth 1, and 2/3 if it is given.
    assert [rows[0][f"{side}_regret"] for side in ("chosen", "rejected")] == pytest.approx([0, 3])


def test_theory_judges_by_what_a_seat_knew_unless_hindsight_is_asked_for(run):
    params = {"players": 3, "rounds": 3, "valuation_draw": "random"}
    records = run("sealed_bid_auction", params)
    [game] = games(records)
    for hindsight, measure in ((False, theory.interim), (True, theory.regret)):
        lost = {e.row.number: measure(e.rules, e.stacked()) for e in game.played}
        rows = list(sft(records, hindsight=hindsight))
        assert [row["regret"] for row in rows] == [
            lost[row["episode"]][row["seat"], row["step"]] for row in rows
        ]


def test_replies_that_are_no_move_are_rejected_and_cost_no_pair_its_form(run):
    records = run("public_goods", {"players": 3, "rounds": 3})
    rows = [row for row in preferences(records) if row["rejected_regret"] is None]
    assert rows
    assert {row["rejected"][0]["content"] for row in rows} == {BAD}
    assert all(row["chosen_regret"] == 0 for row in rows if row["source"] == "rules")


def test_where_an_explanation_was_asked_for_no_reply_without_one_is_chosen(run):
    seats = [{"player": "scripted", "reasoning": True}, "random", "random"]
    records, left_out = run("public_goods", {"players": 3, "rounds": 3}, seats), Counter()
    rows = list(preferences(records, left_out=left_out))
    assert {row["source"] for row in rows} <= {"record"}
    assert left_out["an explanation was asked for"] > 0


def test_moves_of_players_without_a_model_are_put_into_words(run):
    """As the same moves are asked of a model, and answered by it."""
    params, seats = {"players": 3, "rounds": 3}, ["fixed:4", "random", "rational"]
    records = run("public_goods", params, seats, order="fixed")
    rows, made = list(sft(records)), decided(records)
    assert len(rows) == len(made) == 2 * 3 * 3
    asked = {}

    def same(request):
        key = ("public_goods", 0, request.who.step, request.who.seat)
        asked[key] = list(request.messages)
        return request.question.reply(made[key][1].action)

    lg.play("public_goods", [LLMPolicy(ScriptedClient(same))] * 3, seed=rows[0]["seed"], **params)
    assert {place(row): row["prompt"] for row in rows if row["episode"] == 0} == asked
    for row in rows:
        [own] = json.loads(row["completion"][0]["content"]).values()
        assert own == made[place(row)][1].action
    assert {row["player"] for row in sft(records, ["rational"])} == {"rational"}
    worse = list(preferences(records, ["fixed:4"]))
    assert {row["rejected"][0]["content"] for row in worse} == {'{"tokens_contributed": 4}'}
    assert {row["chosen"][0]["content"] for row in worse} == {'{"tokens_contributed": 0}'}


def test_mistakes_say_the_way_out_and_lose_nothing(run, tmp_path):
    records = run("public_goods", {"players": 3, "rounds": 1})
    with pytest.raises(UnknownName, match=r"no player of this run 'nobody'.*scripted"):
        list(sft(records, ["nobody"]))
    old = tmp_path / "old.jsonl"
    old.write_text("mine")
    with pytest.raises(UnknownName):
        write(preferences(records, ["nobody"]), old)
    assert old.read_text() == "mine"
    with pytest.raises(Unwritable, match="cannot be written"):
        write(sft(records), old / "below.jsonl")
    assert write(sft(records), old) == len(old.read_text().splitlines()) > 0


def test_a_row_in_which_all_is_known_stands_first(tmp_path, monkeypatch):
    """Else a reader that looks at the first megabytes finds columns of no kind."""
    monkeypatch.setattr(dialogues, "PART", 7)
    lost = [None, None, 2.0, None, 1.0]
    rows = [{"number": number, "regret": regret} for number, regret in enumerate(lost)]
    for many, order in ((5, [2, 0, 1, 3, 4]), (2, [0, 1]), (0, [])):
        assert write(rows[:many], tmp_path / "a.jsonl") == many
        read = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
        assert read == [rows[number] for number in order]
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.slow
def test_a_large_file_is_read_by_the_library_that_trl_reads_it_with(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="it comes with TRL")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    prompt = [{"role": "user", "content": "x" * 4000}]
    rows = [{"prompt": prompt, "regret": 1.5 if row > 2900 else None} for row in range(3000)]
    write(rows, tmp_path / "a.jsonl")  # more than the ten megabytes that it looks at first
    read = datasets.load_dataset(
        "json", data_files=str(tmp_path / "a.jsonl"), split="train", cache_dir=str(tmp_path / "c")
    )
    assert read.num_rows == 3000
    assert sum(value is not None for value in read["regret"]) == 99


def test_a_full_disk_leaves_the_older_file(run, tmp_path):
    records = run("public_goods", {"players": 3, "rounds": 3})
    write(sft(records), tmp_path / "a.jsonl")
    before, limits = (tmp_path / "a.jsonl").read_text(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(Unwritable, match="cannot be written"):
            write(sft(records), tmp_path / "a.jsonl")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "a.jsonl").read_text() == before
    assert not [*tmp_path.glob(".a.*")]


def test_rules_of_another_edition_are_not_judged_by_those_of_today(run, monkeypatch):
    records = run("public_goods", {"players": 3, "rounds": 1})
    monkeypatch.setattr(type(rulebook("public_goods")), "edition", 99)
    with pytest.raises(OtherEdition, match="edition"):
        list(preferences(records))


def test_a_key_of_a_server_is_in_no_row(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret-of-mine")
    records = run("public_goods", {"players": 3, "rounds": 2})
    for number, rows in enumerate((sft(records), preferences(records))):
        path = tmp_path / f"{number}.jsonl"
        assert write(rows, path)
        assert "sk-secret" not in path.read_text()


def test_the_command_writes_both_and_says_what_has_no_pair(run, llm_games, tmp_path):
    path = run("public_goods", {"players": 3, "rounds": 3}, ["scripted", "rational", "random"]).path
    code, out, err = llm_games(
        *("export", path, "--sft", "a.jsonl", "--preferences", "b.jsonl", "--player", "scripted")
    )
    assert code == 0
    for name, what in (("a.jsonl", "replies"), ("b.jsonl", "pairs")):
        assert f"{name}: {len((tmp_path / name).read_text().splitlines())} {what}" in out
    with Records.open_readonly(path) as records:
        prompts = {json.dumps(row["prompt"]) for row in sft(records, ["rational"])}
    code, out, err = llm_games("export", path, "--preferences", "b.jsonl", "--player", "rational")
    assert (code, out) == (0, "b.jsonl: 0 pairs\n")
    assert err == f"prompts without a pair: {len(prompts)}, no legal move had lost less\n"
    code, _, err = llm_games("export", path)
    assert code != 0
    assert "say what to write: -o DIR, --sft FILE or --preferences FILE" in err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the training library
def test_trl_trains_on_both(run, tmp_path, monkeypatch):
    """The script of the docs: two steps each of the embedded model, which then plays."""
    pytest.importorskip("trl", reason="TRL is in the extra trl")
    import torch
    from safetensors.numpy import load_file

    from llm_games.baselines.tiny.runtime import WEIGHTS

    torch.set_num_threads(1)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    [script] = re.findall(
        r"```python\n(# train/on_replies.py\n.*?)```", DOCS.read_text(), re.DOTALL
    )
    Path("on_replies.py").write_text(script)
    records = run("public_goods", {"players": 3, "rounds": 3})
    write(sft(records), Path("sft.jsonl"))
    write(preferences(records), Path("dpo.jsonl"))
    before = load_file(WEIGHTS / "model.safetensors")["model.norm.weight"]
    for what in ("sft", "dpo"):
        monkeypatch.setattr("sys.argv", ["", what, str(WEIGHTS), f"{what}.jsonl", "2"])
        made = runpy.run_path("on_replies.py")
        after = load_file(f"trained-{what}/model.safetensors")["model.norm.weight"]
        assert np.isfinite(after).all()
        assert not np.array_equal(before.astype(after.dtype), after)
        if what == "sft":  # it learned the replies, and nothing else
            rows, said = made["learner"].train_dataset, made["data"]["completion"]
            taught = [[token for token in row["labels"] if token >= 0] for row in rows]
            decode = made["learner"].processing_class.decode
            assert [*map(decode, taught)] == [row[0]["content"] + "<|end|>" for row in said]
    trained = [lg.player(name) for name in ("transformers:trained-dpo", "random", "random")]
    episode = lg.play("public_goods", trained, players=3, rounds=1)
    assert episode.steps[0].decisions[0].outcome == "valid"
