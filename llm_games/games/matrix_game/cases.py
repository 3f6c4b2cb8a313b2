"""What tests play of this game, see ``tests/playing.py``."""

CYCLE = ((0, -1, 1), (1, 0, -1), (-1, 1, 0))
THREE = (  # three players, of whom the second has three actions
    (((1, 2, 3), (0, 0, "1/2")), ((4, 1, 1), (2, 2, 2)), ((0, 5, 1), (3, 3, 0))),
    (((2, 2, 1), (1, 0, 3)), ((0, 1, 4), (5, 2, 2)), ((1, 1, 1), (0, 4, 2))),
)
SETTINGS = [
    {"players": 3, "payoffs": THREE, "rounds": 3, "history": 2, "labels": "drawn"},
    {"continuation": "3/4", "noise": "1/4", "reveal": "payoff"},
    {"payoffs": CYCLE, "rounds": 4, "noise": "1/4", "noise_kind": "observation", "order": "drawn"},
    {"players": 8, "by_count": ((2,) * 8, (0, *(4,) * 7)), "rounds": 3},
    {"ordinal": 17, "rounds": 3, "reveal": "nothing", "order": "reversed", "called": "The Game"},
]
QUICK = {"rounds": 4}
FIXED = "B"
TOLD = {
    "rounds": [3],
    "continuation": ["2/3"],
    "payoffs": [((6, 0), (7, 1)), CYCLE],
    "by_count": [((7, 7), (0, 8))],
    "labels": [("up", "down"), "drawn"],
    "order": ["reversed", "drawn"],
    "noise": ["1/8"],
    "called": ["Community Game"],
}
TOLD_FROM = [
    ({"rounds": 3}, {"history": 2}),
    ({"rounds": 3}, {"reveal": "payoff"}),
    ({"rounds": 3}, {"reveal": "nothing"}),
    ({"rounds": 3, "noise": "1/8"}, {"noise_kind": "observation"}),
]
DRAWN = {
    "payoffs": [
        lambda rng, n: rng.integers(-3, 4, (*rng.integers(2, 4, n).tolist(), n)).tolist(),
        lambda rng, n: rng.integers(0, 9, (3, 3)).tolist(),
    ],
    "by_count": [lambda rng, n: rng.integers(0, 5, (2, n)).tolist()],
    "ordinal": [*range(1, 145)],
    "order": ["fixed"],
    "labels": ["letters"],
}
TRUTHS = [{"rounds": 3, "noise": "1/4"}, {"rounds": 3, "noise": "1/4", "reveal": "nothing"}]
PAID = [
    {"players": 3, "payoffs": THREE, "rounds": 3},
    {"payoffs": ((3, 0), ("16/3", 1)), "rounds": 3},
]
ONES = [{"payoffs": ((1, 0), (0, 1))}]
KEPT = 2000
BAD_PARAMETERS = [
    ({"preset": "fudenberg_rand_dreber_2", "payoffs": ((3, 0), (5, 1))}, r"has payoffs=\(\(2, -2"),
    ({"preset": "dal_bo_frechette_3/4_40", "continuation": "1/2"}, "has continuation=3/4, got"),
    ({"payoffs": ((3, 0), (5,))}, "payoffs must have no hole"),
    ({"payoffs": ((3, 0), (5, (1, 1)))}, "payoffs must have no hole"),
    ({"payoffs": ()}, "payoffs must be lists of numbers, none of them empty, got"),
    ({"payoffs": 3}, "in each cell, got 3; players says"),
    ({"payoffs": ((3, 0, 1), (5, 1, 1))}, "as many columns as rows"),
    ({"payoffs": ((0,) * 21,) * 21}, "must have 2 to 20 actions a player, got 21 of seat 0"),
    ({"payoffs": ((0,),)}, "must have 2 to 20 actions a player, got 1"),
    ({"payoffs": ((2**54, 0), (0, 0))}, "each of the payoffs must be a ratio of integers"),
    ({"payoffs": ((2**52, 0), (0, 0)), "rounds": 3}, "would count beyond"),
    ({"payoffs": ((1, "x"), (0, 0))}, "each of the payoffs must be a finite number"),
    ({"payoffs": THREE}, "nested by the actions of 2 players"),
    ({"players": 3}, "nested by the actions of 3 players"),
    ({"players": 7}, "players must be at most 6, or 1000 with by_count"),
    ({"by_count": ((1, 2, 3), (0, 0, 0))}, "2 rows of 2 payoffs"),
    ({"ordinal": 145}, "ordinal must be an integer of at least 1 and at most 144"),
    ({"ordinal": 5, "players": 3}, "ordinal games are for 2 players"),
    ({"ordinal": 5, "payoffs": CYCLE}, "give one of payoffs, by_count, ordinal alone"),
    ({"preset": "stag_hunt", "ordinal": 5}, "give one of payoffs, by_count, ordinal alone"),
    ({"preset": "volunteer", "players": 4}, "2 rows of 4 payoffs"),
    ({"noise": 1}, "noise must be a ratio of at least 0 and below 1"),
    (
        {"noise": "1/8", "noise_kind": "observation", "reveal": "payoff"},
        "reveal must not be payoff",
    ),
    (
        {
            "players": 7,
            "by_count": ((1,) * 7, (0,) * 7),
            "noise": "1/8",
            "noise_kind": "observation",
        },
        "players must be at most 6 where sight slips, got 7",
    ),
    ({"continuation": "3/4", "rounds": 72}, "rounds must be at least 73"),
    ({"labels": ("up", "UP")}, "labels must be letters, drawn"),
    ({"labels": ("up", "down", "left")}, "labels must be letters, drawn"),
    (
        {"by_count": ((1, 2), (3, 4)), "labels": (("a", "b"), ("c", "d"))},
        "labels must be the same for all with by_count",
    ),
    ({"called": "x" * 61}, "called must be a name of 1 to 60 letters"),
    ({"history": 3}, "history"),
    ({"order": "random"}, "order"),
]
REPLY_KEY = "action"
REPLIES = [
    ({}, "A", 0),
    ({}, " b ", 1),
    ({"labels": ("Up", "Down")}, "DOWN", 1),
    ({"order": "reversed"}, "A", 0),
    ({}, "C", "format"),
    ({}, 0, "format"),
]
ALIKE = [({"players": 3, "payoffs": THREE, "reveal": "nothing"}, [0, 1, 0], [0, 2, 1])]
