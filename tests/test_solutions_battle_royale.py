import os
from fractions import Fraction
from functools import cache as memo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row

from llm_games.baselines import disk_arrays
from llm_games.baselines.games.battle_royale import theory as battle
from llm_games.errors import BadParameter, IllegalAction
from llm_games.files import cache_folder


def wins_of(solution):
    """Expected payoff of each player from the start, (N,)."""
    return (solution.value if solution.gap is not None else solution.value[-1])[-1, 0]


def shoot_of(solution):
    """Probability of shooting rather than missing on purpose, [mask, shooter]."""
    return solution.policy[..., :-1].sum(-1)


def target_of(solution):
    """The seat shot at, [mask, shooter]; -1 where the shooter always misses on purpose."""
    return np.where(shoot_of(solution) > 0, solution.policy[..., :-1].argmax(-1), -1)


def win_probabilities_of(rates, policy, max_shots=None, share=False):
    """Expected payoffs (N,) from the start when all follow `policy`."""
    return battle._play_out(rates, policy, None, max_shots, share)[0]


def gains(rates, policy, max_shots=None, share=False):
    """What each player would gain by its best response, (N,). The sum is the NashConv."""
    now = win_probabilities_of(rates, policy, max_shots, share)
    best = [battle.best_response(rates, policy, i, max_shots, share)[0] for i in range(len(rates))]
    return np.array(best) - now


DEFAULT = tuple(range(35, 81, 5))
MISS = -1


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path / "cache"))
    battle._solve.cache_clear()


def shoot_uniformly(players):
    alive = np.arange(1 << players)[:, None] >> np.arange(players) & 1
    shots = alive[:, :, None] * alive[:, None] * (1 - np.eye(players))
    shots = shots / np.maximum(shots.sum(-1, keepdims=True), 1)
    return np.concatenate([shots, 1 - shots.sum(-1, keepdims=True)], axis=-1)


# --- an independent model of the game: plain states, all actions ---


def states(players):
    return [
        (mask, shooter)
        for mask in range(1 << players)
        if mask.bit_count() > 1
        for shooter in range(players)
        if mask >> shooter & 1
    ]


def turn_after(mask, seat, players):
    return next(s % players for s in range(seat + 1, seat + players + 1) if mask >> s % players & 1)


def transitions(rates, mask, shooter, action):
    """[(probability, mask, shooter)] after an action."""
    players = len(rates)
    missed = (mask, turn_after(mask, shooter, players))
    if action == MISS:
        return [(1.0, *missed)]
    rest = mask & ~(1 << action)
    p = rates[shooter] / 100
    return [(p, rest, turn_after(rest, shooter, players)), (1 - p, *missed)]


def legal(mask, shooter, players):
    return [MISS, *(j for j in range(players) if mask >> j & 1 and j != shooter)]


def value_iteration(rates, policy, player, replies, rounds):
    """Lower bound, exact in the limit, on `player`'s win probability in each state."""
    players = len(rates)
    live = states(players)
    index = {state: i for i, state in enumerate(live)}
    rows = {state: [] for state in live}  # per action: (probability of playing it, steps)
    for mask, shooter in live:
        for action in legal(mask, shooter, players):
            step, gain = np.zeros(len(live)), 0.0
            for p, rest, following in transitions(rates, mask, shooter, action):
                if rest.bit_count() == 1:
                    gain += p * (rest == 1 << player)
                else:
                    step[index[rest, following]] += p
            rows[mask, shooter].append((policy[mask, shooter, action], gain, step))
    most = players
    weight, gains = np.zeros((most, len(live))), np.full((most, len(live)), -np.inf)
    steps = np.zeros((most, len(live), len(live)))
    for i, state in enumerate(live):
        for a, (p, gain, step) in enumerate(rows[state]):
            weight[a, i], gains[a, i], steps[a, i] = p, gain, step
    own = np.array([replies and shooter == player for _, shooter in live])
    value = np.zeros(len(live))
    for _ in range(rounds):
        q = gains + steps @ value
        mean = (weight * np.where(np.isfinite(q), q, 0)).sum(0)
        value = np.where(own, q.max(0), mean)
    return {state: value[i] for state, i in index.items()}


def largest_gain(rates, solution):
    """Most that a shooter gains by one other action in any state, all actions tried."""
    return max(
        np.nanmax(solution.q_values(mask, shooter)) - solution.value[mask, shooter, shooter]
        for mask, shooter in states(len(rates))
    )


def bellman_error(rates, solution):
    """Largest violation of value = expected value after one shot of the policy."""
    worst = 0.0
    for mask, shooter in states(len(rates)):
        expected = sum(
            solution.policy[mask, shooter, action] * p * solution.value[rest, following]
            for action in legal(mask, shooter, len(rates))
            for p, rest, following in transitions(rates, mask, shooter, action)
        )
        worst = max(worst, np.abs(expected - solution.value[mask, shooter]).max())
    return worst


# --- the equilibrium ---


@each_row(
    ("rates", "wins"),
    [
        ((40, 60), [10 / 19, 9 / 19]),
        ((25, 50), [0.4, 0.6]),
        ((0, 100), [0, 1]),
        ((100, 0), [1, 0]),
        ((0, 0), [0, 0]),
        ((0, 0, 0), [0, 0, 0]),
    ],
)
def test_small_games(rates, wins):
    assert wins_of(battle.solve(rates)) == pytest.approx(wins)


def test_truel_of_kilgour():
    """The weakest misses on purpose: 25/63, 8/21, 2/9 with rates 1/3, 2/3, 1."""
    solution = battle.Solution((33, 67, 100), **battle._equilibrium((33, 67, 100)))
    assert target_of(solution)[0b111].tolist() == [-1, 2, 1]
    assert wins_of(solution) == pytest.approx([25 / 63, 8 / 21, 2 / 9], abs=0.01)


def test_truel_with_thirds_is_exact():
    """The same with rates that no whole percentage gives."""
    rate = np.array([[1 / 3, 2 / 3, 1]])
    duel = {  # after each kill, as (win of 0, 1, 2): 1 kills 2, 2 kills 1, 0 kills 2
        0: [1 / 7, 6 / 7, 0],
        1: [3 / 7, 4 / 7, 0],
        2: [1 / 3, 0, 2 / 3],
    }
    kill = np.array([[duel[0], duel[1], duel[2]]])
    shoot, gap = battle._shoot_or_pass(rate, kill)
    assert gap.tolist() == [0]
    assert shoot.tolist() == [[0, 1, 1]]
    hit = shoot * rate
    value = battle._play(hit, hit[..., None] * kill)[0, 0]
    assert value == pytest.approx([25 / 63, 24 / 63, 14 / 63], abs=1e-15)
    everybody = battle._play(rate, rate[..., None] * kill)[0, 0]
    assert everybody[0] == pytest.approx(59 / 189, abs=1e-15)


@each_row(
    ("rates", "wins"),
    [
        (DEFAULT, [0.153, 0.129, 0.201, 0.117, 0.129, 0.080, 0.081, 0.065, 0.032, 0.012]),
        (
            tuple(range(10, 101, 10)),
            [0.125, 0.170, 0.135, 0.147, 0.147, 0.095, 0.088, 0.070, 0.018, 0.006],
        ),
    ],
)
def test_ten_players(rates, wins):
    solution = battle.solve(rates)
    assert wins_of(solution) == pytest.approx(wins, abs=0.0007)
    assert wins_of(solution).sum() == pytest.approx(1)
    assert largest_gain(rates, solution) < 1e-9
    assert bellman_error(rates, solution) < 1e-12
    assert gains(rates, solution.policy) == pytest.approx(np.zeros(10), abs=1e-9)


def test_default_game_in_detail():
    """First shot at the 50 % player; 16 of the 252 sets of five have no pure equilibrium."""
    solution = battle.solve(DEFAULT)
    assert (target_of(solution)[-1, 0], shoot_of(solution)[-1, 0]) == (3, 1)
    sizes = np.array([mask.bit_count() for mask in range(1024)])
    randomising = ((shoot_of(solution) > 0) & (shoot_of(solution) < 1)).sum(1)
    assert np.bincount(randomising[sizes == 5]).tolist() == [236, 0, 16]
    assert not randomising[sizes != 5].any()


def test_default_game_how_often_the_strongest_is_shot():
    solution, strongest = battle.solve(DEFAULT), battle.shoot_strongest(DEFAULT).argmax(-1)
    same = {size: [] for size in range(2, 11)}
    for mask, shooter in states(10):
        choice = solution.policy[mask, shooter].argmax()
        same[mask.bit_count()].append(choice == strongest[mask, shooter])
    shares = [np.mean(same[size]) for size in (2, 3, 4, 5, 6, 7, 10)]
    assert shares == pytest.approx([1, 2 / 3, 0.75, 0.49, 0.35, 0.21, 0], abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(35, 50, 65, 80), (20, 90, 40, 70), (51, 52, 53, 54, 55, 56)])
def test_no_gain_against_full_value_iteration(rates):
    solution = battle.solve(rates)
    for player in range(len(rates)):
        best = value_iteration(rates, solution.policy, player, True, 1500)
        for (mask, shooter), value in best.items():
            assert value <= solution.value[mask, shooter, player] + 1e-9


def check_equilibrium(rates):
    """Nobody gains by any action, where every set of the living has an equilibrium."""
    solution = battle.Solution(tuple(rates), **battle._equilibrium(tuple(rates)))
    assert bellman_error(rates, solution) < 1e-12
    wins = wins_of(solution)
    assert wins.min() >= 0
    assert wins.sum() == pytest.approx(1) or not wins.any()
    assert 0 <= solution.gap.min() <= solution.gap.max() < 0.01
    if not solution.gap.any():
        assert largest_gain(rates, solution) < 1e-9
        assert gains(rates, solution.policy).max() < 1e-9
    return solution


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 100), min_size=2, max_size=5))
def test_equilibrium_of_any_rates(rates):
    check_equilibrium(rates)


@each_row("rates", [(62, 65, 68, 76, 92), (62, 62, 62, 62, 71)])
def test_rates_without_an_equilibrium(rates):
    """No stationary equilibrium of all five; the smallest gap found stands in."""
    solution = check_equilibrium(rates)
    assert 1e-6 < solution.gap[-1] < 0.0012
    assert not solution.gap[:-1].any()
    assert gains(rates, solution.policy).max() <= solution.gap[-1] + 1e-12


@pytest.mark.slow
def test_randomised_sets_of_close_rates():
    """Rates 51 .. 60 need up to three randomisers in 150 sets."""
    rates = tuple(range(51, 61))
    solution = battle.solve(rates)
    assert largest_gain(rates, solution) < 1e-9
    randomising = ((shoot_of(solution) > 0) & (shoot_of(solution) < 1)).sum(1)
    assert np.bincount(randomising).tolist() == [874, 0, 121, 29]


def test_simulation_agrees():
    """10^5 games of the default table: wins, 19.1 shots, score 36 over the first 20 shots."""
    solution, games = battle.solve(DEFAULT), 100_000
    rng, rates = np.random.default_rng(7), np.array(DEFAULT)
    mask, shooter = np.full(games, 1023), np.zeros(games, int)
    strongest = battle.shoot_strongest(DEFAULT).argmax(-1)
    shots, right = np.zeros(games, int), np.zeros(games, int)
    after = np.array([[turn_after(m, s, 10) if m else 0 for s in range(10)] for m in range(1024)])
    while (active := np.flatnonzero(mask & (mask - 1))).size:
        m, s = mask[active], shooter[active]
        shoots = rng.random(active.size) < shoot_of(solution)[m, s]
        target = np.where(shoots, target_of(solution)[m, s], 0)
        right[active] += shoots & (target == strongest[m, s]) & (shots[active] < 20)
        shots[active] += 1
        hit = shoots & (rng.integers(0, 100, active.size) < rates[s])
        mask[active] = np.where(hit, m & ~(1 << target), m)
        shooter[active] = after[mask[active], s]
    wins = np.bincount(np.log2(mask).astype(int), minlength=10) / games
    assert wins == pytest.approx(wins_of(solution), abs=0.006)
    assert shots.mean() == pytest.approx(19.1, abs=0.15)
    assert (100 * right / np.minimum(shots, 20)).mean() == pytest.approx(36, abs=0.7)
    unfinished = 1 - win_probabilities_of(DEFAULT, solution.policy, 20).sum()
    assert (shots > 20).mean() == pytest.approx(unfinished, abs=0.006)
    assert unfinished == pytest.approx(0.32, abs=0.01)


# --- regret ---


def test_q_values_and_regret():
    solution = battle.solve((50, 70, 90))
    q = solution.q_values(0b111, 0)
    assert np.isnan(q[0])
    assert target_of(solution)[0b111, 0] == MISS
    assert solution.regret(0b111, 0, MISS) == 0
    assert solution.regret(0b111, 0, 2) == pytest.approx(q[3] - q[2])
    assert solution.regret(0b111, 0, 1) > solution.regret(0b111, 0, 2) > 0
    win = 0.7 / (1 - 0.3 * 0.5)
    assert solution.q_values(0b011, 1)[[0, 3]] == pytest.approx([win, 0.5 * win])


def test_regret_refuses_what_is_no_action():
    solution = battle.solve((50, 70, 90))
    for action in (0, 2, 3, -2):
        with pytest.raises(IllegalAction, match=r"one of \[-1, 1\]"):
            solution.regret(0b011, 0, action)
    for mask, shooter in ((0b011, 2), (0b001, 0), (8, 0), (-1, 0), (7, 3)):
        with pytest.raises(BadParameter, match="must contain the shooter"):
            solution.q_values(mask, shooter)


# --- the game with a cap ---


def exact_capped(rates, max_shots, share):
    """Backward induction in fractions, with the module's tie rule."""
    players = len(rates)
    strength = [(rate, seat) for seat, rate in enumerate(rates)]

    @memo
    def value(mask, shooter, left):
        alive = [i for i in range(players) if mask >> i & 1]
        if len(alive) == 1 or left == 0:
            payoff = Fraction(1, len(alive)) if share or len(alive) == 1 else Fraction(0)
            return tuple(payoff if i in alive else Fraction(0) for i in range(players))
        p = Fraction(rates[shooter], 100)
        missed = value(mask, turn_after(mask, shooter, players), left - 1)
        best, best_key = missed, (missed[shooter], False)
        killed = {}
        for j in legal(mask, shooter, players)[1:]:
            rest = mask & ~(1 << j)
            killed[j] = value(rest, turn_after(rest, shooter, players), left - 1)
        target = max(killed, key=lambda j: (killed[j][shooter], strength[j]))
        mixed = tuple(p * a + (1 - p) * b for a, b in zip(killed[target], missed, strict=True))
        if (mixed[shooter], True) > best_key:
            best = mixed
        return best

    return value((1 << players) - 1, 0, max_shots)


@each_row("share", [False, True])
@each_row("rates", [(50, 70, 90), (0, 100, 30), (20, 20, 20, 20), (80, 10, 60, 35)])
@each_row("max_shots", [1, 2, 5, 11])
def test_capped_against_fractions(rates, max_shots, share):
    solution = battle.solve_capped(rates, max_shots, share)
    expected = [float(x) for x in exact_capped(rates, max_shots, share)]
    assert wins_of(solution) == pytest.approx(expected, abs=1e-12)
    assert gains(rates, solution.policy, max_shots, share).max() < 1e-12


def test_capped_default():
    solution = battle.solve_capped(DEFAULT, 20)
    expected = [0.119, 0.093, 0.063, 0.132, 0.067, 0.111, 0.112, 0.057, 0.039, 0.016]
    assert wins_of(solution) == pytest.approx(expected, abs=0.0006)
    played = win_probabilities_of(DEFAULT, solution.policy, 20)
    assert played == pytest.approx(wins_of(solution), abs=1e-14)


def test_share_pays_the_survivors():
    """Both shots miss for sure: a third each, or nothing."""
    assert wins_of(battle.solve_capped((0, 0, 0), 2, share=True)) == pytest.approx(1 / 3)
    assert not wins_of(battle.solve_capped((0, 0, 0), 2)).any()
    shared = battle.solve_capped((50, 70, 90), 6, share=True)
    assert wins_of(shared).sum() == pytest.approx(1)


def test_capped_regret_looks_one_shot_ahead():
    solution = battle.solve_capped((50, 70, 90), 4)
    undefined = pytest.approx(np.nan, nan_ok=True)
    assert solution.q_values(0b011, 0, 1).tolist()[1:] == [0.5, undefined, 0]
    assert solution.regret(0b011, 0, MISS, left=1) == 0.5
    assert solution.regret(0b111, 0, MISS, left=1) == 0
    with pytest.raises(BadParameter, match=r"1\.\.4"):
        solution.q_values(0b011, 0, 5)


# --- given policies ---


STRONGEST_DEFAULT = [0.488166, 0.353715, 0.126958, 0.027531, 0.003416, 0.000202, 0.000012, 0, 0, 0]
STRONGEST_CAPPED = [0.285562, 0.204194, 0.067478, 0.011720, 0.000350, 0.000050, 0, 0, 0, 0]


@each_row(
    ("rates", "max_shots", "wins"),
    [
        ((50, 70, 90), None, [23590 / 63631, 1890 / 3349, 243 / 3743]),
        (DEFAULT, None, STRONGEST_DEFAULT),
        (DEFAULT, 20, STRONGEST_CAPPED),
    ],
)
def test_shoot_the_strongest(rates, max_shots, wins):
    played = win_probabilities_of(rates, battle.shoot_strongest(rates), max_shots)
    assert played == pytest.approx(wins, abs=1e-6)


def test_shoot_the_strongest_is_no_equilibrium():
    found = gains(DEFAULT, battle.shoot_strongest(DEFAULT))
    assert found[1:3] == pytest.approx([0.19, 0.29], abs=0.006)
    assert found.sum() == pytest.approx(0.773, abs=0.0005)


def test_reply_to_uniform_shooters_is_mostly_the_strongest():
    strongest, uniform = battle.shoot_strongest(DEFAULT), shoot_uniformly(10)
    replies = [battle.best_response(DEFAULT, uniform, i)[1] for i in range(10)]
    same = [replies[s][m, s].argmax() == strongest[m, s].argmax() for m, s in states(10)]
    assert np.mean(same) == pytest.approx(0.977, abs=0.0005)


def random_policy(rng, players):
    policy = rng.random((1 << players, players, players + 1))
    for mask in range(1 << players):
        for shooter in range(players):
            allowed = legal(mask, shooter, players) if mask >> shooter & 1 else [MISS]
            keep = np.zeros(players + 1)
            keep[allowed] = 1
            policy[mask, shooter] *= keep
    return policy / policy.sum(-1, keepdims=True)


@each_row("rates", [(50, 70, 90), (30, 100, 0, 60)])
def test_evaluation_and_reply_against_value_iteration(rates):
    policy = random_policy(np.random.default_rng(3), len(rates))
    start = ((1 << len(rates)) - 1, 0)
    wins = win_probabilities_of(rates, policy)
    for player in range(len(rates)):
        value, reply = battle.best_response(rates, policy, player)
        assert wins[player] == pytest.approx(
            value_iteration(rates, policy, player, False, 800)[start], abs=1e-9
        )
        assert value == pytest.approx(
            value_iteration(rates, policy, player, True, 800)[start], abs=1e-9
        )
        assert win_probabilities_of(rates, reply)[player] == pytest.approx(value)
        others = [i for i in range(len(rates)) if i != player]
        assert reply[:, others] == pytest.approx(policy[:, others], abs=1e-15)


def test_long_cap_approaches_no_cap():
    policy = random_policy(np.random.default_rng(5), 4)
    rates = (30, 45, 60, 20)
    capped = win_probabilities_of(rates, policy, 600)
    assert capped == pytest.approx(win_probabilities_of(rates, policy), abs=1e-12)
    capped = [battle.best_response(rates, policy, i, 600)[0] for i in range(4)]
    free = [battle.best_response(rates, policy, i)[0] for i in range(4)]
    assert capped == pytest.approx(free, abs=1e-12)


def test_everybody_misses_for_ever():
    """Nobody wins; whoever shoots instead wins the duel that it starts."""
    passing = np.zeros((4, 2, 3))
    passing[..., MISS] = 1
    assert win_probabilities_of((50, 50), passing).tolist() == [0, 0]
    assert battle.best_response((50, 50), passing, 1)[0] == 1


# --- limits ---


@each_row(
    ("call", "message"),
    [
        (lambda: battle.solve([50] * 13), r"13 players: .* 2\.\.12"),
        (lambda: battle.solve([50]), r"2\.\.12"),
        (lambda: battle.solve([50, 101]), r"0\.\.100"),
        (lambda: battle.solve([50, 0.5]), "integers"),
        (lambda: battle.solve_capped([50, 60], 0), "max_shots=0"),
        (lambda: battle.solve_capped([50] * 12, 10**6), r"1\.\.\d+ for 12 players"),
        (lambda: win_probabilities_of([50, 60], np.zeros((4, 2, 2))), "shape"),
        (lambda: win_probabilities_of([50, 60], np.full((4, 2, 3), 1 / 3)), "add up to 1"),
        (lambda: battle.best_response([50, 60], shoot_uniformly(2), 2), r"0\.\.1"),
    ],
)
def test_limits(call, message):
    with pytest.raises(BadParameter, match=message):
        call()


# --- cache ---


def refuse():
    raise AssertionError("computed although it is stored")


def test_cache_keeps_and_replaces(tmp_path, monkeypatch):
    folder = tmp_path / "new" / "folder"
    monkeypatch.setenv("LLM_GAMES_CACHE", str(folder))
    arrays = {"x": np.arange(6.0).reshape(2, 3)}
    disk_arrays.remember("a", lambda: arrays)
    assert disk_arrays.remember("a", refuse)["x"].tolist() == arrays["x"].tolist()
    (file,) = folder.iterdir()
    good = file.read_bytes()
    for bad in (b"", good[:40], good[:-1], good[:100] + b"?" + good[101:], b"rubbish" * 50):
        file.write_bytes(bad)
        assert disk_arrays.remember("a", lambda: {"x": np.ones(2)})["x"].tolist() == [1, 1]
        assert disk_arrays.remember("a", refuse)["x"].tolist() == [1, 1]
        assert len(list(folder.iterdir())) == 1


def test_cache_where_nothing_can_be_written(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("LLM_GAMES_CACHE", str(blocked))
    for _ in range(2):
        assert disk_arrays.remember("a", lambda: {"x": np.ones(1)})["x"].tolist() == [1]
    assert blocked.read_text() == "in the way"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="folder rights do not bind here")
def test_cache_in_a_folder_without_write_permission(tmp_path, monkeypatch):
    tmp_path.chmod(0o500)
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path))
    assert disk_arrays.remember("a", lambda: {"x": np.ones(1)})["x"].tolist() == [1]
    assert not list(tmp_path.iterdir())


def test_cache_leaves_nothing_behind_when_it_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path))
    (tmp_path / "a.cache").mkdir()  # replacing it fails
    assert disk_arrays.remember("a", lambda: {"x": np.ones(1)})["x"].tolist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["a.cache"]


@pytest.mark.parametrize(
    ("own", "shared", "end"),
    [("/a/b", "/c", "/a/b"), (None, "/c", "/c/llm-games"), (None, None, ".cache/llm-games")],
)
def test_cache_folder(own, shared, end, monkeypatch):
    for name, value in (("LLM_GAMES_CACHE", own), ("XDG_CACHE_HOME", shared)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert cache_folder().as_posix().endswith(end)


def test_solution_comes_from_the_cache(monkeypatch):
    first = battle.solve((30, 60, 90))
    battle._solve.cache_clear()
    monkeypatch.setattr(battle, "_equilibrium", lambda rates: refuse())
    again = battle.solve([30, 60, 90])
    assert (again.value == first.value).all()
    assert (again.policy == first.policy).all()
    assert battle.solve((30, 60, 90)) is again
