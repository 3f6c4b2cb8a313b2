"""Economic and strategic games where language models, learners, rules and equilibria share a table.

``llm_games.make("public_goods-v0")`` makes a PettingZoo environment, ``llm_games.games()`` lists
what there is, ``llm_games.rules("public_goods")`` gives the pure rules. Importing this package
registers every game with PettingZoo and Gymnasium, and imports no language model.
"""

from llm_games import envs
from llm_games.errors import BadParameter, IllegalAction, LLMGamesError, NotReady, UnknownName
from llm_games.registry import GAMES, announce, games, make, register
from llm_games.registry import rulebook as rules

__version__ = "0.2.0"

__all__ = [
    "BadParameter",
    "IllegalAction",
    "LLMGamesError",
    "NotReady",
    "UnknownName",
    "__version__",
    "envs",
    "games",
    "make",
    "register",
    "rules",
]

for _name in GAMES:
    announce(_name)
