"""Runs by workers of a Ray cluster: two nodes, on sockets of this machine alone."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import llm_games as lg
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.worker_files import folder
from llm_games.benchmarks.run import ray_workers, workers
from tests.run_rows import written
from tests.test_worker_files import in_order
from tests.test_workers import ALL, large, spent, without_cache, without_spending

# Sockets on this machine alone, which Ray decides when it is imported.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
ray = pytest.importorskip("ray", reason="it is installed apart: pip install 'llm-games[ray]'")

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

NODES = """
import sys
from ray.cluster_utils import Cluster

about = {"num_cpus": 3, "object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1"}
cluster = Cluster(initialize_head=True, head_node_args=about | {"include_dashboard": False})
cluster.add_node(**about)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of this module's, with the environment that all processes of its cluster share."""
    home = tmp_path_factory.mktemp("ray")
    variables = {
        "HOME": str(home),
        "RAY_TMPDIR": f"/tmp/ray-{os.getpid()}",
        "RAY_USAGE_STATS_ENABLED": "0",
        "CALLS_FILE": str(home / "calls"),
        "CALL_SECONDS": "0.02",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(ray, "init", partial(ray.init, _node_ip_address="127.0.0.1"))
        yield home


@pytest.fixture(scope="module")
def address(place):
    """Of the cluster's head."""
    command, pipe = [sys.executable, "-c", NODES], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as nodes:
        yield next(line for line in nodes.stdout if re.fullmatch(r"[\d.]+:\d+\n", line)).strip()
        nodes.stdin.close()


def calls(place):
    return len((place / "calls").read_text().splitlines())


@pytest.fixture(scope="module")
def alone(place):
    """The rows of the run by one process, and the calls of its model."""
    path = lg.run(ALL, place / "alone.db").path
    return in_order(path), calls(place)


def actors():
    """The processes of workers."""
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        if stat.read_bytes().startswith(b"ray::Actor"):
            yield int(stat.parent.name)


def test_rows_are_those_of_one_process(address, alone, place, tmp_path):
    rows, first = alone
    before = calls(place)
    path = lg.run(ALL, tmp_path / "many.db", workers=2, ray=address).path
    assert written(path) == rows
    assert calls(place) - before == first
    assert not folder(path).exists()


def test_all_tables_are_those_of_one_process(night, address, place, tmp_path, monkeypatch):
    """With talk, planning, series, a cache and all limits: 32,000 answers at night."""
    episodes = night(3, 1025)
    monkeypatch.setenv("CALL_SECONDS", "0")  # of this process, those of the cluster take their time
    rows = in_order(lg.run(large(tmp_path / "alone", episodes), tmp_path / "alone.db").path)
    lg.run(large(tmp_path / "many", episodes), tmp_path / "many.db", workers=3, ray=address)
    assert without_cache(written(tmp_path / "many.db")) == without_cache(rows)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_is_replaced(how, address, alone, place, tmp_path, monkeypatch):
    rows, first = alone
    before = calls(place)
    monkeypatch.setattr(workers, "LEASE", 3.0)
    path = tmp_path / "many.db"
    options = {"workers": 2, "ray": address}
    run = threading.Thread(target=lg.run, args=(ALL, path), kwargs=options)
    run.start()
    while calls(place) - before < first / 3:
        time.sleep(0.005)
    worker = next(actors())
    os.kill(worker, how)
    run.join(60)
    assert not run.is_alive()
    assert without_spending(written(path)) == without_spending(rows)
    assert 0 <= spent(path) - (calls(place) - before) <= 24  # entered, and not sent
    assert spent(path) >= first


def test_workers_of_another_version_play_nothing(address, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_workers, "__version__", "0.0")
    with pytest.raises(ConfigError, match=r"has llm-games .* and this run llm-games 0\.0 with"):
        lg.run(ALL, tmp_path / "many.db", workers=2, ray=address)


def test_a_key_that_workers_lack(address, tmp_path, monkeypatch):
    monkeypatch.setenv("ONLY_HERE", "secret")
    raw = {**ALL, "seats": [{"client": "tests.worker_models:Keyed"}]}
    with pytest.raises(ConfigError, match=r"^on \S+: public_goods, seat 0 .*: set ONLY_HERE"):
        lg.run(raw, tmp_path / "many.db", workers=2, ray=address)
