"""Other words for the beauty contest."""

from llm_games.disguise import Surface

SURFACE = Surface(
    words=(
        ("prize prizes", "award awards", "reward rewards", "gift gifts", "medal medals"),
        ("target", "benchmark", "bullseye", "reference"),
        ("jury", "panel", "committee", "board"),
        ("contestant contestants", "rival rivals", "entrant entrants", "competitor competitors"),
        ("chosen", "named", "picked", "submitted"),
    ),
    counts={
        "numbers": "min max max_draw limit mean target number winning_numbers all_choices",
        "prizes": "prize foul_fee",
        "seats": "players",
        "rounds": "rounds round reveal_last",
        "shares": "ratio",
        "settings": "decimals places",
    },
    action="numbers",
)
