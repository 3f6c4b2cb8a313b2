"""What carries over from a ghost to its model: the file, and the table that the docs have of it."""

from collections import Counter

from playing import each_row

from llm_games.benchmarks.studies import carried
from llm_games.benchmarks.studies.carried import FILE, GAMES, CarryResult, shown
from llm_games.benchmarks.studies.dated import read, write


def row(seed, player, ghost, against, payoff, game="beauty_contest"):
    return CarryResult(game, seed, player, ghost, against, payoff, 24, 100, "2026-01-01", "0", 1.5)


def made_up():
    """Two seeds: promised gains of 2 and 4, of which 1 and 2 are kept."""
    fixed, found = GAMES["beauty_contest"].fixed, []
    for seed, gain in ((1, 2.0), (2, 4.0)):
        found += [row(seed, "random", "", "model", 0.5), row(seed, fixed, "", "model", 1.0)]
        for which in ("first", "refitted", "control"):
            found.append(row(seed, fixed, which, "ghost", 3.0))
            found.append(row(seed, "learner", which, "ghost", 3.0 + gain))
            found.append(row(seed, "learner", which, "model", 1.0 + gain / 2))
    return found


def test_the_table_has_means_with_students_intervals_of_payoffs_and_gains():
    lines = shown(made_up()).splitlines()[2:]
    assert len(lines) == 5
    assert lines[1] == "| beauty_contest | `best_response` |  | 1.00 [1.00 to 1.00] |  |  |"
    # Two values one apart from their mean: t of one degree of freedom is 12.706.
    paid = "6.00 [-6.71 to 18.71] | 2.50 [-3.85 to 8.85]"
    gains = "3.00 [-9.71 to 15.71] | 1.50 [-4.85 to 7.85]"
    assert lines[2] == f"| beauty_contest | learner, first ghost | {paid} | {gains} |"


def test_rows_are_added_and_read_again_as_they_were(tmp_path):
    file, found = tmp_path / "rows.csv", made_up()
    assert read(CarryResult, file) == []
    write(found[:3], file)
    write([*read(CarryResult, file), *found[3:]], file)
    assert read(CarryResult, file) == found


@each_row("name", dict.fromkeys(row.game for row in read(CarryResult, FILE)))
def test_each_game_in_the_file_was_played_with_all_seeds(name):
    found = Counter(
        (r.seed, r.player, r.ghost, r.against) for r in read(CarryResult, FILE) if r.game == name
    )
    assert set(found.values()) == {1}
    assert len({seed for seed, *_ in found}) >= carried.SEEDS
    assert len(found) == len({seed for seed, *_ in found}) * (2 + 3 * 3)
