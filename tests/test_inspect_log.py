"""Logs of inspect_ai: what it reads back is what the run's file has."""

import sys
from unittest.mock import patch

import numpy as np
import pytest
from playing import sampled

import llm_games as lg
from llm_games.baselines.players import PLAYERS, Kind
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.show import cli
from llm_games.benchmarks.show.export.inspect_log import export_eval
from llm_games.benchmarks.show.export.table_files import MissingPackage
from llm_games.wrappers.clients.base import Completion
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy

HOSTILE = "<script>alert(1)</script> \u202e txet \ud800 end"
GOODS = {"game": "public_goods", "params": {"players": 3, "rounds": 2}}
PLAYED = [
    GOODS | {"talk": {"turns": 1}},
    {"game": "english_auction", "params": {"players": 3}, "label": "an auction, in/turns"},
    GOODS | {"label": "an auction  in/turns"},
]


def answer(request):
    if request.question is None:
        return "hello"
    rng = np.random.default_rng(request.seed)
    if rng.random() < 0.2:
        return Completion(HOSTILE, "length", 9, 4, 0.5, "scripted-1")
    text = request.question.reply(sampled(request.question, rng))
    return Completion(text, "stop", 9, 4, 0.25, "scripted-1", "Let me see.", "", None, 3, 2)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "run.db"
    client = ScriptedClient(answer)
    kind = Kind("answers from its seed", model=lambda v, _, more: LLMPolicy(client, **more))
    seats = {"seats": ["random", "scripted", "scripted"]}
    run = {"title": "a run", "episodes": 2, "games": [g | seats for g in PLAYED]}
    with patch.dict(PLAYERS, scripted=kind):
        lg.run(run, db=str(path))
    return path


def test_without_inspect_ai_the_way_out_is_named(recorded, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with (
        Records.open_readonly(recorded) as records,
        pytest.raises(MissingPackage, match=r"pip install 'llm-games\[inspect\]'"),
    ):
        export_eval(records, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def logs(recorded, tmp_path_factory):
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: extra `inspect`")
    from inspect_ai.log import read_eval_log

    folder = tmp_path_factory.mktemp("read")
    with Records.open_readonly(recorded) as records:
        made = export_eval(records, folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        *("an-auction-in-turns-1.eval", "an-auction-in-turns.eval", "public_goods.eval")
    ]
    assert [*made.values()] == [2, 2, 2]
    read = [read_eval_log(str(path), resolve_attachments=True) for path in made]
    return {log.eval.task: log for log in read}


def test_all_calls_are_in_the_logs(recorded, logs):
    with Records.open_readonly(recorded) as records:
        for game in games(records):
            log = logs[game.label]
            assert log.status == "success"
            assert log.eval.model == "random, scripted"
            for episode, sample in zip(game.episodes, log.samples, strict=True):
                calls = [event for event in sample.events if event.event == "model"]
                attempts = episode.attempts()
                assert len(calls) == len(attempts) > 0
                for call, attempt in zip(calls, attempts, strict=True):
                    said = [one.text for one in call.input]
                    prompt = records.messages(attempt.prompt)
                    assert [plain(one["content"]) for one in prompt] == said
                    assert [one["role"] for one in prompt] == [one.role for one in call.input]
                    assert call.output.completion == plain(attempt.text)
                    assert call.metadata["outcome"] == attempt.outcome
                    assert call.role == f"seat{attempt.seat}"
                    assert call.output.time == attempt.latency
                used = sample.model_usage["scripted-1"]
                assert used.total_tokens == 13 * len(attempts)
                cached = sum(a.tokens_cached for a in attempts)
                assert (used.input_tokens_cache_read or 0) == cached
                assert used.input_tokens == 9 * len(attempts) - cached


def plain(text):
    return text.replace("\ud800", "?")


def test_scores_are_those_of_the_run(recorded, logs):
    with Records.open_readonly(recorded) as records:
        for game in games(records):
            log = logs[game.label]
            paid = [float(e.rewards.sum(axis=0).mean()) for e in game.done]
            lost = [float(e.regret().sum(axis=1).mean()) for e in game.done]
            for name, values in (("payoff", paid), ("regret", lost)):
                assert [s.scores[name].value for s in log.samples] == pytest.approx(values)
            means = {score.name: score.metrics["mean"].value for score in log.results.scores}
            assert means["payoff"] == pytest.approx(np.mean(paid))
            assert log.results.completed_samples == 2
            assert [s.metadata["seed"] for s in log.samples] == [row.seed for row in game.rows]


def test_spans_hold_what_happened_in_them(recorded, logs):
    for log in logs.values():
        for sample in log.samples:
            begun = {e.id: e for e in sample.events if e.event == "span_begin"}
            ended = [e.id for e in sample.events if e.event == "span_end"]
            assert sorted(begun) == sorted(ended)
            assert all(span.parent_id in {None, *begun} for span in begun.values())
            assert all(e.span_id in begun for e in sample.events)
            calls = [e for e in sample.events if e.event == "model"]
            assert all(begun[e.span_id].type == "agent" for e in calls)
            steps = [e.working_start for e in begun.values() if e.parent_id is None]
            assert steps == sorted(steps)
            paid = [e.data["payoffs"] for e in sample.events if e.event == "info"]
            assert np.sum(paid, axis=0).tolist() == pytest.approx(sample.metadata["payoffs"])
    names = [e.name for e in logs["public_goods"].samples[0].events if e.event == "span_begin"]
    steps = [name for name in names if not name.startswith("seat")]
    assert [name for name in steps if name != "talk"] == ["move 1", "move 2"]
    assert steps[0] == "talk"


def test_thoughts_stand_apart_and_hostile_words_are_words(logs):
    calls = [
        e for log in logs.values() for s in log.samples for e in s.events if e.event == "model"
    ]
    parts = [part for call in calls for part in call.output.message.content]
    assert {part.reasoning for part in parts if part.type == "reasoning"} == {"Let me see."}
    cut = [call.output for call in calls if call.output.stop_reason == "max_tokens"]
    assert cut
    assert {one.completion for one in cut} == {plain(HOSTILE)}


def test_command(recorded, logs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["llm-games", "export", str(recorded), "--eval", "-o", str(tmp_path)]
    )
    cli.app(standalone_mode=False)
    assert f"{tmp_path / 'public_goods.eval'}: 2 samples" in capsys.readouterr().out.splitlines()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pandas of inspect_ai
def test_data_frames(recorded, tmp_path, logs):
    pytest.importorskip("pandas", reason="inspect_ai's data frames need pandas")
    from inspect_ai.analysis import samples_df

    with Records.open_readonly(recorded) as records:
        export_eval(records, tmp_path)
        seeds = {row.seed for game in games(records) for row in game.rows}
    frame = samples_df(str(tmp_path), quiet=True)
    assert len(frame) == 6
    assert set(map(int, frame["metadata_seed"])) == seeds
