"""What all tests share."""

import csv
import datetime
import os
import signal
import sys
import zlib
from pathlib import Path
from unittest.mock import patch

# Before NumPy is loaded, here or in a worker: the machine's cores are shared out among processes,
# and threads of each would wait for one another (tests of the embedded player took ten times as
# long on two cores).
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import viewing
from hypothesis import HealthCheck, settings

from llm_games.baselines.players import PLAYERS
from llm_games.benchmarks.judge import player_skill, references
from llm_games.benchmarks.show import cli
from llm_games.benchmarks.show.page import canvas
from llm_games.game_rooms import ROOMS
from llm_games.wrappers import vector_env

# A machine that is busy with something else is no error. The same examples everywhere, so that what
# is red is red for all; others come with --hypothesis-profile=explore.
settings.register_profile("explore", deadline=None)
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")

# A process that a shell starts in the background ignores Ctrl-C, and so would all it starts. Tests
# press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


SLICE = 25
"""Of so many items that a crossing leaves to the night, CI plays one."""

NIGHTLY = Path(__file__).parent / "data" / "nightly.csv"
"""The dated result of the last whole night: a row a test."""


def pytest_addoption(parser):
    parser.addoption("--night", action="store_true", help="nightly tests whole, not a slice")
    parser.addoption("--loops", action="store_true", help="vector environments loop in C at once")


def pytest_configure(config):
    if config.getoption("loops"):
        vector_env.PATIENCE = 0
    if config.getoption("night") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Night())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave one item of a crossing for each game, another in each test; the rest is nightly.

    ``pytest.mark.crossing("kind")`` leaves one for each value of `kind`.
    """
    groups = {}
    for item in items:
        if mark := item.get_closest_marker("crossing"):
            shared = [str(item.callspec.params[name]) for name in mark.args or ("name",)]
            groups.setdefault((item.originalname, *shared), []).append(item)
    nightly, unplayed = set(), set()
    for key, group in groups.items():
        group.pop(zlib.crc32(repr(key).encode()) % len(group))
        nightly.update(group)
    if not config.getoption("night"):
        unplayed = {item for item in nightly if zlib.crc32(item.nodeid.encode()) % SLICE}
    for item in nightly - unplayed:
        item.add_marker("nightly")
    if unplayed:
        config.hook.pytest_deselected(items=[item for item in items if item in unplayed])
        items[:] = [item for item in items if item not in unplayed]


@pytest.fixture
def night(request):
    """Return the size that a nightly test has by day (in CI) or, with --night, by night."""
    return lambda by_day, by_night: by_night if request.config.getoption("night") else by_day


class Night:
    """Puts the result of each test of a night, with what it recorded, into the file at once.

    So a night that is cut short keeps what it has.
    """

    def pytest_runtest_logreport(self, report):
        # Crossings are thousands, which say nothing but whether they pass.
        if report.when != "call" or report.skipped or "crossing" in report.keywords:
            return
        rows = {}
        if NIGHTLY.exists():
            with NIGHTLY.open(encoding="utf-8", newline="") as file:
                rows = {row["test"]: row for row in csv.DictReader(file)}
        rows[report.nodeid] = {
            "test": report.nodeid,
            "day": datetime.date.today().isoformat(),
            "outcome": report.outcome,
            "seconds": round(report.duration),
            "figures": "; ".join(f"{name} {value}" for name, value in report.user_properties),
        }
        with NIGHTLY.open("w", encoding="utf-8", newline="") as file:
            columns = ("test", "day", "outcome", "seconds", "figures")
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[test] for test in sorted(rows))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Fail a test that a Ctrl-C of its own escapes: in a worker it would end the whole session."""
    try:
        return (yield)
    except KeyboardInterrupt as escaped:
        if "PYTEST_XDIST_WORKER" not in os.environ:  # somebody's own
            raise
        raise AssertionError("a KeyboardInterrupt escaped this test") from escaped


@pytest.fixture(autouse=True)
def only_our_games():
    """Forget the games that a test adds: the next one may look at them all."""
    with patch.dict(ROOMS):
        yield


@pytest.fixture(autouse=True)
def unprinted_figures(request, monkeypatch):
    """Draw all figures, but print them only for tests that look at them: it takes most of a page's
    time."""
    if request.node.get_closest_marker("figures") is None:
        blank = '<svg width="1" height="1" xmlns="http://www.w3.org/2000/svg"></svg>', b"\x89PNG"
        monkeypatch.setattr(canvas, "printed", lambda figure, files: blank)


@pytest.fixture(autouse=True)
def few_references(monkeypatch):
    """Play few episodes for rows of references, and solve no game for seconds for a report."""
    monkeypatch.setattr(references, "EPISODES", 2)
    solved = {("rational", "water_allocation")}
    rule_of, candidates = references.rule_of, player_skill.candidates
    monkeypatch.setattr(
        references, "rule_of", lambda *kind: None if kind in solved else rule_of(*kind)
    )
    monkeypatch.setattr(
        player_skill,
        "candidates",
        lambda rules: [] if rules.name == "water_allocation" else candidates(rules),
    )
    monkeypatch.setattr(player_skill, "response_gaps", lambda parts: None)


@pytest.fixture
def registry():
    """Forget the players that a test adds."""
    with patch.dict(PLAYERS):
        yield


@pytest.fixture
def llm_games(tmp_path, monkeypatch, capsys):
    """Run the command line in an empty folder; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["llm-games", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        printed = capsys.readouterr()
        return end.value.code, printed.out, printed.err

    return call


@pytest.fixture(scope="module")
def browser():
    """A real Chromium. While it is there, `asyncio.run` belongs into another thread."""
    if viewing.CHROMIUM is None:
        pytest.skip(viewing.NO_BROWSER)
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is in the extra dev")
    with sync.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=viewing.CHROMIUM)
        yield chromium
        chromium.close()
