"""What tests play of this game, see ``tests/playing.py``."""

from fractions import Fraction

SETTINGS = [{"players": 7, "rounds": 4}]
QUICK = {"players": 3, "rounds": 5}
FIXED = "costly"
COARSE = {"players": 4}
TOLD = {
    "players": [7],
    "rounds": [3],
    "cheap_price": [11],
    "cheap_utility": [14],
    "costly_price": [21],
    "costly_utility": [21],
}
PAID = [{"players": 3, "cheap_price": "1/3"}]
ONES = [{"players": 2, "cheap_price": 1, "cheap_utility": 1, "costly_utility": 2}]
HALVES = [Fraction(n, 2) for n in range(-6, 12)]
DRAWN = {f"{dish}_{of}": HALVES for dish in ("cheap", "costly") for of in ("price", "utility")}
BAD_PARAMETERS = [
    ({"costly_price": 10}, "costly_price must be more than cheap_price"),
    ({"costly_utility": 15}, "costly_utility must be more than cheap_utility"),
    ({"cheap_price": "free"}, "cheap_price must be a finite number"),
    ({"costly_price": 10**19}, "costly_price must be a ratio of integers of at most"),
    ({"unknown_dish": "cheap"}, "unknown_dish"),
    ({"rounds": 0}, "rounds"),
]
REPLY_KEY = "chosen_dish"
REPLIES = [
    *(({"unknown_dish": "rule_break"}, word, "format") for word in ("cheap_dish", 0)),
    ({"unknown_dish": "rule_break"}, " Cheap ", 0),
    ({"unknown_dish": "rule_break"}, "COSTLY", 1),
    *(({"unknown_dish": "costly"}, word, 0) for word in ("CHEAP", "cheap")),
    *(({"unknown_dish": "costly"}, word, 1) for word in (" cheap", "cheap_dish", "cheaper")),
    ({"unknown_dish": "costly"}, "costly_or_cheap", 1),
    ({"unknown_dish": "costly"}, 0, "format"),
]
