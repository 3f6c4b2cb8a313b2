"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {
        "players": 3,
        "items": "items_5",
        "item_order": "shuffled",
        "budgets": (2500, 1300, 900),
        "discount": 50,
        "skip_broke": True,
        "tie_rule": "authors",
    },
    {"preset": "econ_arena_english_L", "players": 3, "first_bidder": "random"},
    {
        "players": 1,
        "items": (("Lamp", 3, 7), ("Chair", 0, 4)),
        "bidding": "cyclic",
        "reveal_value": "never",
    },
    {"players": 2, "objective": ("items", "profit"), "terse_rules": True},
]
QUICK = {"items": "items_3", "players": 3}
FIXED = "1500"
COARSE = {"items": (("Lamp", 1, 4), ("Chair", 2, 5)), "budgets": 4, "value_mean": 3, "value_sd": 1}
TOLD = {
    "players": [7],
    "items": ["items_5"],
    "increment_pct": [7],
    "increment_min": [3],
    "discount": [35],
    "values": ["private"],
    "bidding": ["cyclic"],
    "reveal_value": ["never"],
    "skip_broke": [True],
    "terse_rules": [True],
    "tie_rule": ["authors", "lowest_index"],
}
TOLD_FROM = [
    ({"discount": 35}, {"max_discounts": 6}),
    ({"tie_rule": "authors"}, {"tie_rule": "lowest_index"}),
    ({"terse_rules": True}, {"bidding": "cyclic"}),
]
TRUTHS = [
    {"players": 2, "items": "items_2", "discount": 35},
    {"players": 2, "items": "items_2", "values": "private", "budgets": 100, "tell_prior": True},
]
PAID = [{"players": 3, "items": "items_4", "objective": ("items", "profit", "items")}]
ONES = [
    {"players": 1, "items": (("A", 1, 1),), "budgets": 3, "discount": 1},
    {"players": 2, "items": (("A", 1, 1), ("B", 1, 1)), "budgets": 3},
]
DRAWN = {
    "players": [1, *[2] * 7, 3],
    "items": [(("Lamp", start, 0),) for start in (0, 0, 1, 5, 10)],
    "budgets": [12, 12, 13, lambda rng, n: tuple(rng.integers(11, 15, n).tolist())],
    "values": [*["private"] * 7, "common"],
    "value_mean": [1, 5, 6, 8],
    "value_sd": [0, 2, 3, 3, 4, 5],
    "private_values": [
        *[None] * 4,
        lambda rng, n: tuple((int(v),) for v in rng.integers(0, 15, n)),
    ],
    "increment_min": [1, 1, 1, 1, 2, 3],
    "increment_pct": [0, 0, 10],
    "discount": [None, None, 10, 50],
    "max_discounts": [0, 1, 2],
}
TOO_LARGE = {"budgets", "increment_pct", "items", "value_mean", "value_sd", "values"}
BAD_PARAMETERS = [
    ({"players": 0}, "players must be an integer of at least 1"),
    ({"items": "items_27"}, "set of items"),
    ({"items": ()}, "items must be a set"),
    ({"items": (("A", 1),)}, "items must be a set"),
    ({"items": (("A", -1, 3),)}, "start price of A must be an integer of at least 0"),
    ({"items": (("A", 1, 3), ("A", 1, 3))}, "different names"),
    ({"item_order": "mixed"}, "item_order"),
    ({"item_order": ["Widget A"]}, "names of all 10 items"),
    ({"budgets": (1, 2)}, "budgets must be one for all or 4"),
    ({"budgets": -1}, "each of the budgets"),
    ({"overestimate_pct": 101}, "overestimate_pct"),
    ({"objective": "fame"}, "objective must be one of 'profit', 'items'"),
    ({"increment_pct": 101}, "increment_pct"),
    ({"increment_min": 0}, "increment_min"),
    ({"bidding": "dutch"}, "bidding must be one of 'rounds', 'cyclic'"),
    ({"first_bidder": 4}, "first_bidder"),
    ({"discount": 100}, "discount"),
    ({"max_discounts": -1}, "max_discounts"),
    ({"max_reasks": -1}, "max_reasks"),
    ({"values": "private", "value_mean": 20000}, "value_mean"),
    ({"values": "private", "value_sd": 60}, "value_sd"),
    ({"values": "private", "private_values": ((1,),)}, "4 rows"),
]
