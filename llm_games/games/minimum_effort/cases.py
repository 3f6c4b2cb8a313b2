"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"players": 3, "rounds": 4, "reveal": "all", "cost": "1/3", "base": "-7/2"},
    {"players": 2, "continuation": "3/4", "low": 110, "high": 170, "benefit": 1, "cost": "1/4"},
]
QUICK = {"players": 3, "rounds": 4}
FIXED = "5"
COARSE = lambda settings: {"players": 2} if "low" in settings else {"players": 3, "high": 3}
TOLD = {
    "players": [7],
    "rounds": [3],
    "continuation": ["2/3"],
    "low": [3],
    "high": [33],
    "benefit": [21, "7/3"],
    "cost": [11, "1/3"],
    "base": [61],
    "reveal": ["all"],
}
PAID = [{"players": 3, "rounds": 3, "benefit": "7/3", "cost": "1/2", "base": "1/7"}]
ONES = [{"players": 2, "low": 0, "high": 1, "benefit": 1, "cost": 1, "base": 1, "rounds": 1}]
DRAWN = {
    "low": [0, 1, 2],
    "high": [3, 4, 7, 12],
    "benefit": ["1/2", 1, 3, 20],
    "cost": [0, "1/3", "1/2", 1, 2, 20, 30],
    "base": [0, -5, 60, "1/2"],
}
TOO_LARGE = {"low", "high"}
KEPT = 2000
BAD_PARAMETERS = [
    ({"preset": "goeree_holt_25", "cost": 1}, "has cost=1/4, got 1: leave one of them out"),
    ({"players": 1}, "players must be an integer of at least 2"),
    ({"players": 1001}, "players must be an integer of at least 2 and at most 1000"),
    ({"low": -1}, "low"),
    ({"low": 7}, "high must be above low, 7"),
    ({"benefit": 0}, "benefit must be above 0"),
    ({"cost": -1}, "cost must be a ratio of at least 0"),
    ({"base": "much"}, "base must be a finite number"),
    ({"reveal": "nothing"}, "reveal"),
    ({"high": 2**50}, "would count beyond"),
    ({"continuation": "3/4", "rounds": 72}, "rounds must be at least 73"),
]
REPLY_KEY = "effort"
REPLIES = [
    ({"high": 9}, 9, 9),
    ({}, "3.0", 3),
    ({}, 8, "range"),
    ({}, 0, "range"),
    ({}, "3.5", "format"),
    ({}, "high", "format"),
]
ALIKE = [({"players": 3}, [5, 2, 6], [5, 7, 2])]
