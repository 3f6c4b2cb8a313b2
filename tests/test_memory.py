"""Memory does not grow with the number of episodes."""

import asyncio
import re
import subprocess
import sys

import pytest

from llm_games.benchmarks.record import store as module
from llm_games.benchmarks.record.store import Store


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("way", ["environment", "run of random players", "run of a model"])
def test_memory_is_flat_over_episodes(way):
    command = [sys.executable, "-m", "llm_games.benchmarks.studies.speed.memory_use", way, "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    few, many = map(float, re.findall(r"([0-9.]+) MiB", done.stdout))
    assert many - few < 7  # MiB; 4 KiB an episode, allocators' own pages come to 2 or 3


def test_a_message_is_written_once_though_its_id_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_IDS", 2)
    messages = [{"role": "user", "content": str(number)} for number in range(9)]
    path = tmp_path / "x.db"
    with Store.create(path, "x", {}, [("a", "public_goods", {}, ["x"])], [[1]]) as store:
        first, other = store.prompt(messages), store.prompt(messages[::-1])
        store.flush()
        asyncio.run(store.durable())
        assert len(store._messages.cached) == 2
        assert (store.prompt(messages), store.prompt(messages[::-1])) == (first, other)
        store.flush()
        assert len(list(store.pool())) == 9
    with Store.open(path) as store:
        assert (store.prompt(messages), store.prompt(messages[::-1])) == (first, other)
        assert store.prompt([*messages, {"role": "user", "content": "new"}]) == 19
        store.flush()
        assert store.messages(19)[-1] == {"role": "user", "content": "new"}
        assert len(list(store.pool())) == 10
