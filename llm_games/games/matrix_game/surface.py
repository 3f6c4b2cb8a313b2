"""Other words for matrix games; labels that are given, or drawn, stay, and so does their name."""

from llm_games.disguise import Surface

SURFACE = Surface(
    words=(
        (
            "A B C D E F G H",
            "red blue green gold black white pink brown",
            "oak elm ash fir yew bay fig pine",
            "north south east west up down left right",
        ),
        ("action", "act", "entry"),
        ("point points", "credit credits", "mark marks", "star stars", "chip chips"),
        (
            "choose chooses chose choice choices",
            "select selects selected selection selections",
            "play plays played play plays",
        ),
        ("option options", "item items", "course courses"),
        ("pick picks picked", "call calls called", "ticket tickets ticketed"),
        ("way ways", "road roads", "path paths", "route routes"),
        ("move moves", "play plays", "turn turns"),
    ),
    counts={
        "points": "payoff paid",
        "seats": "players others count",
        "rounds": "rounds round history",
        "shares": "noise continuation",
        "words": "own label menu first",
        "names": "name",
        "settings": "payoffs by_count ordinal",
    },
)
