"""The evacuation's room, its queues and bounds, its rule players, measures and pictures."""

import math
from contextlib import suppress
from itertools import product

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.games.emergency_evacuation import escape, escape_times, queues, theory
from llm_games.baselines.regret import deviation, stacked, welfare
from llm_games.errors import BadParameter
from llm_games.games.emergency_evacuation.geometry import (
    BEYOND,
    STAY,
    STEPS,
    Layout,
    layout_of,
    line,
)
from llm_games.games.emergency_evacuation.rules import CASUALTY
from llm_games.games.emergency_evacuation.walkers import costs, crowd, greedy, ranked
from llm_games.pictures import PicturesExtraMissing
from llm_games.registry import rulebook

GAME = "emergency_evacuation"
HALL = layout_of("hall")
SMALL = """
#######
#.....#
0.....1
#.....#
###2###
"""


def cell(row, column, room=HALL):
    return row * room.columns + column


# -- the room --------------------------------------------------------------------------------------


def test_the_hall():
    assert [divmod(int(c), 33) for c in HALL.exits] == [
        (32, 15), (15, 0), (32, 16), (16, 0), (32, 17), (17, 0), (17, 32)
    ]  # fmt: skip
    assert HALL.sides == ("bottom", "left", "right")
    assert HALL.side.tolist() == [0, 1, 0, 1, 0, 1, 2]
    seated = layout_of("hall", True)
    assert (HALL.free.sum(), seated.free.sum(), seated.seat.sum()) == (961, 697, 264)
    assert HALL.straight.nearest[cell(16, 16)] == 2  # as near as exit 3, but before it
    rows, columns = HALL.row_column(np.arange(33 * 33))
    at_row, at_column = (part[:, None] for part in HALL.row_column(HALL.exits))
    far = np.maximum(abs(rows - at_row), abs(columns - at_column))
    assert (HALL.steps[:, HALL.free] == far[:, HALL.free]).all()


@each_row(
    ("drawing", "said"),
    [
        ("###\n#.0\n###\n", None),
        ("", "0 rows of 0 cells"),
        ("ball", "1 rows of 4 cells"),
        ("###\n#.0\n####", "rows have"),
        ("###\n#?0\n###", "'\\?' is none of its signs"),
        ("###\n..0\n###", "border must be wall or exits"),
        ("####\n#.00\n####", "exit 0 is drawn in several cells"),
        ("##0\n#.#\n###", "an exit in a corner"),
        ("#####\n#.0.1\n#####", "exit 0 is not in the border"),
        ("###\n#.#\n###", "it has no exit"),
        ("##1\n###\n#0#", "corner"),
        ("###\n##0\n###", "it has no free cell"),
        ("#####\n#.#.0\n#####", "cell \\(1, 1\\) is closed off from exit 0"),
        ("######\n#.##.1\n0.##.#\n######", "closed off from exit"),
    ],
)
def test_drawings(drawing, said):
    if said is None:
        assert Layout(drawing).sides == ("right",)
        return
    with pytest.raises(BadParameter, match=said):
        Layout(drawing)


def test_seats_can_close_a_room():
    drawing = "#####\n#.o.0\n#####"
    assert Layout(drawing).free.sum() == 3
    with pytest.raises(BadParameter, match=r"cell \(1, 1\) is closed off"):
        rulebook(GAME, layout=drawing, seats=True, players=1)


def walked(a, c):
    """A line by the letter of the spec, with exact fractions."""
    down, aside = c[0] - a[0], c[1] - a[1]
    length, small = max(abs(down), abs(aside)), min(abs(down), abs(aside))
    found = []
    for k in range(length + 1):
        other = math.ceil((2 * k * small - length) / (2 * length)) if length else 0
        by_rows = abs(down) > abs(aside)
        moved = (k, other) if by_rows else (other, k)
        found.append((a[0] + moved[0] * int(np.sign(down)), a[1] + moved[1] * int(np.sign(aside))))
    return found


def test_lines():
    ways = np.array([*product(range(-9, 10), repeat=2)])
    found = line(ways)
    for way, steps in zip(ways.tolist(), found.tolist(), strict=True):
        expected = walked((0, 0), way)
        assert [tuple(s) for s in steps[: len(expected)]] == expected
        assert expected[-1] == tuple(way)


@each_row(
    ("at", "exit_", "seats", "size"),
    [
        ((16, 16), 2, False, 89),
        ((16, 16), 1, False, 83),
        ((16, 16), 6, False, 83),
        ((5, 5), 1, False, 72),
        ((30, 30), 6, False, 64),
        ((31, 16), 2, False, 4),
        ((17, 31), 6, False, 4),
        ((22, 5), 0, False, 92),
        ((16, 16), 2, True, 49),
    ],
)
def test_sizes_of_views(at, exit_, seats, size):
    """Section 7 of the spec."""
    room = layout_of("hall", seats)
    assert np.bitwise_count(room.views(10, 45)[cell(*at), exit_]).sum() == size
    if seats:
        hall = np.zeros(room.cells, np.bool_)
        hall[np.flatnonzero(room.seat)] = True
        assert room.in_view(np.array([cell(*at)]), hall, 10, 45)[exit_] == 10


# -- Wang's people ---------------------------------------------------------------------------------

PEOPLE = np.array([cell(*at) for at in ((16, 16), (20, 16), (22, 17), (16, 10))])


def test_what_an_exit_costs():
    """Example E of the spec, and the same in a batch."""
    there, group = np.zeros(HALL.cells, np.bool_), np.array([1, 2, 3, 4])
    there[PEOPLE] = True
    calm, panic = (costs(HALL.straight, there, PEOPLE, group, mood) for mood in (False, True))
    first = [6.345312, 5.844526, 6.334921, 5.834127, 6.345312, 5.844526, 5.343740]
    np.testing.assert_allclose(calm[:, 0], first, atol=5e-7)
    np.testing.assert_allclose(
        panic[:, 0], [2285.44, 2285.27, 2280.99, 2280.82, 2285.44, 2285.27, 2285.11], atol=5e-3
    )
    assert calm.argmin(axis=0)[[0, 2]].tolist() == [6, 4]
    assert panic.argmin(axis=0)[[0, 2]].tolist() == [3, 4]
    assert calm[4, 2] == 6.25
    two = np.stack([there, np.zeros_like(there)], axis=-1)
    two[cell(1, 1), 1] = True
    cells = np.stack([PEOPLE, np.full(4, cell(1, 1))], axis=-1)
    both = costs(
        HALL.straight, two, cells, np.stack([group, group], axis=-1), np.array([[False, True]] * 4)
    )
    np.testing.assert_array_equal(both[..., 0], calm)
    assert crowd(HALL, two, cells)[:, 1].tolist() == [1] * 4


def test_what_walkers_like():
    here = cell(30, 15)
    liked = [HALL.row_column(c) for c in greedy(HALL.straight)[2, here]]
    assert liked[:3] == [(31, 16), (31, 15), (30, 16)]
    exits = HALL.d2[2][greedy(HALL.straight)[2]]
    enterable = HALL.enterable.sum(axis=0)
    for at in np.flatnonzero(HALL.free)[::37]:
        count = enterable[at]
        assert (np.diff(exits[at, :count]) >= 0).all()  # the nearest first
        assert (greedy(HALL.straight)[2, at, count:] == at).all()  # then only the own cell
    corner = cell(1, 1)
    assert ranked(HALL.straight)[0, corner].tolist() == [
        cell(2, 2), cell(2, 1), cell(1, 2), *[corner] * 8
    ]  # fmt: skip
    assert ranked(HALL.straight, True)[0, corner, :4].tolist().count(corner) == 1


# -- queues ----------------------------------------------------------------------------------------


def test_times_in_a_queue():
    """The k-th is out in round max(d, that of the one `width` places ahead + 1)."""
    rng = np.random.default_rng(1)
    far, there = rng.integers(1, 9, (30, 4)), rng.random((30, 4)) < 0.5
    for width, table in product((1, 3), range(4)):
        found = queues.times(far, there, width)[:, table]
        for me in range(30):
            queue = sorted((far[j, table], j) for j in range(30) if there[j, table] or j == me)
            out = []
            for k, (distance, _) in enumerate(queue):
                out.append(max(distance, out[k - width] + 1) if k >= width else distance)
            assert found[me] == out[[j for _, j in queue].index(me)]


@each_row("by", ["side", "cell"])
def test_nobody_gains_by_another_exit(by):
    """`queues.fifo` is an equilibrium, also where most may not change, and in batches."""
    rng = np.random.default_rng(2)
    own = theory.queues(HALL.straight, by)
    cells = np.stack([rng.choice(np.flatnonzero(HALL.free), 60, False) for _ in range(3)], axis=-1)
    fixed = rng.random(cells.shape) < 0.5
    choice = np.arange(len(own.steps)).reshape(-1, 1, 1)
    kept = rng.integers(len(own.steps), size=cells.shape)
    for bound in (fixed, fixed & False):
        far = np.where(bound & (choice != kept), BEYOND, own.steps[:, cells])
        chosen = queues.fifo(far, own.widths)
        assert (chosen == kept)[bound].all()
        waits = queues.waiting(far, chosen, own.widths)
        mine = np.take_along_axis(waits, chosen[None], axis=0)[0]
        assert (mine <= waits.min(axis=0)).all()


def possible(room, cells, rounds):
    """The largest number of people out by a round, by trying all joint moves of a tiny room."""
    inside, most = {(frozenset(cells.tolist()), 0)}, 0
    exits = set(room.exits.tolist())
    for _ in range(rounds):
        after = set()
        for people, out in inside:
            ways = [
                {int(room.neighbours[way, c]) for way in range(9) if room.enterable[way, c]}
                for c in people
            ]
            for moves in product(*ways):
                if len({*moves}) == len(moves):
                    stay = frozenset(c for c in moves if c not in exits)
                    after.add((stay, out + len(moves) - len(stay)))
        inside = after
        most = max(most, *(out for _, out in inside))
    return most


def test_the_largest_flow():
    """No joint moves bring out more than the flow over time, and some bring out as many."""
    rng = np.random.default_rng(3)
    drawing = "#####\n#...0\n#.#.#\n#...#\n##1##\n"
    room = layout_of(drawing)
    for _ in range(6):
        cells = rng.choice(np.flatnonzero(room.free), 3, False)
        for rounds in (1, 2, 3):
            assert queues.flow(room, cells, rounds) == possible(room, cells, rounds)


def test_bounds_are_bounds():
    """matching <= flow <= what rule players take; all three in the magnitude of the literature."""
    starts = rulebook(GAME, walker="greedy").reset(0, (3,)).cell.T
    matched = [queues.fewest_rounds(HALL, cells) for cells in starts]
    flown = [queues.fewest_by_flow(HALL, cells) for cells in starts]
    assert all(m <= f for m, f in zip(matched, flown, strict=True))
    for kind in ("fifo", "nearest"):
        took = escape_times.times(kind, 3, p_deliberate=0, players=100)
        assert (took >= flown).all()
    out = queues.matching(HALL, starts[0], 50)
    assert out.max() == matched[0]
    assert np.bincount(out).max() <= len(HALL.exits)


def test_the_plan_for_all():
    """Nobody's choice of exits brings all out earlier, by queues, than the plan for all."""
    rng = np.random.default_rng(4)
    room = layout_of(SMALL)
    own = theory.queues(room.along, "side")
    cells = np.flatnonzero(room.free)[rng.permutation(15)[:6]]
    far = own.steps[:, cells]
    best = np.inf
    for chosen in product(range(3), repeat=6):
        waits = queues.waiting(far, np.array(chosen), own.widths)
        best = min(best, waits[chosen, np.arange(6)].sum())
    planned = queues.assigned(far, own.widths, 20)
    waits = queues.waiting(far, planned, own.widths)
    assert waits[planned, np.arange(6)].sum() == best


# -- players ---------------------------------------------------------------------------------------

KINDS = ["rational", "cooperative", "nearest", "random_side", "keep", "distance_queue", "fifo",
         "wang", "wang:calm", "fixed:left", "random"]  # fmt: skip


@each_row("moves", ["sequential", "simultaneous"])
@each_row("kind", KINDS)
def test_players_play_by_the_rules(kind, moves):
    about = {"players": 8, "layout": SMALL, "max_rounds": 12, "moves": moves, "injury": "off"}
    played = play_rules(rulebook(GAME, **about), [kind] * 8, range(4))
    for seed in range(2):
        alone = lg.play(GAME, [lg.player(kind)] * 8, seed=seed, **about)
        assert not any(step.outcome.broke.any() for step in alone.steps)
        assert list(alone.payoffs) == pytest.approx(played.payoffs[:, seed].tolist())
    if not kind.startswith("random"):
        assert (played.payoffs > 0).mean() > 0.9  # they find the way


def test_names_of_players():
    game = rulebook(GAME, walker="greedy")
    for name, said in {"wang:angry": "wang needs panic or calm", "fixed:up": "bottom, left, right",
                       "fixed:2": "fixed:2 cannot be played"}.items():  # fmt: skip
        with pytest.raises(BadParameter, match=said):
            play_rules(game, [name] * 100, [0])


def final(kinds, seeds, **parameters):
    game = rulebook(GAME, **parameters)
    played = play_rules(game, kinds * game.players, seeds)
    for table, length in enumerate(played.lengths):
        own = [
            {name: np.asarray(value)[..., table] for name, value in record.items()}
            for record in played.records[:length]
        ]
        steps = stacked(own)
        yield game, steps, escape.evacuation(game, steps)


def test_wangs_magnitudes():
    """What the spec expects of the rule model with 100 people: 32 to 39 rounds, nobody lost."""
    about = {"target_choice": "cell", "p_deliberate": 1, "walker": "wang", "max_rounds": 60}
    for kind in ("wang", "wang:calm"):
        for _, _, found in final([kind], [1, 2, 3], **about):
            assert 28 <= found.evacuation_time <= 48
            assert found.casualty_rate == 0
            assert found.changes < 0.03


# -- ways around walls ---------------------------------------------------------------------------

TRAP = """
####0####
#.......#
#.#####.#
#.#...#.#
#.#...#.#
#.......#
#########
"""
INSIDE = [(3, 3), (3, 5), (4, 3), (4, 5)]


@each_row("moves", ["sequential", "simultaneous"])
@each_row("walker", ["player", "path", "greedy", "wang"])
@each_row("kind", ["rational", "nearest", "wang"])
def test_people_walk_around_a_wall(kind, walker, moves):
    about = {"layout": TRAP, "players": 4, "start": INSIDE, "walker": walker, "moves": moves}
    assert (out_in(kind, 0, **about) > 0).all()
    paper = about | {"distances": "straight", "announce_rules": False}
    assert (out_in(kind, 0, **paper) > 0).all() == (walker == "path")


def out_in(kind, seed, **about):
    game = rulebook(GAME, max_rounds=60, **about)
    played = play_rules(game, [kind] * game.players, [seed])
    return np.sum([record["escaped"] for record in played.records], axis=0).ravel()


def drawn_room(rng, size, share):
    while True:
        signs = np.where(rng.random((size, size)) < share, "#", ".")
        signs[[0, -1]] = signs[:, [0, -1]] = "#"
        border = [(r, c) for r, c in product(range(size), repeat=2)
                  if (r in (0, size - 1)) != (c in (0, size - 1))]  # fmt: skip
        for sign, place in enumerate(rng.permutation(len(border))[:3]):
            signs[border[place]] = str(sign)
        drawing = "\n".join("".join(row) for row in signs)
        with suppress(BadParameter):
            if Layout(drawing).along.detours:
                return drawing


ROOMS = [(size, share, seed) for seed in range(10) for size, share in ((14, 0.1), (16, 0.15))]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "share", "seed"), ROOMS)
def test_rational_people_leave_rooms_with_walls(size, share, seed):
    """All get out, in at most 1.3 times the rounds of the largest flow."""
    drawing = drawn_room(np.random.default_rng([size, seed]), size, share)
    about = {"layout": drawing, "players": 20}
    out = out_in("rational", seed, **about)
    assert (out > 0).all()
    game = rulebook(GAME, **about)
    fewest = queues.fewest_by_flow(game.room, game.reset(seed).cell)
    assert fewest <= out.max() <= 1.3 * fewest


def test_distances_along_ways():
    """They fall with each step of a shortest way; without walls they are the straight ones."""
    rng = np.random.default_rng(7)
    for size, share in ((9, 0.2), (12, 0.3)):
        room = Layout(drawn_room(rng, size, share))
        for exit_, cell in product(range(3), np.flatnonzero(room.free)):
            near = room.neighbours[room.enterable[:, cell], cell]
            closer = near[room.steps[exit_, near] < room.steps[exit_, cell]]
            assert (room.along.far[exit_, closer] < room.along.far[exit_, cell]).all()
            assert len(closer)
            assert room.along.far[exit_, cell] >= room.straight.far[exit_, cell]
    assert not HALL.along.detours
    for name in ("far", "rank", "nearest", "nearest_of", "mean"):
        assert (getattr(HALL.along, name) == getattr(HALL.straight, name)).all()


def test_what_is_told_of_walls():
    game = rulebook(GAME, layout=TRAP, players=1, start=[(3, 4)])
    state, _ = game.step(game.reset(0), np.array([0]))
    assert game.told(game.reset(0), 0)["seen"] == [
        {"name": "top", "distance": "8.00", "people": "0.00", "around": 5}
    ]
    target = game.told(state, 0)["target"]
    assert target["around"] == 5
    assert target["way"] in ("down-left", "down-right")
    assert game.room.steps[0, state.cell[0]] == 8
    paper = rulebook(GAME, layout=TRAP, players=1, start=[(3, 4)], distances="straight")
    assert paper.told(paper.reset(0), 0)["near"] == "3.00"
    assert paper.told(state, 0)["target"]["way"] == "up"


# -- judged ----------------------------------------------------------------------------------------

LATTICE = [(r, c) for r in range(3, 31, 3) for c in range(3, 31, 3)]


def lattice(**parameters):
    rows = [(i % 6 + 1, *((20, 15, 18, 15)[i % 4], (30, 28, 25, 23)[i % 4])) for i in range(100)]
    return {"start": LATTICE, "attributes": rows, "order": "id", "p_deliberate": 0,
            "walker": "greedy", **parameters}  # fmt: skip


def test_measures_of_a_known_run():
    """Example F of the spec: `nearest` decided once."""
    ((game, steps, found),) = final(["nearest"], [0], **lattice())
    assert found.evacuation_time == 36
    assert found.escaped.sum() == 1327
    assert np.bincount(found.exit).tolist() == [12, 16, 3, 9, 15, 10, 35]
    assert found.sides == {"bottom": 30, "left": 35, "right": 35}
    assert found.overtaken_rounds == 14
    assert found.escapes["all"][:9].tolist() == [0, 3, 7, 11, 14, 19, 25, 31, 36]
    assert found.escapes["all"][-1] == 100
    assert found.escapes["right"][-1] == found.escapes["exit 6"][-1] == 35
    assert (
        sum(found.escapes[k] for k in ("strong", "weak")).tolist() == found.escapes["all"].tolist()
    )
    assert not found.casualties["all"].any()
    assert math.isnan(found.changes)
    assert found.exit_balance == pytest.approx(0.998, abs=1e-3)
    assert escape.bounds(game, steps)["matching"] <= escape.bounds(game, steps)["flow"] <= 36
    regret = deviation(game, steps).regret
    assert regret.max() > 0.2  # the last at the narrow exit
    assert regret[:, 1:].sum() == 0  # nobody chose again
    judged = welfare(game, steps)
    assert judged.total == pytest.approx((51 * 100 - 1327) / 50)
    assert 0.8 < judged.efficiency < 1
    (rational,) = final(["rational"], [0], **lattice())
    assert deviation(rational[0], rational[1]).regret.max() == 0
    assert rational[2].evacuation_time < 36


def test_casualties_are_measured():
    """A person among stronger ones is overtaken, and lost when it was so too often."""
    block = [(r, c) for r in (9, 10, 11) for c in (9, 10, 11)]
    rows = [(3, 15, 99)] * 9
    rows[4] = (1, 15, 2)
    game = rulebook(GAME, players=9, start=block, attributes=rows, max_rounds=3, order="id",
                    moves="simultaneous")  # fmt: skip
    state, records = game.reset(0), []
    while not state.over:
        stay = np.where(state.phase == 0, 0, STAY) * np.ones(9, np.int64)
        state, outcome = game.step(state, stay)
        records.append(outcome.record)
    found = escape.evacuation(game, stacked(records))
    assert state.status[4] == CASUALTY
    assert found.lost.tolist() == [0] * 4 + [2] + [0] * 4
    assert found.overtaken[4] == 1
    assert found.casualties["all"].tolist() == [0, 1, 1]
    assert found.evacuation_time is None
    assert math.isnan(found.mean_escape_round)
    assert math.isnan(found.exit_balance)


def test_balance():
    assert escape.balance(np.array([5, 5, 5])) == pytest.approx(1)
    assert escape.balance(np.array([9, 0, 0])) == 0
    assert escape.balance(np.array([2, 2, 0])) == pytest.approx(math.log(2) / math.log(3))


# -- pictures --------------------------------------------------------------------------------------


def test_pixels():
    pytest.importorskip("PIL")
    env = lg.make(GAME, form="parallel", players=8, layout=SMALL, walker="greedy",
                  render_mode="rgb_array")  # fmt: skip
    env.reset(seed=1)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.shape == (480, 7 * 40 + 300, 3)
    game, state = env.game, env.table.state
    said = [(seat, f"I go on, as you see, number {seat}.") for seat in range(8)]
    spoken = game.image(state, said)
    assert spoken.shape == first.shape
    assert (spoken != first).any(axis=-1)[:, -300:].any()  # what is said stands beside the room
    assert (spoken != first).any(axis=-1)[:, :-300].any()  # and who speaks is marked
    env.step(dict.fromkeys(env.agents, 0))
    assert (env.render() != first).any()


@each_row("name", [GAME, "public_goods"])
def test_who_is_silent_is_not_in_a_picture(name):
    pytest.importorskip("PIL")
    rules = rulebook(name, players=4, talk={"turns": 1})
    state = rules.reset(1)
    said = [(seat, "I go on." * (seat == 2)) for seat in range(4)]
    assert (rules.image(state, said) == rules.image(state, [said[2]])).all()
    assert (rules.image(state, said[:2]) == rules.image(state)).all()
    assert (
        rules.image(state, said).shape != rules.image(state).shape
        or (rules.image(state, said) != rules.image(state)).any()
    )


def test_pixels_of_any_game():
    pytest.importorskip("PIL")
    env = lg.make(
        "public_goods", players=3, render_mode="rgb_array", talk={"turns": 1, "alphabet": 4}
    )
    env.reset(seed=1)
    silent = env.render()
    env.step({agent: env.action_space(agent).n - 1 for agent in env.agents})
    assert silent.dtype == env.render().dtype == np.uint8
    assert env.render().shape[0] > silent.shape[0]  # a message is below the table


def test_pictures_without_pillow(monkeypatch):
    monkeypatch.setattr("llm_games.pictures.find_spec", lambda name: None)
    env = lg.make("public_goods", render_mode="rgb_array")  # as libraries make it from an id
    env.reset(seed=1)
    with pytest.raises(PicturesExtraMissing, match=r"llm-games\[report\]"):
        env.render()


def test_a_moving_picture(llm_games, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    about = {"players": 8, "layout": SMALL, "walker": "greedy", "p_deliberate": 0}
    games = [
        {"label": "silent", "seats": ["nearest"]},
        {"label": "talk", "talk": {"turns": 1}, "seats": ["announcer:nearest"]},
    ]
    games = [{"game": GAME, "params": about, **own} for own in games]
    config = {"title": "t", "episodes": 1, "games": games}
    run = lg.run(config, db=tmp_path / "run.db")
    for label, kind in product(("silent", "talk"), ("gif", "webp")):
        out = tmp_path / f"{label}.{kind}"
        code, printed, _ = llm_games("animate", run.path, "--game", label, "-o", out)
        assert code == 0
        with Image.open(out) as image:
            assert image.n_frames >= 4  # rounds that one step plays are shown one by one
            assert f"{image.n_frames} pictures" in printed
    for wrong, said in (
        ("-o a.avi", "must end in .gif"),
        ("-o a.gif --speed 0", "speed must be"),
        ("-o a.gif --game x", "no game of this run 'x'"),
        ("-o a.gif --episode 1", "has 1 episodes"),
    ):
        code, _, printed = llm_games("animate", run.path, *wrong.split())
        assert code == 2
        assert said in printed


def test_rounds_of_a_step_are_shown():
    """A game in which nobody decides after round 1 is a single step; each of its rounds is seen."""
    game = rulebook(GAME, **lattice())
    before = game.reset(0)
    after, outcome = game.step(before, theory.chosen(game, HALL.straight.nearest[before.cell]))
    assert after.over
    states = [*game.passed(before, after, outcome.record)]
    assert [int(s.round) for s in states] == [*range(1, 37)]
    inside = [int(game.present(s).sum()) for s in states]
    assert inside[:9] == [100, 97, 93, 89, 86, 81, 75, 69, 64]
    moved = np.abs(np.subtract(*(HALL.row_column(c)[0] for c in (states[0].cell, states[0].came))))
    assert moved.max() == 1
    assert [len(STEPS), states[-1].over] == [9, True]
