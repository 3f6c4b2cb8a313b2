import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row

from llm_games.baselines.games.pirate_game import theory as pirates
from llm_games.errors import BadParameter, UnknownName

SHARES_10 = [0, 1, 0, 1, 0, 1, 0, 1, 0]  # positions 1 .. 9


def closed_form_plan(pirates, gold):
    """The optimal plan for quota "half" and up to 2 gold + 2 pirates: one coin for every second.

    The only one up to 2 gold + 1 pirates, one of gold + 1 for 2 gold + 2.
    """
    plan = (np.arange(pirates) % 2 == 0).astype(int)
    plan[0] = gold - (pirates - 1) // 2
    return plan


def closed_form_survives(pirates, gold):
    """Whether the proposer survives with quota "half": n <= 2G, or n = 2G + a power of two."""
    over = pirates - 2 * gold
    return over <= 0 or over & (over - 1) == 0


# --- brute force: all proposals, votes as if decisive, survive > gold > others overboard ---


def all_plans(number, gold):
    if number == 1:
        yield (gold,)
        return
    for first in range(gold + 1):
        for rest in all_plans(number - 1, gold - first):
            yield (first, *rest)


def brute_force(number, gold, quota, below):
    """Votes for one plan and the set of best plans, given the (coins, alive) of the stage below."""

    def utility(alive, coins):
        return (alive, coins if alive else 0)

    best, best_plans = (False, 0), []
    for plan in all_plans(number, gold):
        yes = 1
        for i in range(1, number):
            accepted = utility(True, plan[i])
            rejected = utility(bool(below[1][i - 1]), int(below[0][i - 1]))
            yes += accepted > rejected  # a tie is rejected: one more overboard
        if 2 * yes > number or (2 * yes == number and quota == "half"):
            mine = utility(True, plan[0])
            if mine > best:
                best, best_plans = mine, []
            if mine == best:
                best_plans.append(plan)
    return best_plans


@each_row("quota", ["half", "majority"])
@each_row(("most", "gold"), [(9, 0), (9, 1), (8, 2), (8, 3), (7, 4), (6, 7)])
def test_against_all_proposals(most, gold, quota):
    for number in range(2, most + 1):
        below = pirates.stage(number - 1, gold, quota)
        best = brute_force(number, gold, quota, (below.coins, below.survives))
        ours = pirates.optimal_plans(number, gold, quota)
        assert sorted(map(tuple, ours.tolist())) == sorted(best)
        now = pirates.stage(number, gold, quota)
        assert now.proposer_survives == bool(best)
        if best:
            assert tuple(now.coins.tolist()) in best
        else:
            assert now.coins.tolist() == [0, *below.coins.tolist()]
            assert now.survives.tolist() == [False, *below.survives.tolist()]


# --- reference points ---


@each_row(
    ("number", "gold", "plan"),
    [
        (1, 100, [100]),
        (2, 100, [100, 0]),
        (3, 100, [99, 0, 1]),
        (4, 100, [99, 0, 1, 0]),
        (5, 100, [98, 0, 1, 0, 1]),
        (8, 100, [97, 0, 1, 0, 1, 0, 1, 0]),
        (9, 100, [96, 0, 1, 0, 1, 0, 1, 0, 1]),
        (10, 100, [96, *SHARES_10]),
        (10, 400, [396, *SHARES_10]),
        (10, 5, [1, *SHARES_10]),
        (9, 4, [0, 0, 1, 0, 1, 0, 1, 0, 1]),
    ],
)
def test_half_has_one_plan(number, gold, plan):
    assert pirates.optimal_plans(number, gold).tolist() == [plan]
    assert closed_form_plan(number, gold).tolist() == plan
    assert pirates.stage(number, gold).coins.tolist() == plan


def test_four_coins_for_ten_have_five_plans():
    plans = pirates.optimal_plans(10, 4)
    expected = {tuple(p for p in (1, 2, 4, 6, 8) if p != left) for left in (1, 2, 4, 6, 8)}
    assert {tuple(np.flatnonzero(plan).tolist()) for plan in plans} == expected
    assert (plans.sum(1) == 4).all()
    assert plans.max() == 1
    assert closed_form_plan(10, 4).tolist() in plans.tolist()


@each_row(
    ("number", "plans"),
    [
        (1, [[100]]),
        (2, []),
        (3, [[100, 0, 0]]),
        (4, [[98, 0, 1, 1]]),
        (5, [[97, 0, 1, 2, 0], [97, 0, 1, 0, 2]]),
    ],
)
def test_majority(number, plans):
    assert pirates.optimal_plans(number, 100, "majority").tolist() == plans


def test_majority_of_ten():
    assert pirates.stage(10, 100, "majority").coins.tolist() == [94, 0, 1, 0, 1, 0, 1, 0, 2, 1]


def test_who_survives_with_too_little_gold():
    alive = [n for n in range(201, 457) if pirates.stage(n, 100).proposer_survives]
    assert alive == [201, 202, 204, 208, 216, 232, 264, 328, 456]


@each_row("gold", [0, 1, 2, 5, 30])
def test_closed_form_agrees_with_the_recursion(gold):
    for number in range(1, 2 * gold + 70):
        now = pirates.stage(number, gold)
        assert now.proposer_survives == closed_form_survives(number, gold)
        if number <= 2 * gold + 1:
            assert now.coins.tolist() == closed_form_plan(number, gold).tolist()


@settings(deadline=None, max_examples=80)
@given(st.integers(1, 60), st.integers(0, 40), st.sampled_from(["half", "majority"]))
def test_stage_is_consistent(number, gold, quota):
    now = pirates.stage(number, gold, quota)
    assert now.coins.sum() == gold
    assert now.coins.min() >= 0
    assert not now.coins[~now.survives].any()
    if now.proposer_survives:
        assert now.survives.all()
        assert pirates.votes(now.coins, quota).sum() >= pirates.votes_needed(number, quota)
        assert pirates.proposer_regret(now.coins, quota) == 0
        assert pirates.distance(now.coins, quota) == 0


# --- votes and regret ---


@each_row(
    ("plan", "quota", "accepts"),
    [
        ([96, *SHARES_10], "half", "ARARARARAR"),
        ([92, 1, 1, 1, 1, 1, 1, 1, 1, 0], "half", "ARARARARAR"),
        ([10] * 10, "half", "ARAAAAAAAA"),
        ([100, 0], "half", "AR"),
        ([0, 100], "half", "AR"),  # alone it would keep the same
        ([99, 0, 1], "half", "ARA"),
        ([100, 0, 0], "majority", "AAR"),  # position 1 would be lost
        ([100, 0], "majority", "AR"),
        ([0, 0, 1, 0, 1, 0, 1, 0, 1, 1], "half", "ARARARARAR"),
    ],
)
def test_equilibrium_votes(plan, quota, accepts):
    votes = pirates.votes(np.array(plan), quota)
    assert "".join("A" if vote else "R" for vote in votes) == accepts


def test_the_next_proposer_rejects_up_to_its_own_plan():
    """Position 1 of ten would keep 96 of 100."""
    plans = np.zeros((10, 101), int)
    plans[1], plans[0] = np.arange(101), 100 - np.arange(101)
    assert np.flatnonzero(pirates.votes(plans)[1]).tolist() == [97, 98, 99, 100]


def test_the_doomed_accept_nothing_at_all():
    """With 100 coins the proposers of 205 to 207 are lost: their votes carry the plan of 208."""
    now = pirates.stage(208, 100)
    assert now.proposer_survives
    assert pirates.votes(now.coins)[:5].tolist() == [True, True, True, True, False]


@each_row(
    ("plan", "quota", "death", "regret"),
    [
        ([96, *SHARES_10], "half", -1, 0),
        ([92, 1, 1, 1, 1, 1, 1, 1, 1, 0], "half", -1, 4),
        ([10] * 10, "half", -1, 86),
        ([100, *[0] * 9], "half", -1, 97),
        ([100, *[0] * 9], "half", -100, 196),
        ([100, 0], "majority", -1, 0),  # lost whatever it offers
        ([99, 0, 1], "majority", -1, 1),
    ],
)
def test_proposer_regret(plan, quota, death, regret):
    assert pirates.proposer_regret(np.array(plan), quota, death) == regret


def test_voter_regret():
    plan = np.array([92, 1, 1, 1, 1, 1, 1, 1, 1, 0])
    accepted = pirates.voter_regret(plan, np.ones(10, bool))
    rejected = pirates.voter_regret(plan, np.zeros(10, bool))
    assert accepted.tolist() == [0, 95, 0, 0, 0, 0, 0, 0, 0, 1]
    assert rejected.tolist() == [0, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    doomed = pirates.voter_regret(np.array([97, 3, 0]), np.zeros(3, bool), "majority", death=-50)
    assert doomed.tolist() == [0, 53, 0]


def test_equilibrium_votes_have_no_regret_in_batches():
    rng = np.random.default_rng(0)
    plans = rng.multinomial(7, np.ones(6) / 6, size=(3, 4)).transpose(2, 0, 1)
    for quota in pirates.QUOTAS:
        votes = pirates.votes(plans, quota)
        assert votes.shape == (6, 3, 4)
        assert not pirates.voter_regret(plans, votes, quota).any()
        regret = pirates.proposer_regret(plans, quota)
        assert regret.shape == (3, 4)
        assert regret.min() >= 0
        one = pirates.proposer_regret(plans[:, 1, 2], quota)
        assert one == regret[1, 2]


# --- distance ---


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_nearest_plan_is_the_nearest(data):
    number, gold, quota = data.draw(
        st.sampled_from([(10, 4, "half"), (6, 2, "half"), (5, 9, "majority"), (10, 9, "majority")])
    )
    cuts = np.sort(
        data.draw(st.lists(st.integers(0, gold), min_size=number - 1, max_size=number - 1))
    )
    plan = np.diff(np.concatenate([[0], cuts, [gold]]))
    plans = pirates.optimal_plans(number, gold, quota)
    nearest = pirates.nearest_plan(plan, quota)
    assert nearest.tolist() in plans.tolist()
    assert np.abs(plan - nearest).sum() == np.abs(plan - plans).sum(1).min()
    batch = np.stack([plan, plans[0]], axis=1)
    assert pirates.nearest_plan(batch, quota).T.tolist() == [nearest.tolist(), plans[0].tolist()]


@each_row(
    ("plan", "quota", "distance"),
    [
        ([96, *SHARES_10], "half", 0),
        ([10] * 10, "half", 0.86),
        ([0, 1, 1, 0, 1, 0, 1, 0, 0, 0], "half", 0),
        ([4, 0, 0, 0, 0, 0, 0, 0, 0, 0], "half", 1),
        ([30, 70], "majority", 0),  # lost whatever it offers
    ],
)
def test_distance(plan, quota, distance):
    assert pirates.distance(np.array(plan), quota) == distance


# --- limits ---


@each_row(
    ("call", "error", "message"),
    [
        (lambda: pirates.stage(0, 5), BadParameter, "pirates=0"),
        (lambda: pirates.stage(3, -1), BadParameter, "gold=-1"),
        (lambda: pirates.stage(3, 5, "most"), UnknownName, "half, majority"),
        (lambda: pirates.votes(np.array([[1, 2], [1, 1]])), BadParameter, r"\[2, 3\]"),
        (lambda: pirates.votes(np.array([0.5, 0.5])), BadParameter, "integers"),
        (lambda: pirates.optimal_plans(208, 100), BadParameter, "nearest_plan"),
    ],
)
def test_limits(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_tables_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        pirates.stage(4, 10).coins[0] = 3
