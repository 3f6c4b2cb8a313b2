"""Somebody's own things by name: ``module:Name``, or ``folder/file.py:Name``.

A module is looked for in the folder where the program was started and where Python looks; a file
is found from that folder. To look a thing up, its module is executed.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from llm_games.errors import BadParameter, UnknownName, unknown

OWN = "own:"
"""Before the label of an object that was handed to a run and has no name to find it by."""
_WORDS = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_NAME = re.compile(rf"(.+\.py|{_WORDS}):({_WORDS})")


def is_named(text: str) -> bool:
    """Return whether a text reads as the name of somebody's own thing."""
    return text.startswith(OWN) or _NAME.fullmatch(text) is not None


def named(what: str, kind: str) -> Any:
    """Return what a name means; `kind` says in errors what is looked for, such as ``player``.

    Raises:
        UnknownName: there is no such file, module or name in it. Errors of the module come as
            themselves.
        BadParameter: it is no such name, or the label of an object.
    """
    if what.startswith(OWN):
        label = what.removeprefix(OWN)
        raise BadParameter(
            f"{kind} {label!r} was an object that a run was handed: hand it over again, as in "
            f"llm_games.resume(FILE, own={{{label!r}: ...}}), or for the next run put it into a "
            "module and name it module:Name"
        )
    read = _NAME.fullmatch(what)
    if read is None:
        raise BadParameter(
            f"a {kind} of your own is module:Name or folder/file.py:Name, got {what!r}"
        )
    where, name = read.groups()
    thing: Any = module_of(where)
    for part in name.split("."):
        if not hasattr(thing, part):
            hint = "; it was in a script or notebook: put it into a module"
            said = str(unknown(f"{kind} in {where}", name, _names(thing)))
            raise UnknownName(said + hint * (where == "__main__"))
        thing = getattr(thing, part)
    return thing


def _names(module: Any) -> list[str]:
    """Return the names of what somebody has put into a module or class."""
    own = getattr(module, "__name__", "")
    imported = (
        key
        for key, value in vars(module).items()
        if isinstance(value, ModuleType)
        or (hasattr(value, "__qualname__") and getattr(value, "__module__", own) != own)
    )
    return sorted({key for key in vars(module) if not key.startswith("_")} - {*imported})


def name_of(thing: Any) -> str | None:
    """Return the name by which `named` finds a function or class; None if there is none."""
    where, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    text, found = f"{where}:{name}", sys.modules.get(str(where))
    if found is None or not _NAME.fullmatch(text):
        return None
    for part in str(name).split("."):
        found = getattr(found, part, None)
    return text if found is thing else None


def module_of(where: str) -> ModuleType:
    """Import a module by its name or file; raises as `named` does."""
    if where.endswith(".py"):
        path = Path(where).resolve()
        return sys.modules.get(str(path)) or _loaded(path)
    _look_in(Path.cwd())
    try:
        return import_module(where)
    except ModuleNotFoundError as error:
        if not f"{where}.".startswith(f"{error.name}."):
            raise  # something that it imports
        raise UnknownName(
            f"there is no module {where}, neither in {Path.cwd()} nor where Python looks "
            "(a file is named with its ending, as in agents/mine.py:Name)"
        ) from None


def _loaded(path: Path) -> ModuleType:
    """Execute a file as a module, which is called by its path."""
    spec = spec_from_file_location(str(path), path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UnknownName(f"there is no file {path}")
    _look_in(path.parent)
    module = sys.modules[str(path)] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[str(path)]
        raise
    return module


def _look_in(folder: Path) -> None:
    """Let modules be found in a folder, first of all, as Python does for a script."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
