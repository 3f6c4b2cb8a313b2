"""Speed figures."""

import sys

from llm_games.benchmarks.speed import __main__ as speed
from llm_games.benchmarks.speed import episodes


def test_a_peer_that_is_not_installed_is_named(monkeypatch, capsys):
    for missing in ("textarena", "pettingzoo.classic"):
        monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(episodes, "SECONDS", 0.001)
    monkeypatch.setattr(speed, "measure", lambda games: {})
    monkeypatch.setattr(sys, "argv", ["speed"])
    speed.main()
    assert capsys.readouterr().out.count("peer not installed") == 2
