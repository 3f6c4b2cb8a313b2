"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [{"rounds": 5, "high": 14, "bonus": 3}, {"continuation": "3/4"}]
QUICK = {"rounds": 4}
FIXED = "17"
COARSE = lambda settings: {"high": 14}
TOLD = {"rounds": [3], "continuation": ["2/3"], "low": [7], "high": [33], "bonus": [13]}
ONES = [{"low": 0, "high": 1, "bonus": 1}]
DRAWN = {"low": [0, 1, 2, 11], "high": [12, 13, 17, 20], "bonus": [0, 1, 2, 5, 20, 50]}
TOO_LARGE = {"low", "high", "bonus"}
KEPT = 2000
BAD_PARAMETERS = [
    ({"players": 3}, "players must be an integer of at least 2 and at most 2"),
    ({"low": -1}, "low"),
    ({"low": 20}, "high must be above low, 20"),
    ({"bonus": "1/2"}, "bonus must be an integer"),
    ({"high": 2**53}, "would count beyond"),
    ({"continuation": "3/4", "rounds": 72}, "rounds must be at least 73"),
]
REPLY_KEY = "request"
REPLIES = [
    ({"high": 30}, 27, 27),
    ({}, "17.0", 17),
    ({}, 21, "range"),
    ({}, 10, "range"),
    ({}, "17.5", "format"),
    ({}, "all", "format"),
]
