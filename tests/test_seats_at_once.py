"""Rule players that act in many seats at once do what they do seat by seat."""

import numpy as np
import pytest
from playing import SETTINGS, batch_actions, every

import llm_games
from llm_games.baselines.players import PLAYERS, _room_kinds, make_player, rule_of
from llm_games.baselines.rules import legal
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.view import Sight
from llm_games.wrappers.together import at_once

TABLES = 6
VALUES = {"level_k": "1", "shade": "0.7", "dp": "1", "rule": "2"}
SLOW = {("water_allocation", kind) for kind in ("rational", "best_response", "dp")}
"""Their tables take seconds to work out; of one setting they are kept."""


def rules_of(game):
    found = {}
    for kind in {**PLAYERS, **_room_kinds(game.name)}:
        if rule_of(kind, game.name) is None or kind == "fixed":
            continue
        name = f"{kind}:{VALUES[kind]}" if kind in VALUES else kind
        try:
            found[name] = make_player(name, game).rule_in(game)
        except BadParameter:
            continue  # too large to be solved
    return found


@every
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


@pytest.mark.crossing
@pytest.mark.parametrize("kind", ["best_response", "random"])
@pytest.mark.parametrize("name", sorted({name for name, _ in SETTINGS} - {"water_allocation"}))
def test_a_batch_of_cells_is_what_its_seats_do_alone(name, kind):
    """Tables at different steps, some seats held by others, some tables started anew."""
    game, rng = llm_games.rules(name), np.random.default_rng(2)
    seeds = rng.integers(0, 2**60, (game.players, TABLES))
    policy, held = make_player(kind, game), rng.random(seeds.shape) < 0.7
    state = game.reset(5, (TABLES,))
    memory = policy.start_batch(game, np.ones_like(held), seeds)
    counts = np.zeros_like(seeds)
    for step in range(8):
        if step == 5:
            again = np.broadcast_to(np.arange(TABLES) % 2 == 0, held.shape)
            state = state.placed(np.flatnonzero(again[0]), game.reset(9, (TABLES // 2,)))
            seeds, counts = np.where(again, seeds + 1, seeds), np.where(again, 0, counts)
            memory = policy.start_batch(game, again, seeds, memory)
        where, sight = game.asked(state) & held, Sight(game, state)
        decided, memory = at_once(policy.decide_batch(sight, where, memory))
        expected, rule = np.zeros_like(seeds), policy.rule_in(game)
        for seat, table in zip(*map(np.ndarray.tolist, np.nonzero(where)), strict=True):
            noise = Noise(int(seeds[seat, table])).of(int(counts[seat, table]))
            some = sight.table(np.array([table]))
            one = Noise(np.array([seeds[seat, table]])).of(int(counts[seat, table]))
            assert one.key == noise.key
            moves = legal(some.view(seat), rule(some.view(seat), one))
            if moves.ndim > 1:
                expected[:, table] += moves[:, 0]
            else:
                expected[seat, table] = moves[0]
        assert np.array_equal(decided.actions, expected), step
        counts += where
        state, _ = game.step(
            state, np.where(where, decided.actions, batch_actions(game, state, rng))
        )
