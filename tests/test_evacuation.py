"""The evacuation: the worked examples of its description, its chance, its replies, its batches."""

import json

import numpy as np
import pytest
from playing import batch_actions, each_row, equal, legal_actions

import llm_games
from llm_games.baselines.players import make_player
from llm_games.games.emergency_evacuation.geometry import WAYS, packed
from llm_games.games.emergency_evacuation.rules import (
    CASUALTY,
    ESCAPED,
    MOVE,
    NORMAL,
    OUT,
    OVERTAKEN,
    TARGET,
)
from llm_games.games.emergency_evacuation.walkers import costs
from llm_games.questions import MISSING
from llm_games.replies import read_reply
from llm_games.view import View
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play

NAMES = [*WAYS]


def rules(start=None, **more):
    own = {} if start is None else {"players": len(start), "start": start}
    return llm_games.rules("emergency_evacuation", order="id", **(own | more))


def number(game, cell):
    return cell[0] * game.room.columns + cell[1]


def cells(game, state):
    """Return rows and columns of all people, None of those who are out."""
    where = zip(*(part.tolist() for part in game.room.row_column(state.cell)), strict=True)
    return [None if cell == (0, 0) else cell for cell in where]


def moved(game, state, exit_=None, wishes=None):
    """Play one round: all choose an exit, then name directions, or walk like greedy people."""
    assert (int(state.phase) == TARGET) == (exit_ is not None)
    if exit_ is not None:
        state, outcome = game.step(state, np.full(game.players, exit_))
    names = wishes and [NAMES.index(wish) for wish in wishes]
    begun = int(state.round)
    while int(state.phase) == MOVE and int(state.round) == begun and not state.over:
        state, outcome = game.step(state, np.array(names))
    return state, outcome


def nearest(game, state):
    return game.room.side[game.measure.nearest[state.cell]]


def lattice(people):
    """Return the lattice of examples F and G: where people are, their groups and strengths."""
    lines = range(3, 31, 3) if people == 100 else range(7, 27)
    ids = np.arange(people)
    given = {"group": ids % 4 + 1, "N0": ids % 6 + 1}
    return [(row, column) for row in lines for column in lines], given


# -- A and B: steps --------------------------------------------------------------------------------
@each_row("walker", ["greedy", "player"])
@each_row(
    ("moves", "ends"),
    [("sequential", [(31, 16), (31, 17)]), ("simultaneous", [(31, 16), (30, 17)])],
)
def test_two_want_one_cell(moves, ends, walker):
    game = rules(
        [(30, 15), (30, 17)], moves=moves, walker=walker, max_rounds=1, target_choice="cell"
    )
    episode = play(game, [make_player("fixed:bottom 2", game)] * 2, seed=1)
    last = episode.steps[-1].outcome.record
    assert [(int(last[axis][0, 0]), int(last[axis][0, 1])) for axis in ("row", "column")] == [
        tuple(part) for part in zip(*ends, strict=True)
    ]
    steps = {"greedy": 1, "player": 3 if moves == "sequential" else 2}[walker]
    assert len(episode.steps) == steps
    if walker == "player":
        assert last["blocked"].tolist() == [False, moves == "simultaneous"]
    assert not any(step.outcome.broke.any() for step in episode.steps)


def test_nobody_swaps():
    game = rules([(10, 10), (10, 11)], moves="simultaneous")
    state, outcome = moved(game, game.reset(1), 0, ["right", "left"])
    assert cells(game, state) == [(10, 10), (10, 11)]
    assert outcome.record["blocked"].all()
    assert not outcome.broke.any()


QUEUE = [(17, 31), (17, 30), (17, 29), (17, 28)]
CORNER = [(16, 31), (17, 31), (18, 31), (17, 30)]


@each_row(
    ("start", "moves", "leave", "after"),
    [
        (QUEUE, "sequential", [0, 1, 2, 3], {1: (17, 31), 2: (17, 30), 3: (17, 29)}),
        (QUEUE, "simultaneous", [0, 1, 2, 3], {1: (17, 31), 2: (17, 30), 3: (17, 29)}),
        (CORNER, "sequential", [1, 0, 2, 3], {0: (17, 31), 2: (18, 31), 3: (16, 31)}),
        (CORNER, "simultaneous", [1, 3, 0, 2], {0: (16, 31), 2: (18, 31), 3: (17, 31)}),
    ],
)
def test_one_exit_passes_one_a_round(start, moves, leave, after):
    game = rules(start, moves=moves, walker="greedy", p_deliberate=1, target_choice="cell")
    state, paid = game.reset(1), np.zeros(4)
    for round_ in range(1, 5):
        state, outcome = game.step(state, np.full(4, 6))
        paid += outcome.rewards
        if round_ == 1:
            inside = {seat: cell for seat, cell in enumerate(cells(game, state)) if cell}
            assert inside == after
    assert np.argsort(state.escape_round).tolist() == leave
    assert sorted(state.escape_round.tolist()) == [1, 2, 3, 4]
    assert state.over
    assert (paid * 50).round().tolist() == (51 - state.escape_round).tolist()


# -- C: injuries -----------------------------------------------------------------------------------
BLOCK = [(10, 10), *((row, c) for row in (9, 10, 11) for c in (9, 10, 11) if (row, c) != (10, 10))]


@each_row(
    ("group", "own", "others", "pressure", "status"),
    [
        (4, 1, [3] * 8, 16, OVERTAKEN),
        (4, 1, [3] * 7 + [2], 15, NORMAL),
        (4, 1, [6] * 8, 40, OVERTAKEN),
        (1, 2, [5] * 6 + [4] * 2, 22, OVERTAKEN),
        (1, 2, [5] * 4 + [4] * 4, 20, NORMAL),
    ],
)
def test_pressure(group, own, others, pressure, status):
    game = rules(BLOCK, injury_when="start", max_rounds=1)
    state = game.reset(1, given={"group": [group] + [4] * 8, "N0": [own, *others]})
    assert int(game.pressure(state)[0]) == pressure
    assert int(state.status[0]) == status
    assert int(state.crushed[0]) == (status == OVERTAKEN)
    if others == [3] * 8:
        corners = [i for i, cell in enumerate(BLOCK) if cell[0] != 10 and cell[1] != 10]
        assert game.pressure(state)[corners].tolist() == [-2] * 4


def test_crushed_too_often():
    game = rules(BLOCK, moves="simultaneous")
    state, statuses = game.reset(1, given={"group": [4] * 9, "N0": [1] + [3] * 8}), []
    while not state.over and state.round < 24:
        wishes = ["stay"] * 9
        exit_ = None if int(state.phase) == MOVE else 0
        if exit_ is None:
            state, _ = game.step(state, np.full(9, 4))
        else:
            state, _ = game.step(state, np.zeros(9, np.int64))
            state, _ = game.step(state, np.array([NAMES.index(wish) for wish in wishes]))
        statuses.append(int(state.status[0]))
        if int(state.round) == 3:
            assert not game.asked(state)[0]
    assert statuses[:23] == [OVERTAKEN] * 22 + [CASUALTY]
    assert int(state.crushed[0]) == 23
    assert int(state.cell[0]) == OUT
    assert not game.alive(state)[0]


# -- D: what can be done ---------------------------------------------------------------------------
@each_row(
    ("start", "ways"),
    [
        ((29, 13), NAMES),
        ((17, 31), ["right", "down", "left", "up", "stay", "down-left", "up-left"]),
        ((31, 14), ["right", "left", "up", "stay", "down-right", "up-left", "up-right"]),
        ((1, 1), ["right", "down", "stay", "down-right"]),
    ],
)
def test_options(start, ways):
    game = rules([start], code_order="fixed")
    state, _ = game.step(game.reset(1), np.array([0]))
    told = game.told(state, 0)["options"]
    assert [option["way"] for option in told] == ways
    assert [option["letter"] for option in told] == list("abcdefghi"[: len(ways)])
    question = game.question(state, 0)
    assert question.words == {"abcdefghi"[k]: NAMES.index(way) for k, way in enumerate(ways)}
    if start == (29, 13):
        there = [(option["cell"]["row"], option["cell"]["column"]) for option in told]
        assert there == [(29, 14), (30, 13), (29, 12), (28, 13), (29, 13), (30, 14), (30, 12),
                         (28, 12), (28, 14)]  # fmt: skip


@each_row("moves", ["sequential", "simultaneous"])
def test_the_cell_before_the_last_real_step(moves):
    """Who stays, or finds the cell taken, came from where it came from before."""
    game = rules([(5, 5), (7, 5)], p_deliberate=0, moves=moves)
    state, came = game.reset(1), []
    state, _ = game.step(state, np.zeros(2, np.int64))
    for wish in ("stay", "down", "stay", "down" if moves == "simultaneous" else "stay"):
        came.append(game.told(state, 0)["came"])
        state, _ = moved(game, state, None, [wish, "stay"])
    assert [*came, game.told(state, 0)["came"]] == [None, None, *[{"row": 5, "column": 5}] * 3]
    assert cells(game, state) == [(6, 5), (7, 5)]


def test_letters_hang_on_round_person_and_place():
    game = rules([(10, 10), (20, 20)], moves="simultaneous")
    letters = set()
    for start in ([(10, 10), (20, 20)], [(20, 20), (10, 10)]):
        state, _ = game.step(game.reset(1, given={"start": start}), np.array([0, 0]))
        again, _ = game.step(game.reset(2, given={"start": start}), np.array([0, 0]))
        for person in (0, 1):
            words = game.question(state, person).words
            assert words == game.question(again, person).words
            assert sorted(words.values()) == list(range(9))
            letters.add(tuple(words.values()))
    assert len(letters) == 4


# -- E: what is seen -------------------------------------------------------------------------------
SEEN = [(16, 16), (20, 16), (22, 17), (16, 10)]
MEANS = [
    [(16.020813, 2), (16.020813, 1), (16.031220, 0)],
    [(12.027730, 1), (16.511433, 1), (16.278821, 0)],
    [(10.082638, 0), (18.044193, 1), (15.811388, 0)],
    [(17.105104, 1), (10.033250, 0), (22.022716, 2)],
]
AUTHORS = [[3, 2, 1], [2, 2, 1], [1, 2, 1], [2, 1, 3]]


@each_row("count", ["people", "authors"])
def test_what_is_seen(count):
    game = rules(SEEN, view_count=count)
    state = game.reset(1)
    found = game.room.of_sides(game.counts(state)).T
    far = game.measure.mean[:, state.cell].T
    due = [[n for _, n in row] for row in MEANS] if count == "people" else AUTHORS
    assert found.tolist() == due
    assert np.abs(far - [[d for d, _ in row] for row in MEANS]).max() < 1e-6
    view = View.of(game, state, 3)
    assert [float(view.number(f"count_{side}")) for side in range(3)] == due[3]
    assert float(view.number("around")) * 8 == (count == "authors")
    assert [s["people"] for s in view.told["seen"]] == [f"{n:.2f}" for n in due[3]]
    assert [s["distance"] for s in view.told["seen"]] == ["17.11", "10.03", "22.02"]


COST = {
    False: [6.345312, 5.844526, 6.334921, 5.834127, 6.345312, 5.844526, 5.343740],
    True: [2285.44, 2285.27, 2280.99, 2280.82, 2285.44, 2285.27, 2285.11],
}


@each_row("panic", [False, True])
def test_costs_of_the_rule_model(panic):
    game = rules(SEEN)
    state, group = game.reset(1), np.array([1, 2, 3, 4])
    found = costs(game.measure, game.occupied(state), state.cell, group, panic)
    assert np.abs(found[:, 0] - COST[panic]).max() < (0.005 if panic else 1e-6)
    assert found[:, 0].argmin() == (3 if panic else 6)
    assert found[:, 2].argmin() == 4
    assert game.measure.nearest[state.cell[0]] == 2
    if not panic:
        assert abs(found[4, 2] - 6.25) < 0.005


def test_walls_and_seats_can_count_as_people_in_costs():
    game, one = rules(SEEN, seats=True, rule_count="occupied"), np.array([0])
    room, state = game.room, game.reset(1)
    of_one = game.measure, game.occupied(state), state.cell[:1], np.array([1]), False
    pair = [costs(*of_one, blocked=blocked)[2] for blocked in (False, True)]
    ends = room.lines[2, state.cell[0]]
    reach = np.hypot(*np.subtract(*map(room.row_column, (ends[ends >= 0][-1], state.cell[0]))))
    seen = room.view(state.cell[:1], one + 2, np.array([reach]), 45)
    walls = np.bitwise_count(seen & packed(~room.open[:, None])).sum()
    area = np.bitwise_count(seen).sum() - 1
    assert walls > 0
    assert np.allclose(pair[1] - pair[0], walls * (3.6 + 1.2 / area) / 7.2)


# -- F and G: whole runs ---------------------------------------------------------------------------
CURVES = """
0 3 7 11 14 19 25 31 36 42 49 55 61 67 71 75 79 81 83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98 \
99 100
0 3 7 11 14 19 24 29 34 39 44 49 54 58 62 66 70 72 74 76 78 80 82 84 86 88 90 92 93 94 95 96 97 98 \
99 100
0 3 7 11 14 19 24 29 36 41 47 53 58 63 68 72 74 77 79 81 83 85 87 88 89 90 91 92 93 94 95 96 97 98 \
99 100
0 3 7 11 14 19 24 29 36 41 47 53 57 63 67 70 74 76 78 80 82 84 86 88 89 90 91 92 93 94 95 96 97 98 \
99 100
0 3 7 11 15 21 26 32 38 44 50 57 63 68 73 76 79 81 83 84 85 86 87 88 89 90 91 93 94 95 96 97 98 99 \
100
0 0 0 0 0 4 11 17 24 31 38 45 52 59 66 73 80 87 94 101 108 115 122 129 136 143 150 157 164 171 178 \
185 191 198 204 211 218 224 230 236 242 248 254 260 266 271 276 281 286 291
"""
CURVES = [list(map(int, line.split())) for line in CURVES.strip().splitlines()]
WANG = {"walker": "wang", "p_best": 1, "p_deliberate": 1, "target_choice": "cell"}
GREEDY = {"walker": "greedy", "p_deliberate": 0}


@pytest.mark.parametrize(
    ("people", "player", "more", "curve", "by_cell", "total", "overtaken", "most"),
    [
        (100, "nearest", {"injury": "off"}, 0, [12, 16, 3, 9, 15, 10, 35], 1327, 0, 0),
        (100, "nearest", {}, 0, [12, 16, 3, 9, 15, 10, 35], 1327, 14, 8),
        (100, "nearest", {"moves": "simultaneous"}, 1, [15, 25, 0, 0, 15, 10, 35], 1443, 0, 0),
        pytest.param(
            100,
            "wang",
            WANG | {"injury": "off"},
            2,
            [14, 20, 4, 5, 12, 10, 35],
            1367,
            0,
            0,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            100, "wang", WANG, 3, [14, 21, 4, 4, 12, 10, 35], 1377, 12, 5, marks=pytest.mark.slow
        ),
        pytest.param(
            100,
            "wang:calm",
            WANG | {"injury": "off"},
            4,
            [13, 16, 5, 6, 13, 13, 34],
            1301,
            0,
            0,
            marks=pytest.mark.slow,
        ),
        (400, "nearest", {}, 5, [32, 44, 38, 43, 45, 44, 45], None, 968, 30),
    ],
)
def test_whole_runs(people, player, more, curve, by_cell, total, overtaken, most):
    start, given = lattice(people)
    game = rules(start, **(GREEDY | more))
    episode = play(game, [make_player(player, game)] * people, seed=1, given=given)
    records = [step.outcome.record for step in episode.steps]
    status, crushed = (
        np.concatenate([record[name] for record in records]) for name in ("status", "crushed")
    )
    out = status == ESCAPED
    assert out.sum(axis=1).tolist() == CURVES[curve]
    exits = np.concatenate([record["exit"][record["exit"] >= 0] for record in records])
    assert np.bincount(exits, minlength=7).tolist() == by_cell
    assert (status == OVERTAKEN).sum() == overtaken
    assert crushed.max() == most
    assert total is None or (out.argmax(axis=0) + 1).sum() == total
    dead = status == CASUALTY
    lost = {seat: int(dead[:, seat].argmax()) + 1 for seat in np.flatnonzero(dead[-1]).tolist()}
    assert lost == (
        {}
        if people == 100
        else {79: 34, 96: 50, 114: 42, 156: 31, 162: 25, 174: 26, 175: 45, 193: 32, 198: 26,
              216: 30, 277: 32, 318: 26, 319: 44}
    )  # fmt: skip
    assert (status[-1] < ESCAPED).sum() == (0 if people == 100 else 96)
    assert sum(episode.payoffs) * 50 == pytest.approx(51 * out[-1].sum() - _rounds(out))


def _rounds(out):
    return (out.argmax(axis=0) + 1)[out[-1]].sum()


# -- chance ----------------------------------------------------------------------------------------
def test_groups_and_strengths():
    game = rules(players=100)
    assert game.groups.tolist() == [seat % 4 + 1 for seat in range(100)]
    state = game.reset(3)
    counts = [[0, 3, 3, 7, 7, 5], [3, 3, 5, 7, 5, 2], [3, 5, 8, 5, 2, 2], [5, 8, 8, 2, 2, 0]]
    for group, due in enumerate(counts, 1):
        own = state.group == group
        assert np.bincount(state.N0[own], minlength=7)[1:].tolist() == due
        assert {*state.Y0[own].tolist()} == {(20, 15, 18, 15)[group - 1]}
        assert {*state.Z0[own].tolist()} == {(30, 28, 25, 23)[group - 1]}
    shares = rules(players=10, shares=("3/10", "3/10", "1/5", "1/5")).groups
    assert shares.tolist() == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]
    given = game.reset(3, given={"group": np.full(100, 4)})
    assert np.bincount(given.N0, minlength=7)[1:].tolist() == [20, 30, 30, 10, 10, 0]
    assert {*given.Z0.tolist()} == {23}


def test_normal_attributes():
    own = rules(players=600, attributes="normal").reset(1)
    strong = own.group <= 2
    for name, means in {"N0": (3, 2), "Y0": (18, 16), "Z0": (26, 23)}.items():
        drawn = getattr(own, name)
        for part, mean in ((strong, means[0]), (~strong, means[1])):
            assert abs(drawn[part].mean() - mean) < 0.25
            assert 0.8 < drawn[part].std() < 1.2
    alike = rules(players=300, attributes="normal", noise="shared")
    state = alike.reset(1)
    assert np.ptp(state.N0[state.group <= 2]) == 0
    assert alike.pressure(state).max() <= 8
    rows = [(1, 20, 30), (2, 21, 31)]
    explicit = rules(players=2, attributes=rows).reset(1)
    given = (explicit.N0, explicit.Y0, explicit.Z0)
    assert [list(row) for row in zip(*map(list, given), strict=True)] == [list(r) for r in rows]


def test_starts():
    state = rules(players=400).reset(1, (3,))
    for table in range(3):
        assert len({*state.cell[:, table].tolist()}) == 400
    game = rules(players=264, start="aisles", seats=True)
    assert game.room.free.sum() == 697
    below = game.reset(1).cell
    assert game.room.seat[below - game.room.columns].all()
    assert game.room.free[below].all()


def test_deciders():
    game = llm_games.rules("emergency_evacuation", walker="greedy", max_rounds=12)
    share, rounds = [], 0
    for seed in range(20):
        state = game.reset(seed)
        assert game.asked(state).all()
        for _ in range(6):
            state, _ = game.step(state, nearest(game, state))
            if state.over:
                break
            able = game.present(state) & (state.status == NORMAL)
            assert not (game.asked(state) & ~able).any()
            share.append(game.asked(state).sum() / able.sum())
            rounds += 1
    assert rounds > 50
    assert abs(np.mean(share) - 0.2) < 0.02


def test_talk_changes_nothing_else():
    """Example F of the talk: positions, orders and deciders are those of the silent run."""
    more = {"players": 30, "max_rounds": 6, "layout": "small"}
    talk = {"turns": 1, "speakers": "deciders", "audience": "radius", "heard_order": "nearest"}
    quiet, loud = (
        llm_games.rules("emergency_evacuation", **more, **extra) for extra in ({}, {"talk": talk})
    )
    one, two = quiet.reset(5), loud.reset(5)
    rng, spoken = np.random.default_rng(1), 0
    while not one.over:
        while loud.talking(two):
            spoken += 1
            assert loud.asked(two).sum() == 1
            who = int(loud.asked(two).argmax())
            assert one.deciders[who]
            two, _ = loud.step(two, loud.assemble(two, {who: "here"}))
        assert equal(one, two.game)
        actions = legal_actions(quiet, one, rng)
        (one, _), (two, _) = quiet.step(one, actions), loud.step(two, actions)
    assert spoken >= 30
    assert two.over


# -- batches ---------------------------------------------------------------------------------------
@each_row(
    "more",
    [
        {"players": 5, "layout": "small", "max_rounds": 4},
        {"players": 30, "layout": "small", "moves": "simultaneous", "max_rounds": 6},
        {"players": 50, "layout": "small", "walker": "wang", "injury_when": "start"},
        {"players": 40, "layout": "small", "walker": "greedy", "attributes": "normal"},
    ],
)
def test_a_batch_is_many_rooms(more):
    game = llm_games.rules("emergency_evacuation", **more)
    rng, together = np.random.default_rng(2), game.reset(4, (5,))
    alone = [game.reset(4 + seed) for seed in range(5)]
    paid, due = np.zeros((game.players, 5)), np.zeros((game.players, 5))
    for _ in range(game.length()):
        if together.over.all():
            break
        actions = batch_actions(game, together, rng)
        together, outcome = game.step(together, actions)
        paid += outcome.rewards
        for table, state in enumerate(alone):
            if not state.over:
                alone[table], own = game.step(state, actions[:, table])
                due[:, table] += own.rewards
                ended = int(own.record["rounds"])
                assert int(outcome.record["rounds"][table]) == ended
    assert together.over.all()
    for table, state in enumerate(alone):
        assert equal(together.table(table), state)
    assert np.array_equal(paid, due)
    assert paid.any()


def test_a_round_in_which_nobody_is_asked_is_played():
    start, given = lattice(100)
    game = rules(start, **GREEDY)
    state, outcome = game.step(game.reset(1, given=given), np.zeros(100, np.int64))
    assert state.over
    assert int(outcome.record["rounds"]) == len(outcome.record["row"]) == int(state.round)


# -- replies ---------------------------------------------------------------------------------------
@each_row(
    ("reply", "outcome", "action"),
    [
        ('{"exit": "left"}', "valid", 1),
        ('{"exit": " Left "}', "valid", 1),
        ('{"evaluation": {"left": "far"}, "exit": "right"}', "valid", 2),
        ('{"exit": "Left."}', "unparsable", None),
        ('{"exit": "top"}', "unparsable", None),
        ('{"exit": 1}', "unparsable", None),
        ('{"way": "left"}', "unparsable", None),
        ("I run to the left", "unparsable", None),
        ("", "unparsable", None),
    ],
)
def test_replies_that_name_an_exit(reply, outcome, action):
    game = rules([(10, 10)])
    question = game.question(game.reset(1), 0)
    read = read_reply(reply, question)
    assert read.outcome == outcome, read
    assert action is None or read.action == action


@each_row(
    ("reply", "outcome", "way"),
    [
        ('{"move": "a"}', "valid", "right"),
        ('{"move": " D"}', "valid", "down-right"),
        ('{"move": "down"}', "valid", "down"),
        ('{"move": "Down-Right"}', "valid", "down-right"),
        ('{"move": "up"}', "out_of_range", "up"),
        ('{"move": "e"}', "unparsable", None),
        ('{"move": "ab"}', "unparsable", None),
        ('{"move": "a, b"}', "unparsable", None),
        ('{"move": "north"}', "unparsable", None),
        ('{"move": null}', "unparsable", None),
        ('{"step": "a"}', "unparsable", None),
    ],
)
def test_replies_that_name_a_step(reply, outcome, way):
    game = rules([(1, 1)], code_order="fixed")
    state, _ = game.step(game.reset(1), np.array([0]))
    read = read_reply(reply, game.question(state, 0))
    assert read.outcome == outcome, read
    if outcome == "valid":
        assert NAMES[read.action] == way


def test_fallbacks():
    """A missing choice keeps the target itself, without one the nearest side; a step stays."""
    game = rules([(30, 2), (17, 20)], p_deliberate=1, walker="greedy", max_rounds=3)
    state, outcome = game.step(game.reset(1), np.array([MISSING, 7]))
    assert outcome.broke.all()
    assert outcome.record["actions"].tolist() == nearest(game, game.reset(1)).tolist()
    before = state.target.tolist()
    state, outcome = game.step(state, np.array([MISSING, MISSING]))
    assert state.target.tolist() == before
    game = rules([(1, 1)])
    state, _ = game.step(game.reset(1), np.array([0]))
    state, outcome = game.step(state, np.array([NAMES.index("up")]))
    assert outcome.broke.all()
    assert cells(game, state) == [(1, 1)]


def test_all_in_one_question():
    game = rules([(10, 10)], stages="one")
    state = game.reset(1)
    question = game.question(state, 0)
    assert list(question.schema()["properties"]) == ["feeling", "panic", "evaluation", "exit"]
    assert not game.asides(state, 0, "talk")
    assert not game.asides(state, 0, "move")
    assert read_reply('{"exit": "bottom"}', question).action == 0
    assert question.form() == (
        '{"feeling": <how you feel, in a few words>, "panic": <true or false>, "evaluation": '
        '{"bottom": "<what you think of it>", "left": "<what you think of it>", '
        '"right": "<what you think of it>"}, "exit": <"bottom" or "left" or "right">}'
    )


def test_what_one_reply_says_beside_its_exit_is_noted_down():
    exits = {"bottom": "near", "left": "full", "right": "narrow"}
    whole = {"feeling": "afraid", "panic": True, "evaluation": exits, "exit": "left"}
    half = {"feeling": " ", "evaluation": {"left": "full"}, "exit": "right"}
    noted = {}
    for said in (whole, half):
        game = rules([(10, 10)], stages="one", walker="greedy", max_rounds=1)
        client = ScriptedClient(lambda request, said=said: json.dumps(said))
        [step] = play(game, [LLMPolicy(client)], seed=1).steps
        noted[said["exit"]] = {note.kind: note.content for note in step.decisions[0].notes}
        assert len(step.decisions[0].attempts) == 1
    assert noted == {
        "left": {"feeling": {"feeling": "afraid", "panic": True}, "assessment": exits},
        "right": {},
    }


@each_row(("feeling", "talk"), [("before_talk", ["feeling"]), ("after_talk", [])])
def test_what_is_asked_beside(feeling, talk):
    game = rules([(10, 10)], feeling=feeling)
    state = game.reset(1)
    kinds = [[a.kind for a in game.asides(state, 0, phase)] for phase in ("talk", "move")]
    assert kinds[0] == talk
    assert [*kinds[0], *kinds[1]] == ["feeling", "assessment"]
    state, _ = game.step(state, np.array([0]))
    assert not game.asides(state, 0, "talk")
    assert not game.asides(state, 0, "move")


def test_random_players_play_in_all_ways():
    for more in ({"moves": "simultaneous"}, {"walker": "wang", "target_choice": "cell"}):
        game = llm_games.rules(
            "emergency_evacuation", players=6, layout="small", max_rounds=5, **more
        )
        episode = play(game, [make_player("random", game)] * 6, seed=3)
        assert not any(step.outcome.broke.any() for step in episode.steps)


def test_presets():
    for name in ("silent", "talk", "uncooperative", "authors"):
        game = llm_games.rules("emergency_evacuation", preset=f"shall_we_talk_ee_{name}")
        assert (game.core is game) == (name == "silent")
        assert (game.core.distances, game.core.announce_rules) == ("straight", False)
        assert (game.core.injury, game.core.noise) == (
            ("off", "shared") if name == "authors" else ("wang", "own")
        )
        assert game.core.uncooperative == (name == "uncooperative")
    game = llm_games.rules("emergency_evacuation", preset="shall_we_talk_ee_talk")
    assert (game.talk.turns, game.talk.radius, game.talk.words) == (1, 5, 49)
    assert (game.talk.speakers, game.talk.own) == ("deciders", "hidden")
