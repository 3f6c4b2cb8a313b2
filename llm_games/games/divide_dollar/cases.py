"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [{"players": 3, "golds": 7, "bid_range": "unbounded"}]
QUICK = {"players": 3, "rounds": 4}
FIXED = "91"
COARSE = {"players": 3, "golds": 3}
TOLD = {"players": [7], "rounds": [3], "golds": [77]}
ONES = [{"players": 2, "rounds": 1, "golds": 1}]
DRAWN = {"golds": [1, 2, 3, 5, 7, 10, 12, 17, 20]}
TOO_LARGE = {"golds"}
BAD_PARAMETERS = [
    ({"golds": 0}, "golds"),
    ({"golds": 2.5}, "golds"),
    ({"bid_range": "any"}, "bid_range"),
    ({"number_parse": "loose"}, "number_parse"),
    ({"failed_reply": "skip"}, "failed_reply"),
    ({"rounds": 0}, "rounds"),
]
REPLY_KEY = "bid_amount"
REPLIES = [
    ({}, 33, 33),
    ({}, "33.0", 33),
    ({"number_parse": "truncate", "bid_range": "unbounded"}, "-33.9", -33),
    ({"bid_range": "unbounded"}, 187, 187),
    ({}, "33.5", "format"),
    ({}, 187, "range"),
    ({}, -5, "range"),
]
