"""Rooms: every game hands over its parts, also one of another package; misspelt names fail."""

import sys
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from playing import each_row

from llm_games import game_rooms as rooms
from llm_games import register
from llm_games.baselines.players import PLAYERS as SHARED
from llm_games.baselines.players import handed, make_player, players_for
from llm_games.baselines.regret import (
    ARTICLES,
    OPTIONAL,
    REQUIRED,
    deviation,
    has,
    rational,
    replies,
)
from llm_games.baselines.rules import Kind
from llm_games.errors import BadParameter, LLMGamesError, UnknownName, unknown
from llm_games.registry import game_class, rulebook
from llm_games.wrappers.play import play

MEASURES = (*REQUIRED, *OPTIONAL)
PARTS = ("rules", "theory", "players", "mind")


def check_room(game):
    """Check what a game's room hands over: every name in it means something."""
    package = rooms.ROOMS[game].players
    for module in iter_modules(import_module(package).__path__) if package else ():
        near = get_close_matches(module.name, PARTS, 1, cutoff=0.8)
        if near and module.name not in PARTS:
            raise BadParameter(f"{package}/{module.name}.py: did you mean {near[0]}.py?")
    for kind, said in handed(game).rules.items():
        if isinstance(said, Kind) and not (said.summary and (said.rule or said.made)):
            raise BadParameter(f"{game}: player {kind!r} needs a summary and a rule")
        if not isinstance(said, Kind) and kind not in SHARED:
            raise unknown("kind of player that games share (others come as a Kind):", kind, SHARED)
    theory = rooms.part(game, "theory")
    if theory is None:
        return
    if not callable(getattr(theory, "deviation", None)):
        raise BadParameter(f"{theory.__name__} must define deviation(game, record)")
    for name, part in vars(theory).items():
        own = getattr(part, "__module__", None) == theory.__name__
        near = get_close_matches(name, MEASURES, 1, cutoff=0.85)
        if own and near and name not in MEASURES:
            raise BadParameter(f"{theory.__name__}: {name}: did you mean {near[0]}?")
    if has(game, "rational") and rational(rulebook(game)).kind not in ARTICLES:
        raise unknown(f"kind of rational player of {game}", rational(rulebook(game)).kind, ARTICLES)
    for name in replies(rulebook(game)) if has(game, "replies") else ():
        make_player(name, game)


@each_row("game", rooms.ROOMS)
def test_every_room_hands_over_what_the_floor_looks_for(game):
    check_room(game)
    assert all(has(game, measure) for measure in REQUIRED)
    assert replies(rulebook(game))[0] == "rational"
    assert {"rational", "best_response", "cooperative"} <= set(players_for(game))


RULES = """
from llm_games.games.divide_dollar.rules import DivideDollar


class Crumbs(DivideDollar):
    name, title = "crumbs", "Crumbs"
"""
THEORY = """
import numpy as np


def deviation(game, record):
    regret = game.golds - record["actions"]
    return regret, np.full(regret.shape[1:], np.nan)
"""
PLAYERS = """
import numpy as np

from llm_games.baselines.rules import Kind, Players, count_from, shape


def greedy(view, rng):
    return np.full(shape(view), view.game.golds)


READ = count_from(1, 9, "crumb needs 1 to 9")


def crumb(size, view, rng):
    return np.full(shape(view), size)


PLAYERS = Players(
    {
        "best_response": greedy,
        "crumb": Kind("bids so little", crumb, "<size>", READ),
    },
    assumed="whatever they do",
)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write a package with a whole room; return a function that brings it, changed or not."""
    monkeypatch.syspath_prepend(tmp_path)
    wording = rooms.wordings("divide_dollar") / "v1.j2"

    def bring(**parts):
        name = f"their_game_{len(list(tmp_path.iterdir()))}"
        room = tmp_path / name
        (room / "wordings").mkdir(parents=True)
        (room / "wordings" / "v1.j2").write_text(wording.read_text())
        files = {"__init__": "", "rules": RULES, "theory": THEORY, "players": PLAYERS} | parts
        for file, text in files.items():
            (room / f"{file}.py").write_text(text)
        monkeypatch.setitem(rooms.ROOMS, "crumbs", rooms.Room(name, name))
        return name

    yield bring
    for module in [module for module in sys.modules if module.startswith("their_game_")]:
        del sys.modules[module]


def test_a_package_brings_a_whole_room(package):
    register("crumbs", package())
    check_room("crumbs")
    game = rulebook("crumbs", players=2, rounds=1, golds=10)
    seats = [make_player("crumb:3", game), make_player("best_response", "crumbs")]
    (step,) = play(game, seats, 1).steps
    assert step.outcome.record["actions"].tolist() == [3, 10]
    assert deviation(game, step.outcome.record).regret.tolist() == [7, 0]
    assert players_for("crumbs")["crumb:<size>"] == "bids so little"
    with pytest.raises(BadParameter, match="crumb needs 1 to 9, got '0'"):
        make_player("crumb:0")
    with pytest.raises(BadParameter, match="'rational' is not defined for crumbs; it is for"):
        make_player("rational", game)
    with pytest.raises(BadParameter, match="'crumb:1' is not defined for public_goods; it is for"):
        make_player("crumb:1", "public_goods")


@each_row(
    ("part", "text", "says"),
    [
        ("players", PLAYERS.replace("PLAYERS =", "PLAYER ="), "must have PLAYERS = Players"),
        ("players", PLAYERS.replace('"best_r', '"bets_r'), "did you mean 'best_response'"),
        ("players", PLAYERS.replace('"bids so little"', '""'), "'crumb' needs a summary"),
        ("players", PLAYERS.replace("assumed", "assume"), "unexpected keyword.*'assume'"),
        ("theory", THEORY.replace("deviation", "deviatoin"), "must define deviation"),
        ("theory", f"{THEORY}\n\ndef interm(game, record): ...", "interm: did you mean interim"),
        ("theory", f"{THEORY}\n\ndef exploitabilty(game, steps): ...", "mean exploitability"),
        ("theory", f'{THEORY}\n\ndef rational(game): return "equilibrum", "x"', "mean 'equilibriu"),
        ("theory", f'{THEORY}\n\ndef replies(game): return ["crum:3"]', "no player 'crum:3'"),
        ("plyers", PLAYERS, "plyers.py: did you mean players.py"),
    ],
)
def test_a_misspelt_name_in_a_room_fails_the_check(package, part, text, says):
    package(**{part: text})
    with pytest.raises((BadParameter, UnknownName, TypeError), match=says):
        check_room("crumbs")


def test_a_game_without_rooms_can_be_played_at_random_and_fixed(package):
    package(**{"theory": "deviation = None", "players": "from llm_games.baselines.rules import "
               "Players\nPLAYERS = Players()"})  # fmt: skip
    game = rulebook("crumbs", players=2, rounds=2, golds=10)
    for kind in ("random", "fixed:4"):
        assert not np.any(
            [s.outcome.broke for s in play(game, [make_player(kind, game)] * 2, 1).steps]
        )


@pytest.mark.parametrize(
    ("room", "says"),
    [
        ("no_such_package", "has no module no_such_package.rules"),
        ("llm_games.baselines.games.divide_dollar", "has no module .*divide_dollar.rules"),
        (
            "llm_games.games.divide_dollar.rules:Nope",
            "there is no game in .*rules 'Nope'; known: DivideDollar",
        ),
    ],
)
def test_a_room_without_rules_is_told(monkeypatch, room, says):
    monkeypatch.setitem(rooms.ROOMS, "lost", rooms.Room(room))
    with pytest.raises(LLMGamesError, match=says):
        game_class("lost")
