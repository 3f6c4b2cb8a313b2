"""Other words for the El Farol bar."""

from llm_games.disguise import Surface

SURFACE = Surface(
    words=(
        (
            "go goes going went",
            "sail sails sailing sailed",
            "ride rides riding rode",
            "walk walks walking walked",
            "drive drives driving drove",
            "travel travels travelling travelled",
        ),
        (
            "stay stays staying stayed",
            "rest rests resting rested",
            "wait waits waiting waited",
            "remain remains remaining remained",
            "sit sits sitting sat",
        ),
        ("bar", "market", "lake", "museum", "park", "fair", "theatre"),
        ("home home:place", "camp at_camp", "work at_work", "base at_base"),
        ("fun", "joy", "profit", "benefit"),
        ("crowded", "packed", "jammed", "swamped"),
        ("point points", "credit credits", "mark marks", "star stars", "chip chips"),
        ("decision", "selection", "verdict", "resolution"),
    ),
    counts={
        "points": "min home max utility",
        "seats": "players capacity goers stayers",
        "rounds": "rounds round",
        "shares": "ratio",
        "settings": "fun",
    },
)
