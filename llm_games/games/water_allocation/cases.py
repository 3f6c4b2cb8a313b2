"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"over_budget": "rule_break", "no_bid": "zero", "hp_start": 2},
    {"players": 3, "money_decimals": 2, "persona": "default", "days": 6},
]
QUICK = {"players": 3, "days": 4, "hp_start": 3}
FIXED = "60"
COARSE = {
    "players": 2,
    "residents": (("A", 1, 1), ("B", 2, 2)),
    "supply_high": 2,
    "supply_low": 1,
    "hp_start": 2,
    "hp_max": 3,
    "days": 4,
    "money_decimals": 0,
}
TOLD = {
    "players": [3],
    "days": [33],
    "supply_low": [13],
    "supply_high": [33],
    "hp_start": [9],
    "hp_max": [17],
    "hp_gain": [4],
    "balance_start": [17],
    "persona": ["default"],
    "allocation": ["stop"],
    "over_budget": ["clip", "rule_break"],
    "no_bid": ["zero"],
    "tie_rule": ["index"],
    "residents": [(("R0", 5, 80), ("R1", 6, 80), ("R2", 7, 80), ("R3", 8, 80), ("R4", 9, 80))],
}
TOLD_FROM = [
    ({"supply_high": 34, "supply_upper_inclusive": False}, {"supply_upper_inclusive": True})
]
TRUTHS = [{"supply_high": 34, "supply_upper_inclusive": False}]
ONES = [
    {"players": 1, "residents": (("Z", 1, 1),), "days": 1, "supply_low": 1},
    {"players": 2, "hp_start": 1, "hp_max": 1, "hp_gain": 1, "supply_high": 10},
]
DRAWN = {
    "players": [1, 2, 2, 3],
    "days": [1, 2, 3],
    "residents": [
        lambda rng, n: tuple(
            (name, int(rng.integers(1, 5)), int(rng.integers(0, 4)))
            for name in ("Ann", "Bob", "Cat", "Dan")[:n]
        )
    ],
    "supply_low": [0, 2, 4, 8],
    "supply_high": [2, 3, 5, 9],
    "hp_start": [1, 2, 3, 4, 5],
    "hp_max": [3, 5, 10],
    "hp_gain": [0, 1, 2],
    "balance_start": [0, 1, 3],
    "money_decimals": [0],
}
TOO_LARGE = {"days", "hp_start", "residents", "supply_high", "supply_low"}
BAD_PARAMETERS = [
    ({"players": 6}, "players must be an integer from 1 to 5 unless residents"),
    ({"players": 0}, "players must be an integer of at least 1"),
    ({"residents": [("A", 8, 70)]}, "residents must be 5 rows"),
    ({"residents": [("A", 8)] * 5}, "residents must be 5 rows"),
    ({"residents": [("A", 8, 70)] * 5}, "different names"),
    ({"players": 1, "residents": [("A", 0, 70)]}, "the requirement of A must be an integer"),
    ({"players": 1, "residents": [("A", 1, -1)]}, "the salary of A must be an integer"),
    ({"players": 1, "residents": [("", 1, 1)]}, "the name of a resident"),
    ({"supplies": [10] * 19}, "supplies must be 20 integers"),
    ({"days": 1, "supplies": [-1]}, "each of the supplies must be an integer of at least 0"),
    ({"supply_low": 30}, "supply_high must be an integer of at least 30"),
    ({"hp_start": 11}, "hp_start must be an integer of at least 1 and at most 10"),
    ({"money_decimals": 5}, "money_decimals must be an integer of at least 0 and at most 4"),
    ({"persona": "shy"}, "persona must be one of 'none', 'default'"),
    ({"persona": [("a", "b", "c")]}, "persona must be 5 rows"),
    ({"players": 6, "residents": [(n, 1, 1) for n in "ABCDEF"], "persona": "default"},
     "persona 'default' has 5 rows for 6 players"),
    *(({name: "other"}, f"{name} must be one of") for name in (
        "allocation", "over_budget", "no_bid", "tie_rule", "shown_dry_counter",
        "supply_upper_inclusive", "reset_balance_on_death", "failed_reply")),
    *(({name: -1}, f"{name} must be an integer of at least") for name in (
        "days", "supply_low", "hp_max", "hp_gain", "balance_start", "money_decimals")),
]  # fmt: skip
