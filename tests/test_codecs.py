"""Codecs, masks and numbers of a batch are those of its tables, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import batch_actions, each_row, equal, every

import llm_games
from llm_games.codecs import FINE, _part, codec
from llm_games.errors import BadParameter, IllegalAction
from llm_games.facts import Column
from llm_games.normalisation import Scale
from llm_games.questions import MISSING
from llm_games.view import Sight, Who

TABLES = 6


def played(game, steps, seed=0, tables=TABLES):
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
    for state in played(game, 7):
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
            moves, whole = together.take_batch(view, picked, view.asked)
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
    for state in played(game, 5):
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


@every
def test_normalized_numbers_lie_within_1_and_can_be_scaled_back(name, more):
    env = llm_games.make(name, obs_mode="numeric", normalize=True, form="parallel", **more)
    raw = llm_games.make(name, obs_mode="numeric", form="parallel", **more)
    scale = Scale(env.game.columns())
    for agent in env.possible_agents:
        space = env.observation_space(agent)
        box = space["observation"] if hasattr(space, "spaces") else space
        assert (box.low == -1).all()
        assert (box.high == 1).all()
        assert box.shape == (len(env.game.columns()),)
    seen, whole = env.reset(seed=3)[0], raw.reset(seed=3)[0]
    for step in range(5):
        for agent, one in seen.items():
            assert env.observation_space(agent).contains(one)
            one, other = (
                o["observation"] if isinstance(o, dict) else o for o in (one, whole[agent])
            )
            assert np.allclose(scale.back(one), other, rtol=1e-4, atol=1e-4 * wide(env.game))
        assert env.state_space.contains(env.state())
        acts = {agent: sampled_index(env, agent, seen[agent], step) for agent in env.agents}
        seen, whole = env.step(acts)[0], raw.step(acts)[0]


def wide(game):
    ends = np.array([(column.low, column.high) for column in game.columns()])
    width = ends[:, 1] - ends[:, 0]
    return np.where(np.isfinite(width), width, 1)


def sampled_index(env, agent, seen, step):
    space = env.action_space(agent)
    space.seed(step)
    return space.sample(seen["action_mask"] if isinstance(seen, dict) else None)


def test_columns_without_an_end_grow_as_a_logarithm():
    scale = Scale([Column("a", 0, np.inf, ""), Column("b", -4, 4, ""), Column("c", 7, 7, "")])
    numbers = np.array([[0, -4, 7], [1e6, 1, 7], [2.0**53, 4, 7], [1e30, 5, 7]], np.float32)
    scaled = scale(numbers)
    assert scaled[:, 0] == pytest.approx([0, np.log1p(1e6) / np.log1p(2**53), 1, 1])
    assert scaled[:, 1].tolist() == [-1, 0.25, 1, 1]
    assert scaled[:, 2].tolist() == [0, 0, 0, 0]
    assert scale.back(scaled[:3]) == pytest.approx(numbers[:3].astype(float), rel=1e-4)
    assert scaled.dtype == np.float32
    with pytest.raises(BadParameter, match="normalize must be one of False, True, got 'yes'"):
        llm_games.make("public_goods", normalize="yes")


LARGE = st.integers(0, 2**53)


@given(LARGE, LARGE, st.integers(0, FINE), st.sampled_from([1, 20, FINE]))
def test_shares_of_large_amounts_are_exact_and_within_int64(one, other, k, parts):
    low, high, k = min(one, other), max(one, other), min(k, parts)
    exact = low + ((high - low) * k + parts // 2) // parts
    assert _part(low, high, k, parts) == exact
    limits = np.array([low, high])
    assert _part(*limits, np.array([k]), parts).tolist() == [exact]


OFF = [
    (np.array([0, 5, 21]), r"player_0 at table 2: 21 is not an integer from 0 to 20"),
    (np.array([0, -1, 0]), r"player_0 at table 1: -1 is not an integer from 0 to 20"),
    (np.array([0.0, 1.0, 2.0]), r"integers from 0 to 20 of shape \(3,\).* got float64 of shape"),
    (np.array([0, 1]), r"of shape \(3,\), one for each table, got int64 of shape \(2,\)"),
    (np.array([True, True, True]), "got bool"),
    (["1", "2", "3"], "got <U1"),
    ([1, None, 2], "got object"),
]


@each_row(("actions", "says"), OFF)
def test_a_batch_of_indexes_with_one_outside_is_refused(actions, says):
    game = llm_games.rules("public_goods", players=2)
    view = Sight(game, game.reset(1, (3,))).view(0)
    where = np.ones(3, bool)
    with pytest.raises(IllegalAction, match=says):
        codec(game, 0, batch=(3,)).take_batch(view, actions, where)


def test_of_other_tables_no_action_is_looked_at():
    game = llm_games.rules("public_goods", players=2)
    view, where = Sight(game, game.reset(1, (3,))).view(0), np.array([True, False, True])
    moves, whole = codec(game, 0, batch=(3,)).take_batch(view, np.array([4, 99, 6]), where)
    assert (moves.tolist(), whole.tolist()) == ([4, 0, 6], [True, False, True])


@each_row("name", ["sealed_bid_auction", "english_auction", "pirate_game"])
@each_row("bad", [np.nan, 1.01, -np.inf])
def test_a_share_that_is_no_number_from_minus_1_to_1_is_refused(name, bad):
    game = llm_games.rules(name)
    seats = np.array([0, 1, 0])  # another seat at every table
    view = Sight(game, game.reset(1, (3,))).view(seats)
    own = codec(game, 0, "unit", batch=(3,))
    actions = np.zeros((3, *own.space.shape), np.float32)
    actions[1] = bad
    with pytest.raises(IllegalAction, match=r"player_1 at table 1: .* numbers from -1 to 1"):
        own.take_batch(view, actions, np.ones(3, bool))
    with pytest.raises(IllegalAction, match=r"player_0: .* numbers from -1 to 1"):
        codec(game, 0, "unit").take(Sight(game, game.reset(1)).view(0), actions[1])


def test_a_batch_of_texts_is_read_and_asked_again():
    game = llm_games.rules("divide_dollar", players=2)
    view, where = Sight(game, game.reset(1, (3,))).view(0), np.array([True, True, False])
    own = codec(game, 0, "text", 1, batch=(3,))
    said = ['{"bid_amount": 3}', "no", "never looked at"]
    moves, whole = own.take_batch(view, said, where)
    assert (moves.tolist(), whole.tolist()) == ([3, 0, 0], [True, False, False])
    assert {table: heard["outcome"] for table, heard in own.reading.items()} == {
        0: "valid",
        1: "unparsable",
    }
    own.begin(whole)
    moves, whole = own.take_batch(view, said, where)
    assert whole.tolist() == [True, True, False]  # no more is asked again
    assert moves[1] == MISSING
    with pytest.raises(IllegalAction, match="player_0 at table 1: 7 is not a text"):
        own.take_batch(view, ["a", 7, "b"], where)
