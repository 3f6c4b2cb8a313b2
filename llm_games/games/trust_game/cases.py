"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"rounds": 4, "roles": "alternate", "endowment": (3, 5)},
    {"endowment": (100, 0), "multiplier": 10},
    {"continuation": "3/4"},
]
QUICK = {"rounds": 3, "endowment": (4, 2)}
FIXED = "1,1/2"
COARSE = {"endowment": (2, 1), "multiplier": 2}
TOLD = {
    "rounds": [3],
    "continuation": ["2/3"],
    "endowment": [(77, 10), (10, 77), 33],
    "multiplier": [7],
    "roles": ["alternate"],
}
TRUTHS = [{"rounds": 2}]
ONES = [{"endowment": 1, "multiplier": 1}, {"endowment": 1, "rounds": 2, "roles": "alternate"}]
DRAWN = {
    "endowment": [1, 2, (3, 0), (4, 7)],
    "multiplier": [1, 2, 3],
    "rounds": [1, 2, 3],
}
KEPT = 2000
BAD_PARAMETERS = [
    ({"players": 3}, "players must be an integer of at least 2 and at most 2"),
    ({"endowment": 0}, "endowment must begin with at least 1"),
    ({"endowment": (10, -1)}, "each endowment must be an integer of at least 0"),
    ({"endowment": (1, 2, 3)}, "endowment must be one for all or 2"),
    ({"multiplier": 0}, "multiplier must be"),
    ({"multiplier": 11}, "multiplier must be"),
    ({"multiplier": "3/2"}, "multiplier must be"),
    ({"roles": "drawn"}, "roles must be one of"),
    ({"endowment": 2**52}, "would count beyond"),
    ({"continuation": "3/4", "rounds": 72}, "rounds must be at least 73"),
]
REPLY_KEY = "sent"
REPLIES: list[tuple[dict[str, int], object, object]] = [
    ({}, 5, 5),
    ({}, "5", 5),
    ({}, 11, "range"),
    ({}, -1, "range"),
    ({}, "2.5", "format"),
    ({}, "all", "format"),
]
