"""Economic and strategic games where language models, learners, rules and equilibria share a table.

``import llm_games as lg``: ``lg.make("public_goods-v0")`` makes a PettingZoo environment,
``lg.play(...)`` plays a game with ``lg.player("rational")`` or ``lg.LLMPolicy(client)``,
``lg.learner(...)`` seats a learner, ``lg.list_games()`` lists what there is, ``lg.run(...)`` runs
an experiment. Games are registered with PettingZoo and Gymnasium, models and learners imported when
asked for. This is the porch, not a floor: it alone names higher floors.
"""

import sys as _sys
from importlib import import_module as _import
from importlib.machinery import ModuleSpec as _Spec
from typing import TYPE_CHECKING, Any

from llm_games import envs, registry
from llm_games import game_rooms as rooms
from llm_games.errors import BadParameter, IllegalAction, LLMGamesError, NotReady, UnknownName
from llm_games.registry import list_games, make
from llm_games.registry import rulebook as rules
from llm_games.version import __version__

if TYPE_CHECKING:
    from llm_games.baselines.learner import learner, learners, rollouts
    from llm_games.baselines.players import make_player as player
    from llm_games.baselines.seated import sit
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.play import play
    from llm_games.wrappers.tools import Tool


_LATER = {
    "LLMPolicy": "llm_games.wrappers.llm_policy:LLMPolicy",
    "Tool": "llm_games.wrappers.tools:Tool",
    "branch": "llm_games.benchmarks.run.api:branch",
    "learner": "llm_games.baselines.learner:learner",
    "learners": "llm_games.baselines.learner:learners",
    "play": "llm_games.wrappers.play:play",
    "player": "llm_games.baselines.players:make_player",
    "resume": "llm_games.benchmarks.run.api:resume",
    "rollouts": "llm_games.baselines.learner:rollouts",
    "run": "llm_games.benchmarks.run.api:run",
    "sit": "llm_games.baselines.seated:sit",
}
"""What is imported when it is asked for."""

__all__ = [
    "BadParameter",
    "IllegalAction",
    "LLMGamesError",
    "LLMPolicy",
    "NotReady",
    "Tool",
    "UnknownName",
    "__version__",
    "branch",
    "envs",
    "learner",
    "learners",
    "list_games",
    "make",
    "play",
    "player",
    "register",
    "resume",
    "rollouts",
    "rules",
    "run",
    "sit",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _LATER[name].partition(":")
    attribute_object = globals()[name] = getattr(_import(module), attribute)
    return attribute_object


def register(name: str, room: str) -> None:
    """Add a game, here, in PettingZoo and Gymnasium; BadParameter if another room has that name.

    `room` is a package with ``rules.py`` and what else there is of ``wordings/``, ``theory.py`` and
    ``players.py``; or its rulebook alone as ``"module:Class"``. An entry point of the group
    ``llm_games.games`` does the same for an installed package.
    """
    new = name not in rooms.ROOMS
    rooms.add(name, room)
    for library, announce in _ANNOUNCE.items():
        if new and library in _sys.modules:
            announce(name)


def _to_pettingzoo(name: str) -> None:
    import pettingzoo

    if not hasattr(pettingzoo, "register"):  # it came with 1.27
        return
    for form in ("aec", "parallel"):
        full, kwargs = f"llm_games/{name}-{registry.VERSION}", {"name": name, "form": form}
        pettingzoo.register(form, full, "llm_games.registry:make", kwargs=kwargs)


_PLAIN: dict[str, Any] = {"masks": "info", "normalize": True}
_VIEWS = {"": {}, "Discrete": _PLAIN, "Continuous": _PLAIN | {"actions": "unit"}}
"""What stands behind a game's title in Gymnasium's ids, for programs that can set nothing else."""


def _to_gymnasium(name: str) -> None:
    import gymnasium

    title = "".join(word.capitalize() for word in name.split("_"))
    views = "llm_games.baselines.learner"
    for kind, settings in _VIEWS.items():
        gymnasium.register(
            f"llm_games/{title}{kind}-{registry.VERSION}",
            f"{views}:learner",
            vector_entry_point=f"{views}:learners",
            kwargs={"game": name, **settings},
        )


_ANNOUNCE = {"pettingzoo": _to_pettingzoo, "gymnasium": _to_gymnasium}


_FORMER = {
    "runs": "record, judge, run and show.export",
    "stats": "judge",
    "report": "show.page",
    "view": "show.view",
    "cli": "show.cli",
    "learning": "studies",
    "speed": "studies.speed",
}
"""Packages of ``llm_games.benchmarks`` up to version 0.8, and where their modules are."""


class _Finder:
    """Announces games to a library, slow to import, when it is; and says where modules moved."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> _Spec | None:
        former = name.removeprefix("llm_games.benchmarks.")
        if former != name and former in _FORMER:
            raise ModuleNotFoundError(
                f"{name} is no more: its modules are in llm_games.benchmarks.{_FORMER[former]}; "
                "CHANGELOG.md has a table of old and new names",
                name=name,
            )
        if name not in _ANNOUNCE:
            return None
        others = (finder.find_spec for finder in _sys.meta_path if finder is not cls)
        spec = next(filter(None, (find(name, path, target) for find in others)), None)
        if spec and (loader := spec.loader):

            def load(module: Any) -> None:
                del loader.exec_module  # the class has it
                loader.exec_module(module)
                for game in rooms.ROOMS:
                    _ANNOUNCE[name](game)

            loader.exec_module = load  # type: ignore[method-assign]
        return spec


rooms.KINDS |= {
    "ghost": "llm_games.benchmarks.ghosts.ghost_policy:GHOST",
    "recorded": "llm_games.benchmarks.record.recorded_player:RECORDED",
}
rooms.find("llm_games.games", "llm_games.baselines.games", entry_points="llm_games.games")
for _library, _announce in _ANNOUNCE.items():
    for _name in rooms.ROOMS if _library in _sys.modules else ():
        _announce(_name)
_sys.meta_path.insert(0, _Finder)
