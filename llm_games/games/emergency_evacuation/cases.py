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
BAD_PARAMETERS = [
    ({"players": 65, "layout": "small"}, "at most 64"),
    ({"players": 962}, "at most 961"),
    ({"players": 698, "seats": True}, "at most 697"),
    ({"players": 2, "start": [(1, 1), (1, 1)]}, "one cell"),
    ({"players": 1, "start": [(0, 5)]}, "cannot start"),
    ({"players": 1, "start": [(40, 5)]}, "cannot start"),
    ({"players": 2, "start": [(1, 1)]}, "a cell of each"),
    ({"start": "nowhere"}, "start must be"),
    ({"start": "aisles"}, "seats is False"),
    ({"start": "aisles", "seats": True}, "264"),
    ({"shares": ("1/2", "1/2", "1/2", 0)}, "add up to 1"),
    ({"p_deliberate": 2}, "p_deliberate"),
    ({"attributes": "strong"}, "attributes must be"),
    ({"players": 2, "attributes": [(1, 2, 3)]}, "a row"),
    ({"view_radius": 0}, "view_radius"),
    ({"view_angle": 181}, "view_angle"),
    ({"walker": "fast"}, "walker"),
    ({"max_rounds": 0}, "max_rounds"),
    ({"layout": "###\n#.#\n###"}, "no exit"),
    ({"layout": ["###", "#.0", "###"]}, "one text"),
]
