"""Battle royale: worked examples, options, order of the turns, what is told, a scripted game."""

import dataclasses
import json

import numpy as np
import pytest
from playing import each_row

import llm_games
from llm_games.errors import BadParameter
from llm_games.questions import MISSING, BadReply
from llm_games.registry import rulebook
from llm_games.replies import read_reply
from llm_games.view import View
from llm_games.words import Prompts, versions

HIT, MISS, ON_PURPOSE = 0, 99, -1


def battle(*rates, **more):
    if rates:
        more |= {"hit_rates": rates, "players": len(rates)}
    return llm_games.rules("battle_royale", **more)


def shoot(rules, *shots, state=None):
    """Play ``(shooter, target, roll)`` shots; return the last state and all outcomes."""
    if state is None:
        state = rules.reset(0, given={"rolls": [roll for _, _, roll in shots]})
    outcomes = []
    for shooter, target, _ in shots:
        assert state.shooter == shooter
        actions = np.full(rules.players, 7)  # whatever the others say is not read
        actions[shooter] = target
        state, outcome = rules.step(state, actions)
        outcomes.append(outcome)
    return state, outcomes


THREE = (50, 70, 90)
R5 = [(0, 2, MISS), (1, 2, MISS), (2, 1, HIT), (0, 2, MISS), (2, 0, HIT)]
R3 = [(0, 9, MISS), (1, 9, HIT), (2, 8, HIT), (3, 7, MISS), (4, 0, HIT)]


@each_row(
    ("rates", "shots", "living", "winner", "next_shooter"),
    [
        (THREE, [(0, 2, HIT), (1, 0, MISS), (0, 1, HIT)], [0], 0, None),
        (THREE, [(0, ON_PURPOSE, HIT), (1, 2, MISS), (2, 1, HIT), (0, 2, HIT)], [0], 0, None),
        ((), R3, [1, 2, 3, 4, 5, 6, 7], None, 5),
        ((), [(0, 1, HIT), (2, 9, HIT), (3, 8, MISS)], [0, *range(2, 9)], None, 4),
        (THREE, R5, [2], 2, None),
        ((0, 100), [(0, 1, HIT), (1, 0, MISS)], [1], 1, None),
    ],
    ids=["R1", "R2", "R3", "R4", "R5", "R7"],
)
def test_worked_examples(rates, shots, living, winner, next_shooter):
    rules = battle(*rates)
    state, outcomes = shoot(rules, *shots)
    assert np.flatnonzero(state.living).tolist() == living
    assert state.round == len(shots)
    assert bool(state.over) == (winner is not None)
    assert outcomes[-1].rewards.tolist() == [float(seat == winner) for seat in range(rules.players)]
    assert not any(outcome.rewards.any() for outcome in outcomes[:-1])
    if next_shooter is not None:
        assert np.flatnonzero(rules.asked(state)).tolist() == [next_shooter]


def test_the_record_has_what_a_score_needs():
    _, outcomes = shoot(battle(50, 70, 90), (0, ON_PURPOSE, HIT), (1, 2, MISS), (2, 1, HIT))
    records = [outcome.record for outcome in outcomes]
    assert [int(r["shooter"]) for r in records] == [0, 1, 2]
    assert [int(r["target"]) for r in records] == [-1, 2, 1]
    assert [bool(r["hit"]) for r in records] == [False, False, True]
    assert [r["alive"].tolist() for r in records] == [[True] * 3] * 3  # before the shot
    assert records[0]["rates"].tolist() == [50, 70, 90]
    assert records[1]["actions"].tolist() == [MISSING, 2, MISSING]


def test_the_circle_skips_the_dead_and_never_restarts():  # R3, when the turn comes round
    rules = battle()
    state, _ = shoot(rules, *R3)
    state, _ = shoot(rules, *((seat, ON_PURPOSE, 0) for seat in (5, 6, 7, 1, 2)), state=state)
    assert state.shooter == 3


@each_row(("outcome", "rewards"), [("nobody", [0, 0, 0]), ("share", [1 / 3] * 3)])
def test_the_cap(outcome, rewards):  # R6
    rules = battle(*THREE, max_shots=2, cap_outcome=outcome)
    state, outcomes = shoot(rules, (0, 2, MISS), (1, 2, MISS))
    assert state.over
    assert state.living.all()
    assert outcomes[-1].rewards.tolist() == rewards
    assert outcomes[-1].finished.all()


def test_a_winner_at_the_cap_wins_alone():
    _, outcomes = shoot(battle(50, 50, max_shots=1, cap_outcome="share"), (0, 1, HIT))
    assert outcomes[-1].rewards.tolist() == [1, 0]


@each_row("target", [9, 0, 5, 12, -2, MISSING], ids=str)
@each_row("bad_target", ["rule_break", "wasted_shot"])
def test_bad_targets(target, bad_target):  # R8
    rules = battle(bad_target=bad_target)
    state, _ = shoot(rules, *R3)
    actions = np.full(10, ON_PURPOSE)
    actions[5] = target
    after, outcome = rules.step(state, actions)
    wasted = bad_target == "wasted_shot" and target in (9, 0, 12)
    assert np.flatnonzero(outcome.broke).tolist() == ([] if wasted else [5])
    assert outcome.record["target"] == (min(target, 10) if wasted else ON_PURPOSE)
    assert not outcome.record["hit"]
    assert np.array_equal(after.living, state.living)
    assert after.shooter == 6


def test_shooting_oneself():
    rules = battle(50, 50, 50, self_target="allowed")
    state, outcomes = shoot(rules, (0, 0, HIT))
    assert outcomes[0].finished.tolist() == [True, False, False]
    assert np.flatnonzero(rules.asked(state)).tolist() == [1]
    state, outcomes = shoot(
        rules, (1, 1, 0), state=dataclasses.replace(state, rolls=state.rolls * 0)
    )
    assert outcomes[0].rewards.tolist() == [0, 0, 1]


@each_row(
    ("rate", "roll", "hit"), [(0, 0, False), (100, 99, True), (50, 49, True), (50, 50, False)]
)
def test_a_roll_below_the_rate_hits(rate, roll, hit):
    _, outcomes = shoot(battle(rate, 50), (0, 1, roll))
    assert outcomes[0].record["hit"] == hit


def test_rolls_are_uniform_from_0_to_99():
    rolls = battle().reset(1, (5000,)).rolls
    assert rolls.shape == (20, 5000)
    counts = np.bincount(rolls.ravel(), minlength=100)
    assert len(counts) == 100
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)


def strongest_other(state, rules):
    seats = np.arange(rules.players)[:, None]
    rates = np.array(rules.rates)[:, None]
    target = np.where(state.living & (seats != state.shooter), rates, -1).argmax(axis=0)
    return np.broadcast_to(target, state.living.shape)


@pytest.mark.parametrize(
    ("rates", "shots", "wins", "nobody"),
    [
        (THREE, None, [23590 / 63631, 1890 / 3349, 243 / 3743], 0),
        ((), 20, [0.285562, 0.204194, 0.067478, 0.011720], 0.430646),
        ((), None, [0.488166, 0.353715, 0.126958, 0.027531], 0),
        ((40, 60), None, [10 / 19, 9 / 19], 0),
    ],
    ids=["truel", "default", "no cap", "duel"],
)
def test_win_rates_of_shooting_the_strongest(rates, shots, wins, nobody):
    rules = battle(*rates, max_shots=shots)
    tables = 20_000 if rules.max_shots else 1_000  # without a cap, all of 10,000 shots are drawn
    rng = np.random.default_rng(4)
    state, total = rules.reset(int(rng.integers(2**31)), (tables,)), 0
    while not state.over.all():
        state, outcome = rules.step(state, strongest_other(state, rules))
        total = total + outcome.rewards
    rates = total.mean(axis=1)
    for rate, expected in (*zip(rates, wins, strict=False), (1 - rates.sum(), nobody)):
        assert abs(rate - expected) < 5 * np.sqrt(expected * (1 - expected) / tables) + 1e-9


def test_the_mask_lists_a_miss_and_then_the_seats():
    rules = battle()
    state, _ = shoot(rules, *R3)
    mask = rules.mask(state)
    assert mask.shape == (10, 11)
    assert (np.flatnonzero(mask[5]) - 1).tolist() == [-1, 1, 2, 3, 4, 6, 7]
    assert not np.delete(mask, 5, axis=0).any()
    allowed = battle(self_target="allowed", bad_target="wasted_shot").mask(state)
    assert allowed[5].all()


def question(**more):
    rules = battle(**more)
    state, _ = shoot(rules, *R3)
    return rules.question(state, 5)


@each_row(
    ("more", "value", "expected"),
    [
        *(({}, v, 7) for v in ("player_7", "7", 7, " player_7 ")),
        *(({}, v, -1) for v in (None, "null", " NULL ")),
        *(({}, v, "range") for v in ("player_9", "player_0", "player_5", "player_12", 12, "5", -1)),
        *(
            ({}, v, "format")
            for v in ("Bob", "", "player_", "Player_7", True, [7], {}, "player_7!")
        ),
        *(({"bad_target": "wasted_shot"}, v, seat) for v, seat in ((9, 9), ("player_0", 0))),
        *(({"bad_target": "wasted_shot"}, v, 10) for v in ("player_12", 12, "Bob", -1)),
        ({"bad_target": "wasted_shot"}, "player_5", "range"),
        ({"self_target": "allowed"}, "player_5", 5),
        ({"self_target": "allowed"}, "player_9", "range"),
        ({"target_match": "substring"}, "7", 7),
        ({"target_match": "substring"}, "player", 1),
        ({"target_match": "substring"}, "player_5", "range"),
        ({"target_match": "substring"}, "9", "range"),
    ],
)
def test_targets_in_replies(more, value, expected):  # R8 and the lenient readings
    asked = question(**more)
    if isinstance(expected, int):
        assert asked.read(value) == expected
        return
    with pytest.raises(BadReply) as caught:
        asked.read(value)
    assert caught.value.kind == expected


def test_a_substring_can_mean_a_longer_name():
    rules = battle(players=12, interval=0, target_match="substring")
    state, _ = shoot(rules, (0, 1, HIT))
    assert rules.question(state, 2).read("1") == 10


@each_row(
    ("reply_keys", "text", "outcome"),
    [
        ("target", '{"target": "player_7"}', "valid"),
        ("target", '{"action": "shoot", "target": "player_7"}', "valid"),
        ("target", '{"action": " Miss ", "target": null}', "valid"),
        ("target", '{"action": "miss", "target": "player_7"}', "unparsable"),
        ("target", '{"action": "shoot", "target": null}', "unparsable"),
        ("target", '{"action": 1, "target": "player_7"}', "unparsable"),
        ("target", '{"action": "shoot"}', "unparsable"),
        ("action_target", '{"action": "miss", "target": "player_7"}', "valid"),
        ("action_target", '{"target": "player_7"}', "valid"),
        ("action_target", '{"action": "miss"}', "unparsable"),
    ],
)
def test_the_action_key(reply_keys, text, outcome):
    assert read_reply(text, question(reply_keys=reply_keys)).outcome == outcome


def test_asking_for_both_keys():
    both = question(reply_keys="action_target")
    assert list(both.schema(True)["properties"]) == ["explanation", "action", "target"]
    assert both.form() == '{"action": <"shoot" or "miss">, "target": <"name" of a target, or null>}'
    assert json.loads(both.reply(7)) == {"action": "shoot", "target": "player_7"}
    assert json.loads(both.reply(-1)) == {"action": "miss", "target": None}
    assert all(both.allows(both.reply(7)[:n]) for n in range(len(both.reply(7)) + 1))


@each_row(("action", "name"), [(9, "player_9"), (10, "player_10"), (5, "player_5")])
def test_wasted_shots_can_be_written_down(action, name):
    assert json.loads(question(bad_target="wasted_shot").reply(action)) == {"target": name}


@each_row("rolls", [[100], [-1], [[0, 1]]])
def test_bad_rolls(rolls):
    with pytest.raises(BadParameter, match="chance 'rolls' must be numbers from 0 to 99"):
        battle().reset(0, given={"rolls": rolls})


@each_row(
    ("base", "interval", "rates"),
    [(51, 1, range(51, 61)), (35, 5, range(35, 81, 5)), (10, 10, range(10, 101, 10))],
)
def test_rates_of_the_variants(base, interval, rates):
    assert battle(base_hit_rate=base, interval=interval).rates == tuple(rates)


def test_a_player_that_is_out_learns_nothing():
    rules = battle(50, 70, 90, players=3)
    before, _ = shoot(rules, (0, 2, HIT))
    after, outcomes = shoot(rules, (1, ON_PURPOSE, 0), state=before)
    assert outcomes[0].finished.tolist() == [False, False, True]
    for state in (before, after):
        assert not rules.observe(state)[2].any()
        assert rules.told(state, 2)["events"] == rules.told(state, 2)["alive"] == []
        assert Prompts("battle_royale").report(View.of(rules, state, 2)) == ""
        assert rules.question(state, 2) is None


def test_the_window_reaches_back_to_the_own_last_shot():
    rules = battle()
    state, _ = shoot(rules, *R3, (5, 4, HIT), (6, ON_PURPOSE, 0), (7, 6, MISS), (1, 7, MISS))
    seen = {seat: [e["shot"] for e in rules.told(state, seat)["events"]] for seat in (1, 2, 3, 7)}
    assert seen == {1: [9], 2: [3, 4, 5, 6, 7, 8, 9], 3: [4, 5, 6, 7, 8, 9], 7: [8, 9]}
    numbers = View.of(rules, state, 7)
    assert [int(numbers.number(f"shot_{i}")) for i in range(10)] == [0, 9, 0, 0, 0, 0, 0, 8, 0, 0]
    assert (numbers.number("target_1"), numbers.number("hit_1")) == (7, 0)
    assert (numbers.number("position"), numbers.number("left")) == (6, 6)


def test_a_deliberate_miss_differs_from_a_failed_shot():
    rules = battle()
    one, _ = shoot(rules, (0, ON_PURPOSE, HIT))
    two, _ = shoot(rules, (0, 9, MISS))
    assert (rules.observe(one) != rules.observe(two)).any(axis=1).all()


@each_row("version", versions("battle_royale"))
def test_wordings(version):
    prompts = Prompts("battle_royale", version)
    silent = rulebook("battle_royale", preset="gamma_bench")
    assert prompts.rules(silent, 3) == prompts.rules(battle(max_shots=None), 3)
    assert prompts.rules(silent, 3) == prompts.rules(battle(max_shots=7, announce_cap=False), 3)
    state, _ = shoot(silent, *R3)
    request = prompts.request(View.of(silent, state, 5))
    assert ", ".join(f"player_{i} {35 + 5 * i}%" for i in range(1, 8)) in request
    assert "player_9" not in request
    assert "20" not in request


def test_a_scripted_game():
    rules = battle(50, 70, 90, announce_cap=True, max_shots=6)
    prompts = Prompts("battle_royale")
    state, _ = shoot(rules, (0, ON_PURPOSE, HIT), (1, 2, MISS))
    assert prompts.report(View.of(rules, state, 2)) == (
        "Shot 1: player_0 missed on purpose. Players left: 3.\n"
        "Shot 2: player_1 shot at player_2 and missed. Players left: 3."
    )
    assert prompts.request(View.of(rules, state, 2)) == (
        "Shot 3 of at most 6 is yours. Players left, in order: player_0 50%, player_1 70%, "
        "player_2 90%. You are player_2 with 90%, number 3 of 3. Whom do you shoot, or do you miss "
        "on purpose? Your goal is to be the last player left.\nAnswer only with JSON of this form, "
        'null for a miss on purpose: {"target": <"name" of a target, or null>}'
    )
    hits = dataclasses.replace(state, rolls=np.zeros_like(state.rolls))
    state, _ = shoot(rules, (2, 1, HIT), state=hits)
    assert prompts.report(View.of(rules, state, 0)) == (
        "Shot 1: player_0 missed on purpose. Players left: 3.\n"
        "Shot 2: player_1 shot at player_2 and missed. Players left: 3.\n"
        "Shot 3: player_2 shot at player_1 and hit. Players left: 2."
    )
    state, outcomes = shoot(rules, (0, 2, HIT), state=state)
    assert outcomes[0].rewards.tolist() == [1, 0, 0]
    assert prompts.report(View.of(rules, state, 0)) == (
        "Shot 4: player_0 shot at player_2 and hit. Players left: 1."
    )
    assert rules.picture(state) == (
        "Battle royale: shot 4 of at most 6, 1 left",
        ["seat", "hits", "state", "last shot"],
        [
            ["player_0", "50%", "alive", "#4 at player_2: hit"],
            ["player_1", "70%", "out", "#2 at player_2: missed"],
            ["player_2", "90%", "out", "#3 at player_1: hit"],
        ],
    )
