"""Tables that are played together: each begins its episodes as it would alone."""

import numpy as np
import pytest
from playing import IDS, SETTINGS

from llm_games.errors import NotReady
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.table import Table
from llm_games.table_batch import AHEAD, Tables

MANY = 6


def same(tables, alone):
    seats = tables.seats(np.ones(tables.count, np.bool_))
    for place, one in enumerate(alone):
        assert int(tables.seeds[place]) == one.seed
        ours, theirs = tables.state.table(place).arrays(), one.state.arrays()
        assert ours.keys() == theirs.keys()
        for name, value in ours.items():
            np.testing.assert_array_equal(value, theirs[name], name)
        for seat in range(one.game.players):
            own = Noise(one.seed).of("seat", seat).seed()
            assert int(seats[seat, place]) == own


@pytest.mark.crossing
@pytest.mark.parametrize(("name", "parameters"), SETTINGS, ids=IDS)
def test_an_episode_that_follows_is_that_of_a_table_alone(name, parameters):
    game, rng = rulebook(name, **parameters), np.random.default_rng(4)
    tables, alone = Tables(game, MANY), [Table(game) for _ in range(MANY)]
    tables.reset([10 + place for place in range(MANY)])
    for place, one in enumerate(alone):
        one.reset(10 + place)
    same(tables, alone)
    for turn in range(12):
        where = rng.random(MANY) < 0.4
        seeds = None if turn % 3 else [99 + turn if place % 2 else None for place in range(MANY)]
        given = None
        if turn == 7:  # chance that was drawn elsewhere
            drawn = game.chance(Noise(5))
            given = {name: drawn[name] for name in drawn}
        tables.reset(seeds, where, given)
        for place in np.flatnonzero(where).tolist():
            alone[place].reset(seeds[place] if seeds else None, given)
        same(tables, alone)
        assert (tables.steps[where] == 0).all()


def test_one_table_that_begins_often_does_not_stop_the_others():
    game = rulebook("beauty_contest", players=3, rounds=2)
    tables, alone = Tables(game, 3), [Table(game) for _ in range(3)]
    tables.reset([1, 2, 3])
    for place, one in enumerate(alone):
        one.reset(place + 1)
    first, all_three = np.array([True, False, False]), np.ones(3, np.bool_)
    for turn in range(2 * AHEAD + 3):
        where = all_three if turn % 50 == 49 else first
        tables.reset(None, where)
        for place in np.flatnonzero(where).tolist():
            alone[place].reset()
        same(tables, alone)


def test_no_table_can_start_again():
    tables = Tables(rulebook("public_goods"), 2)
    tables.reset([1, 2])
    tables.reset(None, np.array([False, False]))
    assert tables.seeds.tolist() == [1, 2]


def test_tables_that_were_never_started_cannot_start_again():
    tables = Tables(rulebook("public_goods"), 2)
    with pytest.raises(NotReady, match="reset all tables first"):
        tables.reset(None, np.array([True, False]))
