"""Tries the forms that a library takes on every game, and prints what came of each as JSON."""

import json
import sys
import time
import warnings
from collections.abc import Callable

import gymnasium

import llm_games as lg

GAMES = [game["name"] for game in lg.list_games()]
COPIES = 16
"""Copies of a view of many."""


def identity(game: str, kind: str = "") -> str:
    """Return a game's id in Gymnasium's registry; `kind` is what stands behind its title."""
    title = "".join(word.capitalize() for word in game.removesuffix("-v0").split("_"))
    return f"llm_games:llm_games/{title}{kind}-v0"


def single(game: str, **settings: object) -> gymnasium.Env:
    """Make one seat's view as Gymnasium's registry makes it."""
    usual = {"opponents": "rational", "normalize": True}
    return gymnasium.make(identity(game), **{**usual, **settings})


def copies(game: str, count: int = COPIES, **settings: object) -> gymnasium.vector.VectorEnv:
    """Make the view of many copies as Gymnasium's registry makes it."""
    return gymnasium.make_vec(
        identity(game),
        num_envs=count,
        vectorization_mode="vector_entry_point",
        **{"opponents": "rational", "normalize": True, **settings},
    )


def masked(space: gymnasium.Space) -> bool:
    return isinstance(space, gymnasium.spaces.Dict)


def table(game: str, form: str, **settings: object) -> object:
    """Make PettingZoo's environment, in which all seats learn, with numbers for them."""
    return lg.make(game, form=form, **{"obs_mode": "numeric", "normalize": True, **settings})


def report(forms: dict[str, Callable[[str], None]]) -> None:
    """Try each form on each game; the command line may name forms and games to try alone."""
    named = set(sys.argv[1:])
    warnings.simplefilter("ignore")
    for form, attempt in forms.items():
        if (chosen := named & set(forms)) and form not in chosen:
            continue
        for game in [game for game in GAMES if game in named] or GAMES:
            begin = time.monotonic()
            try:
                attempt(game)
                fault = ""
            except Exception as error:  # whatever a library raises is what is looked for
                lines = str(error).strip().splitlines() or [""]
                fault = f"{type(error).__name__}: {lines[0]}"[:200]
            took = round(time.monotonic() - begin, 1)
            print(json.dumps({"form": form, "game": game, "fault": fault, "s": took}), flush=True)
