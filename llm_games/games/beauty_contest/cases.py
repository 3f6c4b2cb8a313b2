"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"players": 3, "domain": "real", "decimals": 2, "max": 1, "rounds": 4},
    {"prize_rule": "split", "rule_breaker": "include", "foul_fee": 1},
    {"preset": "econ_arena_L", "players": 3, "rounds": 3},
    {"players": 3, "rounds": 4, "max_draw": (2, 5), "reveal": ("all_choices",)},
    {"players": 4, "rounds": 3, "personas": "mixed"},
]
QUICK = {"players": 4, "rounds": 4}
FIXED = "100"
COARSE = lambda settings: {"players": 3, "max": 3} if "domain" not in settings else {}
TOLD = {
    "players": [7],
    "rounds": [3],
    "min": [11],
    "max": [77],
    "ratio": ["5/6"],
    "prize": [13],
    "foul_fee": [17],
    "domain": ["real"],
    "tie_rule": ["first_number"],
    "rule_breaker": ["include", "void_round"],
    "told_rational": [True],
    "bounds_check": ["none"],
    "reveal": [("all_choices",)],
    "prize_rule": ["split", "exclusive", "independent", "amplified"],
}
TOLD_FROM = [
    ({"domain": "real", "decimals": 2}, {"decimals": 4}),
    ({"max": 200}, {"bounds_check": "0_100"}),
    ({"prize_rule": "split"}, {"prize": 7}),
    ({"prize_rule": "exclusive"}, {"prize": 7}),
    ({"prize_rule": "amplified"}, {"prize": 7}),
]
TRUTHS = [
    {"domain": "real", "decimals": 2, "players": 3},
    {"max": 200, "players": 3},
    {"max": 200, "players": 3, "bounds_check": "0_100"},
]
PAID = [
    *(
        {"players": 4, "rounds": 6, "max": 5, "prize": "7/3", "prize_rule": rule}
        for rule in ("each_winner", "split", "exclusive", "independent", "amplified")
    ),
    {"players": 4, "max": 5, "foul_fee": "1/2", "tie_rule": "first_number"},
    {"players": 3, "rule_breaker": "void_round"},
]
ONES = [{"players": 2, "rounds": 1, "max": 1, "domain": "real", "decimals": 1}]
DRAWN = {
    "min": [0, 0, 0, 1, 5, -3, -7],
    "max": [1, 2, 5, 7, 10, 13],
    "domain": ["integer", "integer", "integer", "real"],
    "decimals": [0, 1],
    "ratio": ["0", "1/3", "1/2", "2/3", "0.99", "1", "1.01", "4/3", "2", "3", "5"],
    "prize": [1, "1/3", 10],
    "foul_fee": [0, "1/2", 3],
    "max_draw": [(2, 5), (3, 9)],
    "reveal": [(), ("all_choices",), ("mean", "own_result")],
}
TOO_LARGE = {"decimals", "max"}
BAD_PARAMETERS = [
    ({"min": 5, "max": 5}, "min must be less than max"),
    ({"max": "0.5"}, "whole number of units"),
    ({"domain": "real", "decimals": 1, "max": "0.25"}, "more decimals"),
    ({"ratio": 0.5}, "must be exact"),
    ({"ratio": -1}, "ratio"),
    ({"prize": 0}, "prize must be more than 0"),
    ({"foul_fee": -1}, "foul_fee"),
    ({"prize_rule": "all"}, "prize_rule"),
    ({"reveal": ("average",)}, "reveal"),
    ({"reveal_last": -1}, "reveal_last"),
    ({"reveal_last": "some"}, "reveal_last"),
    ({"decimals": 10}, "decimals"),
    ({"domain": "real", "decimals": 9, "max": 10**9}, "max=1000000000, domain=real: with"),
    ({"told_rational": "no"}, "told_rational"),
    ({"rounds": 0}, "rounds"),
    ({"players": 1}, "players"),
]
REPLY_KEY = "chosen_number"
REPLIES = [
    ({}, 33, 33),
    ({}, "33.0", 33),
    ({"number_parse": "truncate"}, True, 1),
    ({"domain": "real"}, "0.1", 100000),
    ({"domain": "real", "decimals": 1}, "0.25", 2),
    ({"domain": "real", "bounds_check": "none"}, "1000.5", 1000500000),
    ({"bounds_check": "none"}, -7, -7),
    ({"bounds_check": "0_100", "min": 50, "max": 300}, 20, 20),
    *(({}, text, "format") for text in ("33.5", True, None)),
    ({}, 101, ("range", 101)),
    ({"domain": "real", "max": 1, "decimals": 2}, "1.001", ("range", 101)),
    ({"bounds_check": "0_100", "min": 50, "max": 300}, 200, ("range", 200)),
]
