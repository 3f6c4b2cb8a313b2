"""The meta-game: against brute force, closed forms, and what other libraries find."""

from itertools import combinations, product

import numpy as np
import pytest
from playing import each_row
from scipy.optimize import linprog, nnls

from llm_games.baselines.alpha_rank import alpha_rank, alpha_rank_lineups, stationary
from llm_games.baselines.equilibria import correlated, equilibria, gambit, searched, undominated
from llm_games.baselines.metagame import MetaGame, lineups
from llm_games.errors import BadParameter

CHICKEN = [[6, 2], [7, 0]]
GAMES = {
    "cycle": [[0, -1, 1], [1, 0, -1], [-1, 1, 0]],
    "coordination": [[2, 0], [0, 1]],
    "chicken": CHICKEN,
    "four": [[3, 0, 5, 1], [4, 1, 0, 2], [2, 2, 2, 2], [0, 3, 1, 6]],
}
# open_spiel 2.0.2, alpharank.compute([matrix], m=20, alpha=..., use_local_selection_model=False),
# 23 November 2026.
OPEN_SPIEL = {
    ("cycle", 0.1): [1 / 3, 1 / 3, 1 / 3],
    ("cycle", 1.0): [1 / 3, 1 / 3, 1 / 3],
    ("coordination", 0.1): [0.7109495026250039, 0.289050497374996],
    ("coordination", 1.0): [0.9998766054240206, 0.00012339457597933956],
    ("chicken", 0.1): [0.5986876601124521, 0.40131233988754794],
    ("chicken", 1.0): [0.9820137900379086, 0.01798620996209155],
    ("four", 0.1): [
        *(0.07179217466680193, 0.027575884857157364),
        *(0.02665123273897541, 0.8739807077370653),
    ],
    ("four", 1.0): [
        *(5.200622021387653e-13, 2.347710137128136e-13),
        *(2.554249237783135e-13, 0.9999999999989897),
    ],
}


def drawn(strategies, players, seed=1):
    paid = np.random.default_rng(seed).random(lineups(strategies, players).shape)
    return MetaGame(tuple("abcdefgh"[:strategies]), players, paid)


def of_two(name):
    return MetaGame.of_matrix("abcd"[: len(GAMES[name])], GAMES[name])


# -- the game --------------------------------------------------------------------------------------


@each_row(("strategies", "players"), [(1, 4), (3, 2), (4, 3)])
def test_lineups_are_all_ways_to_seat_players(strategies, players):
    cells = product(range(strategies), repeat=players)
    counted = {tuple(cell.count(s) for s in range(strategies)) for cell in cells}
    assert sorted(map(tuple, lineups(strategies, players).tolist())) == sorted(counted)


def test_too_many_lineups_are_refused():
    with pytest.raises(BadParameter, match="10 strategies in 20 seats make 10,015,005 line-ups"):
        lineups(10, 20)


def test_a_missing_payoff_is_named():
    paid = drawn(2, 3).payoffs.copy()
    paid[1, 0] = np.nan
    with pytest.raises(BadParameter, match="what 2 × a, 1 × b earn together is not known"):
        MetaGame(("a", "b"), 3, paid)
    with pytest.raises(BadParameter, match="at least two players, got 1"):
        MetaGame(("a",), 1, np.ones((1, 1)))
    with pytest.raises(BadParameter, match=r"have the shape \(4, 2\), got \(3, 2\)"):
        MetaGame(("a", "b"), 3, np.ones((3, 2)))
    with pytest.raises(BadParameter, match="a square of payoffs"):
        MetaGame.of_matrix("ab", [[1, 2, 3]])


def test_a_matrix_comes_back():
    assert of_two("four").matrix().tolist() == GAMES["four"]
    assert of_two("four").tensor().tolist() == GAMES["four"]


def test_a_mixture_earns_what_all_draws_of_it_do():
    game, mixture = drawn(3, 4), np.array([0.2, 0.5, 0.3])
    tensor = game.tensor()
    mean = [
        sum(
            np.prod(mixture[list(rest)]) * tensor[(own, *rest)]
            for rest in product(range(3), repeat=3)
        )
        for own in range(3)
    ]
    assert game.against(mixture) == pytest.approx(mean, abs=1e-12)
    seen = (game.chances(mixture) * np.nan_to_num(game.payoffs)).sum(axis=0)
    assert seen == pytest.approx(mean, abs=1e-12)
    assert game.chances(mixture).sum(axis=0) == pytest.approx(np.ones(3), abs=1e-12)


def test_pairs_are_the_slope():
    game, mixture, small = drawn(3, 4), np.array([0.2, 0.5, 0.3]), 1e-6
    for other, way in enumerate(np.eye(3)):
        ends = [game.against(mixture + sign * small * way) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * small)
        assert 3 * game.pairs(mixture)[:, other] == pytest.approx(slope, abs=1e-7)


def test_a_part_has_the_same_payoffs():
    whole = drawn(4, 3)
    part = whole.part([3, 1])
    assert part.names == ("d", "b")
    for cell in product(range(2), repeat=3):
        assert part.earned(*cell) == whole.earned(*([3, 1][one] for one in cell))


# -- equilibria ------------------------------------------------------------------------------------


def test_known_equilibria():
    assert [one.mixture.tolist() for one in equilibria(of_two("cycle"))] == [[1 / 3] * 3]
    assert [one.mixture.tolist() for one in equilibria(of_two("chicken"))] == [
        pytest.approx([2 / 3, 1 / 3])
    ]
    found = [one.mixture.tolist() for one in equilibria(of_two("coordination"))]
    assert found == [pytest.approx([1 / 3, 2 / 3]), [1, 0], [0, 1]]


def test_an_equilibrium_of_more_than_two():
    """Two strategies of whom one is paid 1 alone: (1 - x)^2 of being so for each."""
    paid = np.array([[0, np.nan], [0, 1], [1, 0], [np.nan, 0]])
    (found,) = equilibria(MetaGame(("a", "b"), 3, paid))
    assert found.mixture == pytest.approx([0.5, 0.5])
    assert found.payoff == pytest.approx(0.25)


@each_row("seed", range(4))
def test_all_equilibria_of_two_are_those_of_nashpy(seed):
    nashpy = pytest.importorskip("nashpy")
    game = drawn(4, 2, seed)
    matrix = game.matrix()
    pairs = nashpy.Game(matrix, matrix.T).support_enumeration()
    theirs = sorted(a.round(9).tolist() for a, b in pairs if np.allclose(a, b, atol=1e-8))
    ours = equilibria(game)
    assert sorted(one.mixture.round(9).tolist() for one in ours) == theirs
    assert all(one.regret <= 1e-8 for one in ours)


@pytest.mark.parametrize("seed", range(4))
def test_all_equilibria_of_two_are_those_of_pygambit(seed):
    pytest.importorskip("pygambit")
    game = drawn(4, 2, seed)
    ours, theirs = (
        sorted(one.mixture.round(9).tolist() for one in found)
        for found in (equilibria(game), gambit(game))
    )
    assert ours == theirs


@pytest.mark.parametrize("seed", range(3))
def test_the_logit_equilibrium_is_among_those_found(seed):
    pytest.importorskip("pygambit")
    game = drawn(3, 3, seed)
    (theirs,) = gambit(game)
    near = min(np.abs(one.mixture - theirs.mixture).max() for one in equilibria(game))
    assert near < 1e-4  # theirs stops where regret is small


@each_row("players", [2, 3, 4])
def test_of_those_that_do_alike_the_most_even_mixture_and_the_corners_are_named(players):
    counts = lineups(4, players)
    game = MetaGame(tuple("abcd"), players, np.where(counts, 1.0, np.nan))
    first, *corners = equilibria(game)
    assert first.mixture == pytest.approx(np.full(4, 1 / 4))
    assert sorted(one.mixture.round(9).tolist() for one in corners) == np.eye(4)[::-1].tolist()
    assert {one.set for one in corners} == {first.set}
    better = counts[:, :2].sum(axis=1)[:, None] + [0.5, 0.5, 0, 0]  # with an a or a b there
    first, *corners = equilibria(
        MetaGame(game.names, players, np.where(counts, better * (better >= 1), np.nan))
    )
    assert first.mixture == pytest.approx([1 / 2, 1 / 2, 0, 0])
    assert {one.mixture.argmax() for one in corners} == {0, 1}


@each_row("players", [2, 3, 5])
def test_no_equilibrium_is_lost_between_two_others(players):
    """They agree or get nothing: both pure ones are there, though half way is one as well."""
    counts = lineups(2, players)
    game = MetaGame(tuple("ab"), players, np.where(counts == players, 1.0, 0.0))
    found = equilibria(game)
    assert [one.mixture.round(9).tolist() for one in found] == [[0.5, 0.5], [1, 0], [0, 1]]
    assert [one.set for one in found] == [0, 1, 2]


@each_row("seed", range(20))
def test_all_faces_of_equilibria_of_degenerate_games(seed):
    """Each point of each face, by a linear programme, is a mean of found ones joined with it."""
    rng = np.random.default_rng(seed)
    paid = rng.integers(0, 3, (4, 4)).astype(float)
    game = MetaGame.of_matrix("abcd", paid)
    found = [one.mixture for one in equilibria(game)]
    assert max(game.regret(one) for one in found) < 1e-7
    for own in (s for size in range(1, 5) for s in combinations(range(4), size)):
        inside = [(0, 1 if one in own else 0) for one in range(4)]
        even = [[*row, -1, 0] for row in paid[list(own)]]
        solved = linprog(  # the least share of these is as large as can be
            [0, 0, 0, 0, 0, -1],
            A_ub=[[*row, -1, 0] for row in paid] + [[*-np.eye(4)[one], 0, 1] for one in own],
            b_ub=np.zeros(4 + len(own)),
            A_eq=[[1, 1, 1, 1, 0, 0], *even],
            b_eq=[1] + [0] * len(own),
            bounds=[*inside, (None, None), (None, None)],
        )
        if solved.success and solved.x[5] > 1e-7:
            point = solved.x[:4]
            joined = [one for one in found if game.regret((one + point) / 2) < 1e-7]
            joined = [one for one in joined if game.regret(0.9 * one + 0.1 * point) < 1e-7]
            assert joined
            hull = np.vstack([np.transpose(joined), np.ones(len(joined))])
            assert nnls(hull, [*point, 1])[1] < 1e-6


def test_all_equilibria_of_two_strategies_are_roots():
    """What one earns more changes its sign several times, as more of the others are it."""
    ahead = np.array([1, -3, 4, -3, 1.0])
    counts = lineups(2, 5)  # of five seats
    paid = np.where(counts > 0, np.array([[ahead[n - 1] if n else 0, 0] for n, _ in counts]), 0)
    game = MetaGame(tuple("ab"), 5, np.where(counts > 0, paid, np.nan))
    share = np.linspace(0, 1, 100_001)
    gain = game.against(np.stack([share, 1 - share], axis=1)) @ [1, -1]
    inner = int((np.sign(gain[1:]) != np.sign(gain[:-1])).sum())
    found = equilibria(game)
    assert sum(0 < one.mixture[0] < 1 for one in found) == inner > 2
    assert all(one.regret < 1e-7 for one in found)


@pytest.mark.parametrize("seed", range(3))
def test_larger_games_of_more_than_two_lose_none_that_many_more_starts_find(seed, monkeypatch):
    game = drawn(4, 4, seed)
    found = [one.mixture for one in equilibria(game)]
    monkeypatch.setattr("llm_games.baselines.equilibria.STARTS", 150)
    for one in equilibria(game):
        assert min(np.abs(one.mixture - other).max() for other in found) < 1e-6


def test_one_is_found_where_sets_are_too_many_to_search(monkeypatch):
    """Nineteen in a ring, of which each beats the nine after it: all of them are played."""
    many = 19
    ahead = (np.arange(many) - np.arange(many)[:, None]) % many
    paid = np.where(ahead == 0, 0, np.where(ahead <= many // 2, 1, -1)).astype(float)
    paid += np.random.default_rng(0).normal(size=paid.shape) * 0.02
    game = MetaGame.of_matrix([str(one) for one in range(many)], paid)
    assert searched(game)[0] < many
    monkeypatch.setattr("llm_games.baselines.equilibria.SECONDS", 600.0)  # under any load
    (found,) = equilibria(game)
    assert found.regret < 1e-8
    assert (found.mixture > 0).sum() > searched(game)[0]
    monkeypatch.setattr("llm_games.baselines.equilibria.SUPPORTS", 0)
    for seed, players in ((1, 2), (2, 3), (3, 4)):
        assert equilibria(drawn(5, players, seed))[0].regret < 1e-8
    monkeypatch.setattr("llm_games.baselines.equilibria._by_logit", lambda *_: iter(()))
    assert equilibria(game)[0].mixture == pytest.approx(found.mixture, abs=1e-6)
    with pytest.raises(BadParameter, match="no symmetric equilibrium of 3 strategies was found"):
        equilibria(drawn(3, 3))


def test_what_is_beaten_everywhere_is_left_out():
    dilemma = MetaGame.of_matrix(["cooperate", "defect"], [[3, 0], [5, 1]])
    assert undominated(dilemma) == [1]
    assert equilibria(dilemma)[0].mixture.tolist() == [0, 1]


def test_correlated_equilibria_are_those_of_the_whole_table():
    assert correlated(MetaGame.of_matrix("ab", CHICKEN)).payoff == pytest.approx(5.25)
    game = drawn(3, 3, 5)
    tensor, cells = game.tensor(), list(product(range(3), repeat=3))
    seats = [np.moveaxis(tensor, 0, seat) for seat in range(3)]
    gains = []
    for seat, own, other in product(range(3), repeat=3):
        moved = [(*c[:seat], other, *c[seat + 1 :]) for c in cells]
        gain = [seats[seat][m] - seats[seat][c] for c, m in zip(cells, moved, strict=True)]
        gains.append(np.where([cell[seat] == own for cell in cells], gain, 0.0))
    mean = np.array([np.mean([paid[cell] for paid in seats]) for cell in cells])
    whole = {"A_ub": gains, "b_ub": np.zeros(27), "A_eq": [np.ones(27)], "b_eq": [1]}
    assert correlated(game).payoff == pytest.approx(-linprog(-mean, **whole).fun)
    assert correlated(game, best=False).payoff == pytest.approx(linprog(mean, **whole).fun)
    assert correlated(game).chance.sum() == pytest.approx(1)


# -- what evolves ----------------------------------------------------------------------------------


@each_row(("name", "alpha"), OPEN_SPIEL)
def test_alpha_rank_is_that_of_open_spiel(name, alpha):
    game = of_two(name)
    assert alpha_rank(game, alpha * game.scale, 20) == pytest.approx(
        OPEN_SPIEL[name, alpha], rel=1e-10
    )


@each_row(("name", "alpha"), OPEN_SPIEL)
def test_local_selection_counts_the_two_who_differ(name, alpha):
    """By the closed form of who takes over, as OpenSpiel has it by default."""
    paid, size = np.array(GAMES[name], float), 20
    up = alpha * (paid.T - paid)  # of whoever comes, the column
    with np.errstate(invalid="ignore"):
        takes = np.where(up == 0, 1 / size, np.expm1(-up) / np.expm1(-size * up))
    flow = takes / (len(paid) - 1)
    np.fill_diagonal(flow, 0)
    flow -= np.diag(flow.sum(axis=1))
    shares = np.linalg.lstsq(np.vstack([flow.T, np.ones(len(paid))]), [0] * len(paid) + [1])[0]
    game = of_two(name)
    found = alpha_rank(game, alpha * game.scale, size, "local")
    assert found == pytest.approx(shares, rel=1e-6, abs=1e-9)


def test_local_selection_is_of_two():
    with pytest.raises(BadParameter, match="'local', got 'local' for 3 players"):
        alpha_rank(drawn(2, 3), selection="local")
    dilemma = MetaGame.of_matrix("ab", [[3, 3], [1, 9]])  # who meets its like has more
    assert alpha_rank(dilemma).argmax() != alpha_rank(dilemma, selection="local").argmax()


# The same, of ``[matrix, matrix.T]`` or three tensors, profiles of the same counts added up.
SEATS = {
    ("chicken", 0.1): [0.06886408517520724, 0.9208360086911074, 0.010299906133685375],
    ("coordination", 0.1): [0.837303433425137, 0.037462248167080305, 0.12523431840778265],
    ("four", 0.1): [
        *(0.0007224743997288823, 0.0007757699527068029, 0.001386414415737868),
        *(7.202419578599953e-05, 0.00015439922291729654, 0.0002602788106454014),
        *(0.0015554230824438198, 0.00019121394654185453, 0.0005267573729880505),
        0.9943552446005041,
    ],
}


@each_row(("name", "alpha"), SEATS)
def test_alpha_rank_of_seats_is_that_of_open_spiel(name, alpha):
    game = of_two(name)
    found = alpha_rank_lineups(game, alpha * game.scale, 20)
    assert found == pytest.approx(SEATS[name, alpha], rel=1e-9)


def test_alpha_rank_of_three_seats_is_that_of_open_spiel():
    paid = [[4, np.nan], [3, 4], [3, 2], [np.nan, 3]]
    game = MetaGame(("a", "b"), 3, np.array(paid))
    theirs = [0.24916629817315278, 0.7474988945194398, 0.002501105480556088, 0.0008337018268512414]
    assert alpha_rank_lineups(game, 0.3 * game.scale, 20) == pytest.approx(theirs, rel=1e-9)
    with pytest.raises(BadParameter, match="α-rank of 1,001 line-ups takes too long"):
        alpha_rank_lineups(drawn(5, 10))
    with pytest.raises(BadParameter, match="alpha must be a number above 0"):
        alpha_rank_lineups(game, np.inf)


def test_open_spiel_itself():
    theirs = pytest.importorskip("open_spiel.python.egt.alpharank", reason="open_spiel is not here")
    for name, alpha in OPEN_SPIEL:
        matrix = np.array(GAMES[name], float)
        found = theirs.compute([matrix], 20, alpha, use_local_selection_model=False)[2]
        assert found == pytest.approx(OPEN_SPIEL[name, alpha], rel=1e-10)
        game, usual = of_two(name), theirs.compute([matrix], 20, alpha)[2]
        ours = alpha_rank(game, alpha * game.scale, 20, "local")
        assert ours == pytest.approx(usual, rel=1e-9, abs=1e-12)


def test_who_takes_over_a_population_of_more_than_two_seats():
    """Of two strategies: the shares of Moran's process, solved as a walk of single steps."""
    game, size, alpha = drawn(2, 3, 3), 8, 2.0
    ahead = []
    for ones in range(1, size):

        def mean(own, ones):  # of all tables that an own seat may find
            others = [0] * (ones - (own == 0)) + [1] * (size - ones - (own == 1))
            tables = [(a, b) for i, a in enumerate(others) for b in others[i + 1 :]]
            return np.mean([game.earned(own, *table) for table in tables])

        ahead.append(np.exp(alpha / game.scale * (mean(0, ones) - mean(1, ones))))
    up = np.array(ahead) / (1 + np.array(ahead))
    walk = np.eye(size - 1) - np.diag(up[:-1], 1) - np.diag((1 - up)[1:], -1)
    takes = np.linalg.solve(walk, [0.0] * (size - 2) + [up[-1]])
    into, out = takes[0], 1 - takes[-1]
    assert alpha_rank(game, alpha, size)[0] == pytest.approx(into / (into + out))


def test_alpha_rank_says_what_it_needs():
    with pytest.raises(
        BadParameter, match="alpha must be a number above 0 and a population at least 3"
    ):
        alpha_rank(drawn(2, 3), population=2)
    assert alpha_rank(drawn(1, 3)).tolist() == [1.0]


def test_a_stationary_distribution():
    rates = np.random.default_rng(0).random((5, 5))
    np.fill_diagonal(rates, 0)
    with np.errstate(divide="ignore"):
        found = stationary(np.log(rates))
    flow = rates - np.diag(rates.sum(axis=1))
    assert found @ flow == pytest.approx(np.zeros(5), abs=1e-12)
    assert stationary(np.array([[0, -600], [-200, 0]])) == pytest.approx([1, 0])


@each_row(
    ("paid", "shares"),
    [
        ([[0, -0.5, 1], [0.5, 0, -0.1], [-1, 0.1, 0]], [1 / 3, 1 / 3, 1 / 3]),  # as in the paper
        ([[2, 0], [0, 1]], [1, 0]),
        ([[1, 1], [1, 1]], [1 / 2, 1 / 2]),
        ([[1, 1, 1], [1, 1, 1], [0, 0, 0]], [1 / 2, 1 / 2, 0]),
        ([[1, 1, 2], [1, 1, 0], [0, 3, 0]], [51 / 53, 1 / 53, 1 / 53]),  # drift, then a way round
    ],
)
def test_alpha_rank_has_a_limit(paid, shares):
    """As the better are always preferred; those that earn the same drift, each way as often."""
    game = MetaGame.of_matrix("abc"[: len(paid)], paid)
    for alpha in (1e3, 1e6, 1e12):
        assert alpha_rank(game, alpha) == pytest.approx(shares, abs=1e-6)
