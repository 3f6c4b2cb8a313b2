"""Long runs: what is new costs, what was before does not; and what is read is let go."""

import asyncio
import tracemalloc

import numpy as np
import pytest
from playing import each_row

import llm_games
from llm_games.baselines.players import PLAYERS, Kind, llm_player, make_player
from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.compare import compare, difference
from llm_games.benchmarks.judge.results import run_results
from llm_games.benchmarks.record import recorded_games
from llm_games.benchmarks.record import store as module
from llm_games.benchmarks.record.store import Records, Store
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.show.page import build
from llm_games.registry import rulebook
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play_table


def answer(request):
    return f'{{"tokens_contributed": {request.seed % 21}}}'


@pytest.fixture
def played(tmp_path, registry):
    PLAYERS["scripted"] = Kind(
        "answers", model=lambda _, client, settings: llm_player(ScriptedClient(answer), settings)
    )

    def play(name, seat, episodes=1, rounds=5):
        games = [{"game": "public_goods", "params": {"players": 2, "rounds": rounds}}]
        plan = resolve(parse({"games": games, "episodes": episodes, "seats": [seat]}, "it"), "it")
        path = tmp_path / f"{name}.db"
        play_run(lambda: start(plan, path), plan, players(plan))
        return path

    return play


def work_of_sqlite(path, read):
    """Return how much work reading a run is for SQLite, in hundreds of its instructions."""
    count = 0

    def hundred():
        nonlocal count
        count += 1

    with Records.open_readonly(path) as records:
        records._database.set_progress_handler(hundred, 100)
        done = read(records)
        records._database.set_progress_handler(None, 0)
    return count, done


@each_row(("what", "few"), [("episodes", 5), ("rounds", 25)])
def test_replay_is_linear(played, what, few):
    work = []
    for size in (few, 2 * few):
        count, done = work_of_sqlite(played(f"{size}", "scripted", **{what: size}), replay)
        assert not done.differences
        assert done.completions == 2 * size * (5 if what == "episodes" else 1)
        work.append(count)
    assert work[1] < 2.3 * work[0]


def peak(do, *arguments):
    tracemalloc.start()
    try:
        do(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_of_reading_is_flat_in_episodes(played, monkeypatch):
    """What is kept of an episode is its row and some numbers, and nothing of its steps."""
    monkeypatch.setattr(recorded_games, "KEPT", 100)
    monkeypatch.setattr(intervals, "DRAWS", 10)  # draws take memory for themselves
    few, many = (played(str(n), "random", episodes=n, rounds=20) for n in (10, 30))

    def summarize(path):
        with Records.open_readonly(path) as records:
            run_results(records)

    for read in (summarize, lambda path: compare(path, path)):
        read(few)  # what is imported and cached is there
        assert peak(read, many) - peak(read, few) < 20 * 4000
    with Records.open_readonly(many) as records:
        [game] = recorded_games.games(records)
        assert sum(len(episode.records) for episode in game.done) == 30 * 20
        kept = game.shelf.episodes.values()
        assert 0 < len(kept) < 10
        assert [e.row.number for e in game.done[3:5]] == [3, 4]


def test_episodes_that_were_looked_at_first_are_let_go(played, monkeypatch):
    """As a report does, which counts what was asked for before it reads a step."""
    monkeypatch.setattr(recorded_games, "KEPT", 100)
    with Records.open_readonly(played("many", "random", episodes=30, rounds=20)) as records:
        [game] = recorded_games.games(records)
        assert sum(len(episode.seats) for episode in game.done) == 60
        assert sum(len(episode.records) for episode in game.done) == 30 * 20
        kept = [e for e in game.shelf.episodes.values() if "every_step" in vars(e)]
        assert 0 < len(kept) < 3  # of 40 decisions each


def test_a_page_is_the_same_whether_episodes_are_kept_or_read_again(played, monkeypatch, tmp_path):
    path = played("a", "random", episodes=4)
    before = build([path], tmp_path / "before")
    monkeypatch.setattr(recorded_games, "KEPT", 0)
    now = build([path], tmp_path / "now")
    assert now.read_text() == before.read_text()
    files = list(before.parent.rglob("*.csv"))
    assert files
    for file in files:
        assert (now.parent / file.relative_to(before.parent)).read_text() == file.read_text()


def test_many_runs_are_thinned_in_a_plot(played, monkeypatch, tmp_path):
    monkeypatch.setattr("llm_games.benchmarks.show.page.canvas.MOST", 3)
    text = build([played("a", "random", episodes=8)], tmp_path).read_text()
    assert "thin lines: some of the 8 runs, band: 95 % interval of the mean at each point" in text
    assert "a dot for 3 of the 8 runs" in text


def test_draws_in_blocks_are_those_drawn_at_once(monkeypatch):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 40))
    at_once = difference(a, b)
    monkeypatch.setattr(intervals, "TOGETHER", 999)
    assert difference(a, b) == at_once


def test_many_pairs_take_little_memory(monkeypatch):
    monkeypatch.setattr(intervals, "DRAWS", 200)
    a, b = np.random.default_rng(3).normal(size=(2, 50_000))
    assert peak(difference, a, b) < 100e6  # at once: 8 bytes for each of 10 million draws, twice


def test_steps_that_were_handed_on_are_let_go():
    game, seats = rulebook("public_goods", players=2, rounds=6), [make_player("random")] * 2
    numbers = []

    async def on_step(step):
        numbers.append(step.number)

    episode = asyncio.run(play_table(game, seats, 3, on_step=on_step))
    whole = llm_games.play(game, seats, 3)
    assert numbers == [step.number for step in whole.steps] == [*range(6)]
    assert (episode.steps, episode.length, episode.last.number) == ([], 6, 5)
    assert episode.payoffs.tolist() == whole.payoffs.tolist()
    assert whole.payoffs.tolist() == sum(step.outcome.rewards for step in whole.steps).tolist()
    assert len(whole.records) == whole.length == 6


def test_a_round_costs_the_memory_of_its_texts(played):
    """A round of a model's game adds to the dialogue, and to nothing else."""

    def play(rounds):
        game = rulebook("public_goods", players=2, rounds=rounds)
        seats = [LLMPolicy(ScriptedClient(answer))] * 2

        async def on_step(step):
            pass

        asyncio.run(play_table(game, seats, 1, on_step=on_step))

    play(20)
    assert (peak(play, 120) - peak(play, 60)) / 60 < 6000


def test_a_prompt_costs_what_is_new_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_IDS", 40)
    path = tmp_path / "x.db"
    games = [("a", "public_goods", {}, ["x"])]
    with Store.create(path, "x", {}, games, [[1]]) as store:
        looked_up = []
        rows = store._rows
        monkeypatch.setattr(
            store, "_rows", lambda query, *values: looked_up.append(1) or rows(query, *values)
        )
        chats, work = [Chat()] * 4, []
        for number in range(100):
            before = len(looked_up)
            for seat, chat in enumerate(chats):
                chats[seat] = chat.plus("user", f"{number} to {seat}").plus("assistant", "1")
                assert store.messages(store.prompt(chats[seat])) in ([], list(chats[seat]))
            store.flush()
            asyncio.run(store.durable())
            work.append(len(looked_up) - before)
        assert max(work[50:]) <= max(work[10:50])
        assert [store.messages(store.prompt(chat)) for chat in chats] == list(map(list, chats))
