"""Rule players that act in many seats at once do what they do seat by seat."""

import numpy as np
import pytest
from playing import IDS, SETTINGS, batch_actions

import llm_games
from llm_games.baselines.players import PLAYERS, _own, make_player, rule_of
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.view import Sight

TABLES = 6
VALUES = {"level_k": "1", "shade": "0.7", "dp": "1", "rule": "2"}
SLOW = {("water_allocation", kind) for kind in ("rational", "best_response", "dp")}
"""Their tables take seconds to work out; of one setting they are kept."""


def rules_of(game):
    """Return every rule of a game, by the player's name."""
    found = {}
    for kind in {**PLAYERS, **_own(game.name)}:
        if rule_of(kind, game.name) is None or kind == "fixed":
            continue
        name = f"{kind}:{VALUES[kind]}" if kind in VALUES else kind
        try:
            found[name] = make_player(name, game).rule_in(game)
        except BadParameter:
            continue  # too large to be solved
    return found


@pytest.mark.parametrize(("name", "more"), SETTINGS, ids=IDS)
def test_seats_at_once_are_seats_one_by_one(name, more):
    game = llm_games.rules(name, **more)
    rng, noise = np.random.default_rng(1), Noise(np.arange(TABLES, dtype=np.uint64))
    n, tables = game.players, np.arange(TABLES)
    of_seats = Noise(np.stack([noise.of("seat", seat).key for seat in range(n)]))
    rules = {
        player: rule
        for player, rule in rules_of(game).items()
        if not more or (name, player.partition(":")[0]) not in SLOW
    }
    assert "random" in rules
    state = game.begin(game.chance(noise), (TABLES,))
    for step in range(6):
        state = state if step == 0 else game.step(state, batch_actions(game, state, rng))[0]
        asked, sight = game.asked(state), Sight(game, state)
        turn = asked.argmax(axis=0)
        for player, rule in rules.items():
            shape = (TABLES,)
            alone = [np.asarray(rule(sight.view(i), of_seats.table(i))) for i in range(n)]
            alone = np.stack([np.broadcast_to(a, (*a.shape[:-1], *shape)) for a in alone], axis=-2)
            for seats in (np.arange(n), np.arange(n)[::2]):
                at_once = rule(sight.view(seats[:, None]), of_seats.table(seats))
                expected = alone[..., seats, :]
                found = np.broadcast_to(at_once, expected.shape)
                assert np.array_equal(found, expected), (player, step)
            found = rule(sight.view(turn), of_seats.table((turn, tables)))
            expected = alone[..., turn, tables]
            assert np.array_equal(np.broadcast_to(found, expected.shape), expected), (player, step)
