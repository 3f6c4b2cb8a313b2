"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"price": "second", "players": 4, "valuation_draw": "random"},
    {"bid_range": "unbounded", "players": 3, "rounds": 3},
]
QUICK = {"players": 3, "rounds": 4}
FIXED = "120"
COARSE = {"players": 3}
TOLD = {"players": [7], "rounds": [3], "price": ["second"]}
TRUTHS = [{"players": 3, "tell_prior": True, "rounds": 2}]
PAID = [{"players": 3, "price": "second", "bid_range": "unbounded"}]
ONES = [{"players": 2, "rounds": 1, "valuation_max": 1, "interval": 1}]
DRAWN = {
    "players": [2, 2, 2, 3],
    "rounds": [1, 1, 2],
    "valuation_min": [0, 0, 1, 4],
    "valuation_max": [1, 2, 3, 5, 8, 12],
    "interval": [1, 1, 2, 3],
    "valuations": [None, lambda rng, n: (tuple(rng.integers(1, 6, n).tolist()),)],
}
TOO_LARGE = {"interval", "valuation_max", "valuation_min"}
BAD_PARAMETERS = [
    ({"price": "third"}, "price must be one of 'first', 'second', got 'third'"),
    ({"valuation_min": -1}, "valuation_min must be"),
    ({"valuation_min": 200}, "valuation_max must be an integer of at least 201"),
    ({"interval": 7}, "interval must divide"),
    ({"interval": 50}, "at least 9 steps"),
    ({"interval": 0}, "interval must be"),
    ({"seed": "42"}, "seed must be"),
    ({"bid_range": "any"}, "bid_range must be"),
    ({"tie_rng": "theirs"}, "tie_rng must be"),
    ({"valuation_draw": "fixed"}, "valuation_draw must be"),
    ({"number_parse": "loose"}, "number_parse must be"),
    ({"valuations": [[1, 2]]}, "valuations must be 20 rows"),
    ({"valuations": [[1] * 9] * 20}, "valuations must be 20 rows"),
    ({"valuations": 5}, "valuations must be 20 rows"),
    ({"valuations": [[201] * 10] * 20}, "valuations must be an integer"),
    ({"valuation_draw": "random", "tie_rng": "shared"}, "needs seeded valuations"),
]
