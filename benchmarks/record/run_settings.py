"""With what settings a run was made, one by one, and in which of them two runs differ."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from llm_games.benchmarks.record.queries import Records
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.providers import ADAPTED, COMPATIBLE
from llm_games.wrappers.clients.secrets import SECRETIVE, Secret

HIDDEN, ABSENT = "(not shown)", "–"
EMPTY = {ABSENT, "", "null", "{}", "[]"}
"""Values as they are shown that say nothing."""
OWN = ("title", "seeds", "branch", "name", "chance")
"""Settings that every run has for itself, or that say again what others say."""
SECRETS_IN = ("headers", "extra_body")
"""Tables of settings in which names say that a value is secret."""
_Path = tuple[str, ...]


class Setting(NamedTuple):
    """A setting of the whole run, or of a game and some of its seats, with a value for each run."""

    game: str
    seats: tuple[int, ...]
    name: str
    values: tuple[str, ...]
    differs: bool  # whether they do, also where it is not shown

    @property
    def whose(self) -> str:
        """Return whose it is in words: ``all``, a game's label, or that of some seats."""
        if not self.seats:
            return self.game or "all"
        seats, first = list[str](), self.seats[0]
        for seat, following in zip(self.seats, [*self.seats[1:], -1], strict=True):
            if following != seat + 1:
                seats.append(str(seat) if seat == first else f"{first}–{seat}")
                first = following
        return f"{self.game}, seat {', '.join(seats)}"


def run_settings(*runs: Records) -> list[Setting]:
    """Return all settings of some runs, without secrets; seats with the same ones are one line."""
    return list(_lines([raw_settings(run) for run in runs], all_of_them=True))


def described_games(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the games of a run's description, whatever else a stranger's file has there."""
    games = config.get("games")
    return [game for game in games if isinstance(game, Mapping)] if isinstance(games, list) else []


def raw_settings(run: Records) -> Mapping[tuple[str, ...], Any]:
    """Return the settings of a run by their place, with what could be a secret."""
    return dict(_settings(run))


def plain_changes(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and values of some of a seat's settings, without secrets."""
    leaves = [leaf for name, value in settings.items() for leaf in _flat(value, (name,))]
    return [(".".join(path), _shown(path, value)) for path, value in leaves]


def told_apart(runs: Sequence[Mapping[tuple[str, ...], Any]]) -> list[list[str]]:
    """Return of each run, by its raw settings, what differs, but for what is empty or secret."""
    lines = [line for line in _lines(runs, all_of_them=False) if line.name.split(".")[0] not in OWN]
    return [
        [f"{line.name} {line.values[n]}" for line in lines if line.values[n] not in EMPTY]
        for n in range(len(runs))
    ]


def _lines(tables: Sequence[Mapping[tuple[str, ...], Any]], all_of_them: bool) -> Iterator[Setting]:
    """Yield settings, or those that differ alone."""
    paths = dict.fromkeys(path for table in tables for path in table)
    lines: dict[tuple[str, str, tuple[str, ...], bool], list[int]] = {}
    for path in paths:
        raw = [table.get(path, ABSENT) for table in tables]
        differs = any(value != raw[0] for value in raw)
        if not (differs or all_of_them):
            continue
        game, places, name = _places(path)
        values = tuple(_shown(path, value) for value in raw)
        lines.setdefault((game, name, values, differs), []).extend(places)
    for (game, name, values, differs), seats in lines.items():
        yield Setting(game, tuple(seats), name, values, differs)


def _settings(run: Records) -> Iterator[tuple[_Path, Any]]:
    yield ("llm-games",), run.package
    for name, value in run.config.items():
        if name != "games":
            yield from _flat(value, (name,))
    editions = {row.game.label: row.edition or {} for row in run.episodes()}
    for game in described_games(run.config):
        label = str(game.get("label"))
        yield from _flat(game, ("games", label))
        yield from _flat(editions.get(label, {}), ("games", label, "edition"))


def _flat(value: Any, path: _Path) -> Iterator[tuple[_Path, Any]]:
    """Yield the leaves of tables, and of lists of tables by number; {} and lists are leaves."""
    tables = isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value)
    if not tables and not (isinstance(value, Mapping) and value):
        yield path, value
        return
    for key, inner in enumerate(value) if tables else value.items():
        yield from _flat(inner, (*path, str(key)))


def _places(path: _Path) -> tuple[str, Sequence[int], str]:
    """Return the game, the seat if it is one's, and the name of a setting."""
    if path[0] != "games":
        return "", (), ".".join(path)
    _, game, *rest = path
    if len(rest) > 2 and rest[0] == "seats" and rest[1].isdecimal():
        names = [name for name in rest[2:] if name not in ("settings", "client")]
        return game, (int(rest[1]),), ".".join(names or rest[2:])
    return game, (), ".".join(rest)


def _shown(path: _Path, value: Any) -> str:
    """Write a value without what could be a secret."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    secret = any(name in SECRETS_IN for name in path[:-1]) and SECRETIVE.search(path[-1])
    if path[-1] in ("api_key", "key") or (secret and "env:" not in text):
        return HIDDEN
    if path[-1] == "base_url" and isinstance(value, str):
        parts = urlsplit(value)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return text


def secrets_of(run: Records) -> list[Secret]:
    """Return keys that a run's settings hold or name, and those of providers that are here."""
    words = [os.environ.get(name, "") for p in (COMPATIBLE | ADAPTED).values() for name in p.keys]
    for path, value in _settings(run):
        if not isinstance(value, str):
            continue
        if path[-1] == "api_key_env":
            words.append(os.environ.get(value, ""))
        elif path[-1] == "api_key_file" and (file := Path(value).expanduser()).is_file():
            with suppress(OSError, ValueError):
                words.append(file.read_text("utf-8")[:1000])
        elif path[-1] == "base_url":
            words.append(urlsplit(value).password or "")
        elif "env:" in value:
            words.append(os.environ.get(value.partition("env:")[2], ""))
        elif _shown(path, value) == HIDDEN:
            words.append(value.split()[-1] if value.split() else "")
    secrets = []
    for word in dict.fromkeys(filter(None, words)):
        with suppress(ClientError):  # no word that could be a key
            secrets.append(Secret(word))
    return secrets
