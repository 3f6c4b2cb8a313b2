"""What tests play of this game, see ``tests/playing.py``."""

from fractions import Fraction

SETTINGS = [
    {"mode": "explicit", "players": 4, "ratio": "1/2"},
    {"implicit_report": "no_count", "players": 5},
]
QUICK = {"players": 4, "rounds": 5}
FIXED = "go"
COARSE = {"players": 4}
TOLD = {
    "players": [7],
    "rounds": [3],
    "ratio": ["1/4"],
    "min": [-3],
    "home": [6],
    "max": [12],
    "mode": ["explicit"],
    "implicit_report": ["no_count"],
}
TRUTHS = [{"ratio": "2/3", "players": 3, "home": 1, "max": 2, "min": -1}]
PAID = [{"players": 4, "home": "1/3", "max": "2/3", "min": "-1/3"}]
ONES = [{"players": 2, "rounds": 1, "home": 1, "max": 1, "mode": "explicit"}]
HALVES = [Fraction(n, 2) for n in range(-6, 12)]
DRAWN = {
    "ratio": ["0", "1/4", "1/3", "0.33", "1/2", "3/5", "2/3", "3/4", "1"],
    "min": HALVES,
    "home": HALVES,
    "max": HALVES,
}
BAD_PARAMETERS = [
    ({"ratio": 1 - 0.8}, "must be exact"),
    ({"ratio": "6/5"}, "at most 1"),
    ({"min": 6}, "min <= home <= max"),
    ({"home": 11}, "min <= home <= max"),
    ({"max": float("nan")}, "max must be a finite number"),
    ({"mode": "open"}, "mode"),
    ({"implicit_report": "all"}, "implicit_report"),
    ({"capacity_test": "double"}, "capacity_test"),
    ({"rounds": 0}, "rounds"),
]
REPLY_KEY = "decision"
REPLIES: list[tuple[dict[str, str], object, int | str]] = [
    *(({}, word, action) for word, action in (("go", 1), (" Stay ", 0), ("GO", 1))),
    *(({}, word, "format") for word in ("going", True, 1, None)),
]
