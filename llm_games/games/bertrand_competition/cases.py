"""What tests play of this game, see ``tests/playing.py``."""

SMALL = {"rounds": 8, "window": 3, "history": True}
SETTINGS = [
    {
        "players": 3,
        "rounds": 5,
        "window": 2,
        "history": True,
        "first_round": "free",
        "cost": (1, 2, 3),
        "tick": "1/4",
        "price_grid": (2, 5, 8),
        "personas": "explorer",
    }
]
QUICK = {"rounds": 5, "window": 3}
FIXED = "7.5"
COARSE = {"a": 3, "cost": 1, "tick": 1, "window": 6, "price_grid": None}
TOLD = {"players": [7], "a": [17], "cost": [3], "tick": ["1/8"]}
TRUTHS = [{"rounds": 6, "window": 2, "history": True, "switch_round": 2}]
ONES = [{"a": 1, "cost": 0, "window": 1, "rounds": 4}]
DRAWN = {
    "players": [2, 2, 3],
    "rounds": [2, 3],
    "a": [6, 10, 14],
    "beta": ["1/150", "1/3", 1, 2],
    "d": ["0", "1/300", "1/150", "1/4", "1/3", 1, "-1/300"],
    "cost": [0, 1, 2, "5/2", lambda rng, n: tuple(rng.integers(0, 6, n).tolist())],
    "tick": [1, "1/2"],
    "initial_price": [0, 3, 5],
    "window": [1, 3],
    "demand": ["linear", "linear", "linear", "logit"],
    "quality": [0, 2, 5],
    "outside": [-2, 0, 3],
    "mu": ["1/4", 1, 3],
}
TOO_LARGE = {"a", "players", "rounds", "tick"}
BAD_PARAMETERS = [
    ({"cost": 14}, "cost must be below a"),
    ({"cost": (1, 2, 3)}, "cost must be one for all or 2"),
    ({"cost": -1}, "at least 0"),
    ({"a": "27/2", "cost": "134/10", "tick": 1}, "tick must leave a price from cost"),
    ({"d": "1/100"}, "d must be from 0 to beta"),
    ({"beta": 0}, "beta and mu must be above 0"),
    ({"tick": "2/3"}, "tick must be 1/k"),
    ({"initial_price": 15}, "initial_price must be from 0 to a"),
    ({"personas": "kind"}, "personas must be one of"),
    ({"switch_round": 1}, "switch_round must be an integer of at least 2"),
    ({"price_grid": (7, 6)}, "price_grid must be at least two prices"),
    ({"price_grid": (7, 15)}, "price_grid must be from 0 to a"),
    (
        {"a": 10**9, "beta": "1/999999937", "d": 0},
        "with these bertrand_competition would count beyond",
    ),
]
