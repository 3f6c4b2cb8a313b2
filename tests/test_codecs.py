"""Codecs, masks and numbers of a batch are those of its tables, one by one."""

import numpy as np
import pytest
from playing import IDS, SETTINGS, batch_actions, equal

import llm_games
from llm_games.codecs import codec
from llm_games.view import Sight, Who

TABLES = 6
every = pytest.mark.parametrize(("name", "more"), SETTINGS, ids=IDS)


def played(game, steps, seed=0, tables=TABLES):
    """Yield states of a batch in random play, the first included."""
    state, rng = game.reset(seed, (tables,)), np.random.default_rng(seed)
    yield state
    for _ in range(steps):
        if state.over.all():
            return
        state, _ = game.step(state, batch_actions(game, state, rng))
        yield state


def chosen(own, rng, masks):
    """Draw an action of a codec's space for each table, legal ones where there is a mask."""
    found = []
    for mask in masks:
        own.space.seed(int(rng.integers(2**31)))
        legal = None if mask is None else own.space.start + np.flatnonzero(mask)
        found.append(own.space.sample() if legal is None else int(rng.choice(legal)))
    return np.array(found)


def tables_of(state):
    return [state.table(table) for table in range(TABLES)]


def same(one, other):
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


@pytest.mark.parametrize("actions", ["index", "unit", "rules"])
@every
def test_a_batch_of_actions_means_what_each_does_alone(name, more, actions):
    game = llm_games.rules(name, **more)
    rng, seats = np.random.default_rng(1), np.arange(TABLES) % game.players
    alone = [codec(game, seat, actions) for seat in seats.tolist()]
    together = codec(game, 0, actions, batch=(TABLES,))
    for state in played(game, 12):
        view = Sight(game, state).view(seats)  # another seat at each table
        views = [Sight(game, t).view(s) for t, s in zip(tables_of(state), seats, strict=True)]
        assert view.asked.tolist() == [own.question is not None for own in views]
        together.begin()
        for own in alone:
            own.begin()
        for _ in range(game.players):  # a plan takes several actions
            masks = [None] * TABLES
            if hasattr(together.space, "n"):
                masks = [own.mask(v) for own, v in zip(alone, views, strict=True)]
                assert all(mask.any() for mask in masks)
                assert np.array_equal(together.masks(view), masks)
            numbers = together.shown(view.numbers.copy())
            for table, (own, v) in enumerate(zip(alone, views, strict=True)):
                assert same(numbers[table], own.shown(v.numbers.copy()))
            picked = chosen(together, rng, masks)
            moves, whole = together.taken(view, picked, view.asked)
            for table, (own, v) in enumerate(zip(alone, views, strict=True)):
                if v.question is None:
                    assert not whole[table]
                    assert not np.any(moves[..., table])
                    continue
                move = own.take(v, picked[table])
                assert whole[table] == (move is not None)
                if isinstance(move, tuple):
                    assert moves[:, table].tolist() == list(move)
                elif move is not None:
                    own_place = (v.seat, table) if moves.ndim == 2 else table
                    assert moves[own_place] == move == moves[..., table].sum()
            for table in np.flatnonzero(whole):
                alone[table].begin()
            together.begin(whole)


@every
def test_rows_of_some_seats_and_tables_of_a_batch_are_parts_of_the_whole(name, more):
    game = llm_games.rules(name, **more)
    rng = np.random.default_rng(2)
    for state in played(game, 8):
        numbers, sight = game.observe(state), Sight(game, state, Who("run", step=np.arange(TABLES)))
        mixed = rng.integers(0, game.players, (2, TABLES))
        some = rng.integers(0, game.players, 2)
        tables = np.arange(TABLES)
        assert same(game.observe(state, some), numbers[some])
        assert same(game.observe(state, mixed), numbers[mixed, tables])
        if game.masked:
            mask = game.mask(state)
            assert same(game.mask(state, some), mask[some])
            assert same(game.mask(state, mixed), mask[mixed, tables])
        view, few = sight.view(mixed[0]), sight.table(np.array([4, 1]))
        assert same(view.numbers, numbers[mixed[0], tables])
        assert few.who.step.tolist() == [4, 1]
        for table, seat in enumerate(mixed[0].tolist()):
            one, own = view.table(table), Sight(game, state.table(table)).view(seat)
            assert (one.seat, one.who.step, one.who.run) == (seat, table, "run")
            assert same(one.numbers, own.numbers)
            for got, alone in zip((view.low, view.high, *view.amounts),
                                  (own.low, own.high, *own.amounts), strict=True):  # fmt: skip
                assert got[table] == alone
            for column in game.column_index:
                assert view.number(column)[table] == own.number(column)
            assert (view.mask is None) == (own.mask is None)
            assert view.mask is None or same(view.mask[table], own.mask)
        assert same(few.view(0).numbers, numbers[0, [4, 1]])


@every
def test_tables_put_at_places_of_a_batch_go_on_as_they_do_alone(name, more):
    game = llm_games.rules(name, **more)
    rng, places = np.random.default_rng(3), np.array([4, 0])
    *_, state = played(game, 3)
    *_, part = played(game, 1, seed=50, tables=2)
    whole = state.placed(places, part)
    assert equal(whole.table(places), part)
    rest = np.array([1, 2, 3, 5])
    assert equal(whole.table(rest), state.table(rest))
    actions = batch_actions(game, whole, rng)
    for _ in range(6):
        after, outcome = game.step(whole, actions)
        alone, paid = game.step(whole.table(places), actions[:, places])
        assert equal(after.table(places), alone)
        assert np.array_equal(outcome.rewards[:, places], paid.rewards)
        kinds = {k: v.dtype for k, v in whole.arrays().items()}
        assert kinds == {k: v.dtype for k, v in after.arrays().items()}
        whole, actions = after, batch_actions(game, after, rng)
