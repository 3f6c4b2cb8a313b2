"""What tests play of this game, see ``tests/playing.py``."""

SMALL = {"layout": "small", "players": 4, "max_rounds": 2}
ROOM = {"layout": "small", "players": 6, "max_rounds": 5, "p_deliberate": "1/2"}
SETTINGS = [
    ROOM | {"moves": "simultaneous", "uncooperative": True},
    ROOM | {"walker": "wang", "target_choice": "cell", "stages": "one"},
]
QUICK = {"layout": "small", "players": 4, "max_rounds": 3}
FIXED = "left"
COARSE = {"players": 3, "max_rounds": 3}
SURE = {"layout": "small", "players": 8, "p_deliberate": 1}
WALLS = SURE | {  # a U of walls inside, and seats
    "layout": "####0####\n#.......1\n#.#####.#\n#.#...#.#\n#.......#\n#.oo.oo.#\n#########"
}
TRUTHS = [
    SURE | {"max_rounds": 3, "shares": (0, 1, 0, 0)},
    SURE | {"walker": "greedy", "personas": "none"},
    WALLS | {"max_rounds": 3},
    WALLS | {"seats": True, "distances": "straight"},
    WALLS | {"walker": "greedy", "announce_rules": False},
]
ONES = [{"layout": "small", "players": 9, "max_rounds": 1}]
DRAWN = {"layout": ["small"], "players": [1, 2, 4], "max_rounds": [2, 3]}
TOO_LARGE = {"layout", "max_rounds", "players"}
