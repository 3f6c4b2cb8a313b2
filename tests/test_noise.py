"""Chance by name: the same alone and in company, of the right distribution, for ever."""

import pickle
import subprocess
import sys
from itertools import permutations
from math import erf, exp, log, pi, sin, sqrt

import numpy as np
import pytest
from playing import each_row

from llm_games.errors import BadParameter
from llm_games.noise import FULL, GOLD, Noise, mix, number

MANY = np.arange(200_000)
WEIGHTS = np.array([0.0, 1.0, 3.0, 0.0, 4.0])
LIMITS = np.arange(2, 12).reshape(2, 5)

DRAWS = {
    "bits": lambda noise, shape: noise.bits(shape),
    "random": lambda noise, shape: noise.random(shape),
    "integers": lambda noise, shape: noise.integers(-3, 30, shape),
    "integers of many": lambda noise, shape: noise.integers(-(2**62), 2**60, shape),
    "normal": lambda noise, shape: noise.normal(50.0, 7.5, shape),
    "order": lambda noise, shape: noise.order(6, shape),
    "sample": lambda noise, shape: noise.sample(9, 4, shape),
    "sample of many": lambda noise, shape: noise.sample(1000, 5, shape),
    "choice": lambda noise, shape: noise.choice(WEIGHTS, shape),
    "repeated": lambda noise, shape: repeated(noise, shape),
    "seed": lambda noise, shape: noise.of(*np.atleast_1d(shape).tolist()).seed(),
}
every = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
SHAPES = [(), 3, (2, 3), 0, (2, 1, 2)]


def repeated(noise, shape):
    """Draw until the number is below 5, as the rules do."""
    value = noise.of(0).integers(0, 10, shape)
    for attempt in range(1, 40):
        value = np.where(value < 5, value, noise.of(attempt).integers(0, 10, shape))
    return value


def same(one, two):
    """Same bits, type and shape."""
    return np.asarray(one).dtype == np.asarray(two).dtype and np.array_equal(one, two)


# -- the same alone and in company -----------------------------------------------------------


@every
@each_row("batch", [(1,), (5,), (2, 3), (2, 1, 2)])
def test_a_batch_draws_what_its_copies_draw_alone(draw, batch):
    seeds = 1000 + np.arange(np.prod(batch)).reshape(batch)
    for shape in SHAPES:
        together = draw(Noise(seeds, "game").of("draw", 7), shape)
        assert together.shape[together.ndim - len(batch) :] == batch
        for place, seed in np.ndenumerate(seeds):
            assert same(together[(..., *place)], draw(Noise(int(seed), "game", "draw", 7), shape))


@every
def test_one_table_of_a_batch(draw):
    noise, shape = Noise(np.arange(12).reshape(3, 4), "draw"), (2, 3)
    assert same(draw(noise.table((1, 2)), shape), draw(Noise(6, "draw"), shape))
    assert same(draw(noise.table(1), shape), draw(Noise(np.arange(4, 8), "draw"), shape))


@every
def test_tables_out_of_phase(draw):
    """Each copy has its own count of steps."""
    steps = np.array([3, 0, 8])
    together = draw(Noise(np.arange(3)).of("step", steps), (2,))
    for place, step in enumerate(steps.tolist()):
        assert same(together[..., place], draw(Noise(place).of("step", step), (2,)))


def test_limits_and_weights_of_each_table():
    noise, few = Noise(np.arange(5), "x"), Noise(2, "x")
    assert same(noise.integers(0, LIMITS)[:, 2], few.integers(0, LIMITS[:, 2]))
    assert noise.integers(LIMITS[0]).shape == (5,)
    assert noise.integers(0, LIMITS, (2,)).shape == (2, 5)
    weights = Noise(0).random((3, 5, 4))
    assert same(noise.choice(weights)[:, 2], few.choice(weights[:, 2]))
    assert same(noise.normal(LIMITS)[:, 2], few.normal(LIMITS[:, 2]))
    assert same(noise.normal(0, LIMITS[:1], 2), noise.normal(0, np.repeat(LIMITS[:1], 2, axis=0)))


@each_row("name", sorted(set(DRAWS) - {"repeated", "seed"}))
def test_more_players_change_nothing_for_the_others(name):
    noise, draw = Noise(np.arange(4), "players"), DRAWS[name]
    of_each = 1 if name in ("order", "sample", "sample of many") else 0
    many, few = draw(noise, (7, 2)), draw(noise, (3, 2))
    assert same(np.moveaxis(many, of_each, 0)[:3], np.moveaxis(few, of_each, 0))


def test_more_of_a_sample_changes_nothing_of_its_beginning():
    noise = Noise(np.arange(4))
    for size in (20, 2000):
        assert same(noise.sample(size, 6, 3)[:4], noise.sample(size, 4, 3))


def test_nothing_is_counted():
    """Asking again, or something else between, brings the same."""
    noise = Noise(5, "rules")
    first = noise.random(4)
    noise.integers(0, 9, 100)
    noise.of("other").random()
    assert same(noise.random(4), first)


def test_one_name_for_two_draws_shows():
    """Who forgets a name of its own gets the same numbers again, whatever it asks for."""
    noise = Noise(5)
    assert same(noise.random(3), noise.random(9)[:3])
    assert same(noise.integers(0, 1000, 3), (noise.random(3) * 1000).astype(np.int64))
    assert not np.isin(noise.of("a").bits(99), noise.of("b").bits(99)).any()


def test_keys():
    noise = Noise(5)
    assert same(noise.of("a").of(1).bits(3), noise.of("a", 1).bits(3))
    assert same(Noise(5, "a", 1).bits(3), noise.of("a", 1).bits(3))
    assert same(noise.of(np.int64(1)).bits(3), noise.of(1).bits(3))
    assert noise.of("seat", np.arange(3)[:, None]).batch == (3, 1)
    assert same(noise.of().bits(3), noise.bits(3))
    keys = [(1,), ("1",), (1, 2), (2, 1), (12,), ("1", "2"), ("12",), (0,), (0, 0), ("",)]
    drawn = [int(noise.of(*key).bits()) for key in keys]
    assert len(set(drawn)) == len(keys)
    assert not set(drawn) & set(noise.bits(100).tolist())


GOLDEN = {
    "bits": 10376170305276743820,
    "seeds": [5662154353912865050, 3558970390641671860],
    "random": [0.5624933193530313, 0.0017099200097374645],
    "integers": [560, -4, 97, 868],
    "normal": [0.9396404400297007, 0.2308414221550477, -0.457702306761045],
    "order": [1, 2, 5, 0, 4, 3],
    "sample": [945, 13, 418, 545],
    "choice": [2, 0, 0, 2, 2, 1],
    "seed": 5188085152638371910,
}


# -- for ever --------------------------------------------------------------------------------


def test_golden_numbers():
    """Recorded seeds replay by these: they change only with a new edition of every game."""
    noise = Noise(2026, "golden", 7)
    assert noise.bits().item() == GOLDEN["bits"]
    assert Noise(np.array([2026, FULL], np.uint64)).bits().tolist() == GOLDEN["seeds"]
    assert noise.random(2).tolist() == GOLDEN["random"]
    assert noise.integers(-5, 1000, 4).tolist() == GOLDEN["integers"]
    assert noise.normal(0.0, 1.0, 3).tolist() == GOLDEN["normal"]
    assert noise.order(6).tolist() == GOLDEN["order"]
    assert noise.sample(1000, 4).tolist() == GOLDEN["sample"]
    assert noise.choice([1, 2, 3], 6).tolist() == GOLDEN["choice"]
    assert noise.seed() == GOLDEN["seed"]
    assert noise.seed(31) == GOLDEN["seed"] >> 32


def test_the_mix_is_that_of_splitmix64():
    """First numbers of its reference implementation for the seed 1234567."""
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [mix(1234567 + GOLD * k & FULL) for k in (1, 2, 3)] == known
    assert mix(1234567 + GOLD * np.arange(1, 4, dtype=np.uint64)).tolist() == known


def test_other_processes_and_byte_orders():
    code = "from llm_games.noise import Noise; print(Noise(3, 'key', 'é').bits())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == Noise(3, "key", "é").bits()
    seeds = np.arange(5)
    for kind in (">i8", "<i8", ">u8", ">i4", "u1"):
        assert same(Noise(seeds.astype(kind)).random(3), Noise(seeds).random(3))


def test_pickled():
    for noise in (Noise(5, "a"), Noise(np.arange(4), "a")):
        other = pickle.loads(pickle.dumps(noise))
        assert other.batch == noise.batch
        assert same(other.of("b").normal(0, 1, 3), noise.of("b").normal(0, 1, 3))


# -- distributions: each has a fixed seed, so that it passes for ever or never ------------------


def chi_square(counts, expected):
    counts, expected = np.ravel(counts), np.ravel(expected)
    freedom = np.count_nonzero(expected) - 1
    assert not counts[expected == 0].any()
    some = expected > 0
    statistic = ((counts - expected)[some] ** 2 / expected[some]).sum()
    return (statistic - freedom) / sqrt(2 * freedom)


def kolmogorov(values, cdf):
    """Return the largest distance to the distribution, in units of 1 / sqrt(n)."""
    reached = np.array([cdf(value) for value in np.sort(values).tolist()])
    steps = np.arange(len(reached) + 1) / len(reached)
    far = max(np.max(steps[1:] - reached), np.max(reached - steps[:-1]))
    return far * sqrt(len(reached))


def test_integers_are_equally_likely():
    for source in (Noise(1).integers(-20, 80, MANY.size), Noise(MANY).integers(-20, 80)):
        counts = np.bincount(source + 20, minlength=100)
        assert abs(chi_square(counts, np.full(100, MANY.size / 100))) < 4


def test_neighbouring_seeds_and_places_are_independent():
    drawn = Noise(MANY, "pair").integers(0, 10, 2)
    for one, two in ((drawn[0], drawn[1]), (drawn[0][:-1], drawn[0][1:])):
        counts = np.bincount(one * 10 + two, minlength=100)
        assert abs(chi_square(counts, np.full(100, len(one) / 100))) < 4


def test_limits():
    noise = Noise(MANY)
    assert set(noise.integers(3, 5).tolist()) == {3, 4}
    assert set(noise.integers(3, 5, endpoint=True).tolist()) == {3, 4, 5}
    assert set(noise.integers(2).tolist()) == {0, 1}
    assert set(noise.integers(7, 7, endpoint=True).tolist()) == {7}
    each = noise.integers(LIMITS[0, :1], LIMITS[1, :1], endpoint=True)
    assert (each.min(), each.max()) == (2, 7)


@each_row(
    ("low", "high"), [(-(2**63), -1), (0, 2**63 - 1), (2**62, 2**63), (0, 3 * 2**40), (0, 2**32)]
)
def test_wide_ranges(low, high):
    count = high - low
    exact = [low + (bits * count >> 64) for bits in Noise(4).bits(1000).tolist()]
    assert Noise(4).integers(low, high, 1000).tolist() == exact
    if high < 2**63:  # as arrays
        assert Noise(4).integers(np.full(1000, low), np.full(1000, high)).tolist() == exact


@each_row("noise", [Noise(7), Noise(np.arange(3))])
def test_one_number_of_many(noise):
    drawn = noise.random(5)
    assert all((number(noise.key, place) == drawn[place]).all() for place in range(5))


def test_random_is_uniform():
    values = Noise(MANY).random()
    assert 0 <= values.min() < values.max() < 1
    assert kolmogorov(values, lambda x: x) < 1.7
    assert same(np.ldexp(values, 53) % 1, np.zeros(MANY.size))


def test_normal_is_normal():
    values = Noise(MANY).normal(3.0, 2.0)
    assert kolmogorov(values, lambda x: (1 + erf((x - 3) / 2 / sqrt(2))) / 2) < 1.7
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        mean = (((values - 3) / 2) ** power).mean()
        assert abs(mean - moment) < 4 * sqrt(spread / MANY.size), power
    exact = [
        sqrt(-2 * log(((bits >> 32) + 0.5) / 2**32))
        * sin(pi * ((bits & 2**32 - 1) + 0.5 - 2**31) / 2**32)
        for bits in Noise(MANY[:2000]).bits().tolist()
    ]
    assert Noise(MANY[:2000]).normal() == pytest.approx(np.array(exact), abs=1e-10)


def test_orders_are_equally_likely():
    numbers = [np.ravel_multi_index(order[:3], (4, 4, 4)) for order in permutations(range(4))]
    for drawn in (Noise(MANY).order(4), Noise(1).order(4, MANY.size), Noise(MANY).sample(4, 3)):
        counts = np.bincount(np.ravel_multi_index(drawn[:3], (4, 4, 4)), minlength=64)
        assert counts.sum() == counts[numbers].sum()
        assert abs(chi_square(counts[numbers], np.full(24, MANY.size / 24))) < 4


def test_samples_of_many_are_equally_likely():
    drawn = Noise(MANY).sample(100, 2)
    counts = np.bincount(drawn[0] * 100 + drawn[1], minlength=10_000).reshape(100, 100)
    expected = np.where(np.eye(100, dtype=bool), 0, MANY.size / 9900)
    assert abs(chi_square(counts, expected)) < 4
    everything = np.sort(Noise(3).sample(200, 200))
    assert everything.tolist() == list(range(200))


def test_choices_follow_the_weights():
    expected = WEIGHTS / WEIGHTS.sum() * MANY.size
    assert abs(chi_square(np.bincount(Noise(MANY).choice(WEIGHTS), minlength=5), expected)) < 4
    poisson = np.array([exp(-2) * 2**k / np.prod(range(1, k + 1), initial=1.0) for k in range(9)])
    counts = np.bincount(Noise(2).choice(poisson, MANY.size), minlength=9)
    assert abs(chi_square(counts, poisson / poisson.sum() * MANY.size)) < 4


def test_seeds_fit():
    assert Noise(MANY).seed(31).max() < 2**31
    assert type(Noise(0).seed()) is int
    assert len(set(Noise(MANY).seed().tolist())) == MANY.size


# -- nonsense --------------------------------------------------------------------------------


@each_row(
    "call",
    [
        lambda: Noise(-1),
        lambda: Noise(2**64),
        lambda: Noise(np.array([1, -1])),
        lambda: Noise(1.5),
        lambda: Noise(None),
        lambda: Noise(True),
        lambda: Noise(1).of(-1),
        lambda: Noise(1).of(0.5),
        lambda: Noise(1).integers(3, 3),
        lambda: Noise(1).integers(4, 3, endpoint=True),
        lambda: Noise(1).integers(0),
        lambda: Noise(1).integers(0, 2**63),
        lambda: Noise(1).integers(2**70, 2**70 + 1),
        lambda: Noise(1).integers(np.array([0, -(2**63)]), 2**62),
        lambda: Noise(1).integers(np.array([0, 5]), np.array([3, 5])),
        lambda: Noise(1).integers(0.0, 3.0),
        lambda: Noise(np.arange(3)).integers(np.zeros((2, 1), int), 9, ()),
        lambda: Noise(np.arange(3)).normal(np.zeros((2, 1)), 1, 1),
        lambda: Noise(np.arange(1)).integers(np.arange(1, 5), 9),
        lambda: Noise(1).normal(0, -1),
        lambda: Noise(1).order(-1),
        lambda: Noise(1).sample(3, 4),
        lambda: Noise(1).sample(3, -1),
        lambda: Noise(1).random(-1),
        lambda: Noise(1).choice([]),
        lambda: Noise(1).choice([0.0, 0.0]),
        lambda: Noise(1).choice([1.0, -1.0]),
        lambda: Noise(1).choice([1.0, float("nan")]),
        lambda: Noise(1).choice([1.0, float("inf")]),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(BadParameter):
        call()


def test_noise_of_a_batch_is_worked_out_once_it_is_drawn_from():
    seeds, asked = np.arange(4, dtype=np.uint64), []
    noise = Noise.due((4,), lambda: asked.append(1) or Noise(seeds).key)
    longer = noise.of("name", 3)
    assert not asked
    assert np.array_equal(longer.random(), Noise(seeds).of("name", 3).random())
    noise.random(2)
    assert asked == [1]
    again = pickle.loads(pickle.dumps(Noise(seeds).of("name", 3)))
    assert again.batch == (4,)
    assert np.array_equal(again.bits(), longer.bits())
