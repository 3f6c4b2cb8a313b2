"""Users' own objects by name: ``module:Name``, or ``folder/file.py:Name`` from here."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from llm_games.errors import BadParameter, UnknownName, unknown

OWN = "own:"  # before the label of an object that was handed to a run and has no name to find it by
_WORDS = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_NAME = re.compile(rf"(.+\.py|{_WORDS}):({_WORDS})")


def is_named(text: str) -> bool:
    return text.startswith(OWN) or _NAME.fullmatch(text) is not None


def named(address: str, kind: str) -> Any:
    """Return the object of a name, executing its module; `kind`, such as ``player``, is for errors.

    Raises UnknownName for no such file, module or name in it, BadParameter for another form, or the
    label of an object.
    """
    if address.startswith(OWN):
        label = address.removeprefix(OWN)
        raise BadParameter(
            f"{kind} {label!r} was an object that a run was handed: hand it over again, as in "
            f"llm_games.resume(FILE, own={{{label!r}: ...}}), or for the next run put it into a "
            "module and name it module:Name"
        )
    match = _NAME.fullmatch(address)
    if match is None:
        raise BadParameter(
            f"a {kind} of your own is module:Name or folder/file.py:Name, got {address!r}"
        )
    module, name = match.groups()
    target: Any = module_of(module)
    for part in name.split("."):
        if not hasattr(target, part):
            hint = "; it was in a script or notebook: put it into a module"
            message = str(unknown(f"{kind} in {module}", name, _names(target)))
            raise UnknownName(message + hint * (module == "__main__"))
        target = getattr(target, part)
    return target


def _names(module: Any) -> list[str]:
    owner = getattr(module, "__name__", "")
    imported = (
        key
        for key, value in vars(module).items()
        if isinstance(value, ModuleType)
        or (hasattr(value, "__qualname__") and getattr(value, "__module__", owner) != owner)
    )
    return sorted({key for key in vars(module) if not key.startswith("_")} - {*imported})


def name_of(thing: Any) -> str | None:
    """Return the name by which `named` finds a function or class; None if it does not."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    text, target = f"{module}:{name}", sys.modules.get(str(module))
    if target is None or not _NAME.fullmatch(text):
        return None
    for part in str(name).split("."):
        target = getattr(target, part, None)
    return text if target is thing else None


def module_of(name: str) -> ModuleType:
    """Import a module by its name or file; raises as `named` does."""
    if name.endswith(".py"):
        path = Path(name).resolve()
        return sys.modules.get(str(path)) or _loaded(path)
    _look_in(Path.cwd())
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # something that it imports
        raise UnknownName(
            f"there is no module {name}, neither in {Path.cwd()} nor where Python looks "
            "(a file is named with its ending, as in agents/mine.py:Name)"
        ) from None


def _loaded(path: Path) -> ModuleType:
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
    """Put a folder first on Python's path, as Python does for a script."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
