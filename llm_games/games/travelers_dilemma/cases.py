"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"rounds": 5, "low": 80, "high": 200, "reward": "1/3"},
    {"continuation": "3/4", "high": 12},
]
QUICK = {"rounds": 4}
FIXED = "91"
COARSE = lambda settings: {"low": 2, "high": 6}
TOLD = {
    "rounds": [3],
    "continuation": ["2/3"],
    "low": [7],
    "high": [77],
    "reward": ["7/2", 13],
}
PAID = [{"reward": "7/3", "rounds": 4}]
ONES = [{"low": 0, "high": 1, "reward": 1}]
DRAWN = {
    "low": [0, 1, 2, 11],
    "high": [12, 13, 17, 20],
    "reward": ["0", "1/2", "1", "3/2", 2, 5, "7/3"],
}
TOO_LARGE = {"low", "high"}
KEPT = 2000
BAD_PARAMETERS = [
    ({"preset": "goeree_holt_10", "reward": 50}, "has reward=10, got 50: leave one of them out"),
    ({"players": 3}, "players must be an integer of at least 2 and at most 2"),
    ({"low": -1}, "low"),
    ({"low": 9, "high": 9}, "high must be above low, 9"),
    ({"reward": -1}, "reward must be a ratio of at least 0"),
    ({"high": 2**53, "rounds": 2}, "would count beyond"),
    ({"continuation": "3/4", "rounds": 72}, "rounds must be at least 73"),
]
REPLY_KEY = "claim"
REPLIES = [
    ({"high": 120}, 99, 99),
    ({}, "99.0", 99),
    ({}, 101, "range"),
    ({}, 1, "range"),
    ({}, "99.5", "format"),
    ({}, "the most", "format"),
]
