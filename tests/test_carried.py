"""What carries over from a ghost to its model: the file, and the table that the docs have of it."""

from collections import Counter

from llm_games.benchmarks.studies.carried import FILE, GAMES, SEEDS, CarryResult, shown
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


def test_rows_are_read_again_as_they_were_and_each_game_was_played_with_all_seeds(tmp_path):
    file, found = tmp_path / "rows.csv", made_up()
    assert read(CarryResult, file) == []
    write(found, file)
    assert read(CarryResult, file) == found
    rows = read(CarryResult, FILE)
    assert set(Counter(row[:5] for row in rows).values()) == {1}
    for name in {row.game for row in rows}:
        seeds = {row.seed for row in rows if row.game == name}
        assert len(seeds) >= SEEDS
        assert sum(row.game == name for row in rows) == len(seeds) * (2 + 3 * 3)
