"""What a server of OpenEnv lets its clients play, and the tables at which they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llm_games import game_rooms as rooms
from llm_games.baselines.players import make_player, rule_of
from llm_games.errors import BadParameter, unknown
from llm_games.facts import check_integer, check_number
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Rulebook
from llm_games.wrappers.guest_table import GuestTable
from llm_games.wrappers.policy import Policy

MOST_PLAYERS, MOST_STEPS = 100, 10_000  #: of a game that a client may ask for
WORDS = ("game", "parameters", "seed", "opponents")  #: of reset, on which all at a table agree


class Offer:
    """What a server lets its clients play; see `make_app`."""

    def __init__(
        self,
        game: str,
        parameters: Mapping[str, Any],
        opponents: str | Sequence[str],
        allowed: Sequence[str],
        *,
        limit: float,
        player: Mapping[str, Any],
    ) -> None:
        check_number("limit", limit, 0.1)
        self.rules, self.parameters = rulebook(game, **parameters), dict(parameters)
        self.game, self.opponents, self.allowed = self.rules.name, opponents, set(allowed)
        self.limit, self.player = limit, player
        self.tables: dict[str, tuple[GuestTable, Mapping[str, Any]]] = {}  # with what was asked
        self.table(None, 1, dict.fromkeys(WORDS))

    def game_of(self, name: str | None, parameters: Mapping[str, Any] | None) -> Rulebook:
        """Return the rules that a client asked for.

        Raises:
            BadParameter, UnknownName: there is no such game, or it is too large for a stranger.
        """
        if parameters is not None and not isinstance(parameters, Mapping):
            raise BadParameter(f'parameters must be such as {{"players": 3}}, got {parameters!r}')
        if name is None and parameters is None:
            return self.rules
        plain = str(name or self.game).removesuffix("-v0").removesuffix("_v0")
        if plain not in rooms.ROOMS:  # never a module of the client's choice
            raise unknown("game", plain, rooms.ROOMS)
        chosen = {**(self.parameters if plain == self.game else {}), **(parameters or {})}
        players = chosen.get("players", 1)
        if isinstance(players, int) and players > MOST_PLAYERS:
            raise BadParameter(f"players must be at most {MOST_PLAYERS} here, got {players}")
        rules = rulebook(game_class(plain), **chosen)
        if rules.players > MOST_PLAYERS or (rules.length() or 0) > MOST_STEPS:
            most = f"{MOST_PLAYERS} players and {MOST_STEPS} steps"
            raise BadParameter(f"a game here has at most {most}: {rules.players}, {rules.length()}")
        return rules

    def inside(self, rules: Rulebook, names: Any, count: int) -> list[Policy]:
        """Return the players of the seats that are not outside's, in order.

        Raises:
            BadParameter: a client named one that is neither by rule nor allowed, or too few.
        """
        asked = names is not None
        if not asked:
            names = self.opponents if isinstance(self.opponents, str) else self.opponents[:count]
        listed = [names] * count if isinstance(names, str) else names
        if not isinstance(listed, list | tuple) or not all(isinstance(n, str) for n in listed):
            raise BadParameter(f"opponents must be a player's name, or several, got {names!r}")
        if len(listed) != count:
            raise BadParameter(
                f"opponents must be one name or {count} (the seats inside), got {len(listed)}"
            )
        for name in listed if asked else ():
            if name not in self.allowed and rule_of(name.partition(":")[0], rules.name) is None:
                able = ", ".join(["any player by rule", *sorted(self.allowed)])
                raise BadParameter(f"opponent {name!r} is not allowed at this server: {able}")
        players = {name: make_player(name, rules) for name in dict.fromkeys(listed)}
        return [players[name] for name in listed]

    def table(self, name: str | None, wanted: int | None, asked: Mapping[str, Any]) -> GuestTable:
        """Return the table of a name, a new one if there is none, at which so many sit outside.

        Args:
            name: of a table that several sessions share; None: one of its own.
            wanted: how many sessions; None: 1 at a new table.
            asked: the values of `WORDS`, each None where nothing was asked.

        Raises:
            BadParameter, UnknownName: there is no such game, or not at this table.
        """
        if name is not None and (not isinstance(name, str) or not 0 < len(name) <= 64):
            raise BadParameter(f"table must be a name of 1 to 64 characters, got {name!r:.80}")
        self.tables = {n: place for n, place in self.tables.items() if not place[0].is_over}
        if name in self.tables:
            table, first = self.tables[name]
            for word, value in {**asked, "outside": wanted}.items():
                if value not in (None, first[word]):
                    fault = f"{word} is {first[word]!r} at table {name!r}, not {value!r}"
                    raise BadParameter(f"{fault}: leave it out, or take another table")
            return table
        rules = self.game_of(asked["game"], asked["parameters"])
        wanted = 1 if wanted is None else wanted
        check_integer("outside", wanted, 1, rules.players)
        if asked["seed"] is not None:
            check_integer("seed", asked["seed"], 0)
        inside = self.inside(rules, asked["opponents"], rules.players - wanted)
        limit = self.limit if wanted > 1 else None
        table = GuestTable(rules, inside, self.player, seed=asked["seed"], limit=limit)
        if name is not None:
            self.tables[name] = table, {**asked, "outside": wanted}
        return table
