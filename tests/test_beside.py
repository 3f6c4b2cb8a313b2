"""Two runs side by side: their episodes from the same seed, and both in one figure."""

import pytest

import llm_games as lg
from llm_games.benchmarks.judge.beside import moves, pairs, parted
from llm_games.benchmarks.judge.compare import compare
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games, read

GOODS = {"game": "public_goods", "params": {"players": 3, "rounds": 4}}
AUCTION = {"game": "english_auction", "params": {"players": 3}}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beside")

    def play(name, first, seed=7):
        bidder = "cooperative" if name == "b" else "random"
        games = (GOODS, first), (AUCTION, bidder)
        played = [game | {"seats": [who, "random", "random"]} for game, who in games]
        raw = {"title": name, "seed": seed, "order": "fixed", "episodes": 2, "games": played}
        return lg.run(raw, db=str(folder / f"{name}.db")).path

    return {
        "a": play("a", "fixed:3"),
        "again": play("again", "fixed:3"),
        "b": play("b", "fixed:5"),
        "seed": play("seed", "fixed:3", seed=8),
    }


def opened(recorded, *names):
    return [Records.open_readonly(recorded[name]) for name in names]


def test_both_sides_are_what_the_files_say(recorded):
    one, other = opened(recorded, "a", "b")
    with one, other:
        found = list(pairs(one, other))
        labels = [(pair.label, pair.number) for pair in found]
        assert labels == [(g, n) for g in ("public_goods", "english_auction") for n in (0, 1)]
        for pair in found:
            both = list(moves(pair))
            assert [move.number for move in both] == [*range(1, len(both) + 1)]
            assert len(both) == max(len(pair.a.steps), len(pair.b.steps))
            for name, episode in (("a", pair.a), ("b", pair.b)):
                regret = episode.regret()
                shown = [
                    (did.step, seat.seat, did.action, did.outcome, did.reward)
                    for move in both
                    for seat in move.seats
                    if (did := getattr(seat, name))
                ]
                rows = episode.decisions()
                assert shown == [(r.step, r.seat, r.action, r.outcome, r.reward) for r in rows]
                lost = [
                    (did.regret, regret[seat.seat, move.number - 1])
                    for move in both
                    for seat in move.seats
                    if (did := getattr(seat, name)) and did.regret is not None
                ]
                assert lost
                assert all(mine == theirs for mine, theirs in lost)


def test_sides_part_where_the_first_seat_moves_otherwise(recorded):
    one, other = opened(recorded, "a", "b")
    with one, other:
        goods = [pair for pair in pairs(one, other) if pair.label == "public_goods"]
        for pair in goods:
            first, *later = moves(pair)
            assert [seat.differs for seat in first.seats] == [True, False, False]
            assert (first.seats[0].a.action, first.seats[0].b.action) == (3, 5)
            assert first.together
            assert not any(move.together for move in later)
            assert parted(pair).number == 1


def test_the_same_run_never_parts(recorded):
    one, other = opened(recorded, "a", "again")
    with one, other:
        found = list(pairs(one, other))
        assert len(found) == 4
        assert all(parted(pair) is None for pair in found)
        assert all(move.together for pair in found for move in moves(pair))


def test_an_episode_that_is_longer_stands_alone(recorded):
    one, other = opened(recorded, "a", "b")
    with one, other:
        auctions = [pair for pair in pairs(one, other) if pair.label == "english_auction"]
        lengths = [(len(pair.a.steps), len(pair.b.steps)) for pair in auctions]
        assert any(mine != theirs for mine, theirs in lengths)
        for pair, (mine, theirs) in zip(auctions, lengths, strict=True):
            short = min(mine, theirs)
            for move in list(moves(pair))[short:]:
                assert all((seat.a is None) != (seat.b is None) for seat in move.seats)
                assert move.differs


def test_other_chance_has_no_pairs(recorded):
    one, other = opened(recorded, "a", "seed")
    with one, other:
        assert list(pairs(one, other)) == []
        assert all(len(game.rows) == 2 for game in games(other))


# -- in one figure ---------------------------------------------------------------------------------


@pytest.fixture
def lines(recorded):
    matplotlib = pytest.importorskip("matplotlib.figure")
    from llm_games.benchmarks.show.page.runs_compared import sketches

    one, other = opened(recorded, "a", "b")
    with one, other:
        found = compare(one, other, "corrected")
        runs, drawn = {"A": read(one, "corrected"), "B": read(other, "corrected")}, {}
        for sketch in sketches(runs, [found]):
            axes = matplotlib.Figure().add_subplot()
            sentence = sketch.draw(axes)
            named = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
            drawn[sketch.title] = sentence, named
    return found, drawn


def test_both_runs_are_in_one_figure_of_each_game(lines):
    found, drawn = lines
    for game in found.games:
        sentence, named = drawn[f"{game.label}, A and B by round"]
        assert "Payoff of place 0 so far, over the 2 pairs of episodes" in sentence
        assert named["A"][-1] == pytest.approx(game.payoffs.a)
        assert named["B"][-1] == pytest.approx(game.payoffs.b)
        assert len(named["A"]) >= 4


def test_differences_of_all_games_are_in_one_figure(lines):
    found, drawn = lines
    _, named = drawn["Score, B − A"]
    [game] = [game for game in found.games if game.scores]
    assert any(list(y) == [0] for y in named.values())  # its row, the first
    assert game.label == "public_goods"


def test_what_a_paper_judges_by_is_compared_too(recorded):
    one, other = opened(recorded, "a", "b")
    with one, other:
        found = {game.label: game for game in compare(one, other).games}
        auction, goods = found["english_auction"], found["public_goods"]
        assert goods.measures is None
        [mine], [theirs] = (
            [g for g in games(f) if g.name == "english_auction"] for f in (one, other)
        )
        values = [[auction.measure.of(e) for e in side.done] for side in (mine, theirs)]
        assert auction.measures.pairs == 2
        assert auction.measures.a == pytest.approx(sum(values[0]) / 2)
        assert auction.measures.b == pytest.approx(sum(values[1]) / 2)
        assert auction.plain()["measure"] == {"name": "failed bids", "better": "lower"}
        words = [row[1] for row in compare(one, other).grid().rows]
        assert words == ["score", "payoff", "failed bids", "payoff"]
