"""The authors' recordings of γ-Bench: a JSON file a game, of ``meta``, rounds and players.

Moves are `player_data[i].records`, in seat order; of a game of turns, those of its rounds. The
texts of these files were made from a template, not written by a model, and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from llm_games.benchmarks.run.imports import Recording
from llm_games.wrappers.imported import BadRecording

VERSIONS = ("v1", "v2", "v3", "v4", "v5")
LARGEST_DENOMINATOR = 12  # of a ratio, which the files have as a float
AUTHORS = {"preset": "gamma_bench_authors"}


class _File:
    """A file, and where in it is read, for messages."""

    def __init__(self, path: Path, data: Mapping[str, Any]) -> None:
        self.path, self.data = path, data
        self.meta = self.of(self.data, "meta", dict, "the file")
        self.rounds = self.of(self.data, "round_records", list, "the file")
        self.players = self.of(self.data, "player_data", list, "the file")
        for number, row in enumerate(self.rounds, 1):
            if not isinstance(row, Mapping):
                raise self.wrong(f"round {number} is {row!r:.60}, no JSON object")

    def wrong(self, why: str) -> BadRecording:
        return BadRecording(f"{self.path}: {why}; take the file from its source, or leave it out")

    def of(self, data: Any, key: str, kind: Any, place: str) -> Any:
        """A value that must be there and of a kind."""
        value = data.get(key) if isinstance(data, Mapping) else None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            state = (
                f"is {value!r:.60}" if isinstance(data, Mapping) and key in data else "is missing"
            )
            raise self.wrong(f"{key!r} of {place} {state}: this is no whole γ-Bench recording")
        return value

    def whole(self, key: str) -> int:
        return int(self.of(self.meta, key, int, "meta"))

    def exact(self, key: str) -> str:
        value = self.of(self.meta, key, int | float, "meta")
        return str(Fraction(value).limit_denominator(LARGEST_DENOMINATOR))

    def word(self, key: str, words: Mapping[str, str]) -> str:
        value = self.of(self.meta, key, str, "meta")
        if value not in words:
            raise self.wrong(f"{key!r} of meta is {value!r}, known are {', '.join(words)}")
        return words[value]

    def seat(self, value: Any, place: str) -> int:
        """A seat by its number or name."""
        number = str(value).removeprefix("player_")
        if not (number.isascii() and number.isdigit() and int(number) < len(self.players)):
            raise self.wrong(f"{place} is {value!r}, no player of 0 to {len(self.players) - 1}")
        return int(number)

    def records(self) -> list[list[Any]]:
        """What each did, round by round."""
        rows = []
        for seat, player in enumerate(self.players):
            rows.append(self.of(player, "records", list, f"player_{seat}"))
            if len(rows[-1]) != len(self.rounds):
                raise self.wrong(
                    f"player_{seat} has {len(rows[-1])} records of {len(self.rounds)} rounds"
                )
        return rows

    def each(self, key: str, kind: Any) -> list[Any]:
        return [self.of(row, key, kind, f"round {i + 1}") for i, row in enumerate(self.rounds)]


def is_one(data: Mapping[str, Any]) -> bool:
    """Test whether a JSON object is a recording of this form, whole or not."""
    return "player_data" in data or "round_records" in data


def read(path: Path, data: Mapping[str, Any]) -> Recording:
    """Read a recording; BadRecording: something of it is missing, or of a form that is unknown."""
    file = _File(path, data)
    if file.meta.get("version") not in VERSIONS:
        version = file.meta.get("version")
        raise file.wrong(f"version {version!r} of meta is unknown, known are {', '.join(VERSIONS)}")
    if file.whole("player_num") != len(file.players) or not file.rounds:
        raise file.wrong(f"{len(file.players)} players in {len(file.rounds)} rounds are no game")
    for key, reader in _READERS.items():
        if key in file.meta or key in file.rounds[0]:
            return reader(file)
    raise file.wrong(f"meta names no game of γ-Bench: it has none of {', '.join(_READERS)}")


def _recording(
    file: _File, game: str, params: Mapping[str, Any], moves: Sequence[Sequence[Any]], **more: Any
) -> Recording:
    models = [file.of(p, "model", str, f"player_{i}") for i, p in enumerate(file.players)]
    settings = AUTHORS | {"players": len(models)} | dict(params)
    return Recording(file.path, game, settings, models, moves, **more)


def _agrees(file: _File, key: str, ours: str) -> Callable[[Sequence[Mapping[str, Any]]], str]:
    """A check of a total of each round against the file's, where this has one."""

    def check(records: Sequence[Mapping[str, Any]]) -> str:
        for number, (row, record) in enumerate(zip(file.rounds, records, strict=True), 1):
            if isinstance(row, Mapping) and key in row and row[key] != int(record[ours]):
                return f"{key!r} of round {number} is {row[key]!r}, of its records {record[ours]}"
        return ""

    return check


def _guessing(file: _File) -> Recording:
    low, high, records = file.whole("min"), file.whole("max"), file.records()
    free = any(isinstance(n, int) and not 0 <= n <= 100 for row in records for n in row)
    params = {"min": low, "max": high, "ratio": file.exact("ratio"), "rounds": len(file.rounds)}
    leniency = {"bounds_check": "none"} if free else {}
    return _recording(file, "beauty_contest", params | leniency, records)


def _bar(file: _File) -> Recording:
    params: dict[str, Any] = {key: file.exact(key) for key in ("min", "max", "home", "ratio")}
    params["mode"] = file.word("mode", {"implicit": "implicit", "explicit": "explicit"})
    params |= {"rounds": len(file.rounds)}
    check = _agrees(file, "go_num", "goers")
    return _recording(file, "el_farol_bar", params, file.records(), check=check)


def _dollar(file: _File) -> Recording:
    params = {"golds": file.whole("golds"), "rounds": len(file.rounds)}
    check = _agrees(file, "total_proposal", "sum")
    return _recording(file, "divide_dollar", params, file.records(), check=check)


def _goods(file: _File) -> Recording:
    start = file.word("token_initialization", {"fixed": "fixed", "random": "random"})
    reset = file.of(file.meta, "reset", bool, "meta")
    params: dict[str, Any] = {"tokens": file.whole("tokens"), "ratio": file.exact("ratio")}
    chance: dict[str, Any] = {}
    if start == "random":
        tokens = [file.of(p, "tokens", list, f"player_{i}") for i, p in enumerate(file.players)]
        chance = {"endowments": [row[0] if row else None for row in tokens]}
        params |= {"initial_tokens": start, "rand_min": file.whole("rand_min")}
    params |= {"endowment": "reset" if reset else "carry", "rounds": len(file.rounds)}
    check = _agrees(file, "total_tokens", "pot")
    return _recording(file, "public_goods", params, file.records(), given=chance, check=check)


def _diners(file: _File) -> Recording:
    names = {"cheap_cost": "cheap_price", "cheap_utility": "cheap_utility"}
    names |= {"exp_cost": "costly_price", "exp_utility": "costly_utility"}
    params: dict[str, Any] = {ours: file.exact(theirs) for theirs, ours in names.items()}
    params |= {"rounds": len(file.rounds)}
    return _recording(file, "diners_dilemma", params, file.records())


def _sealed(file: _File) -> Recording:
    price = file.word("mode", {"highest bid": "first", "second highest bid": "second"})
    bids, valuations = file.records(), file.each("valuations", list)
    lots = []
    for number, row in enumerate(file.rounds):
        winner = file.seat(row.get("bid_winner"), f"'bid_winner' of round {number + 1}")
        best = max(each[number] for each in bids)
        tied = [seat for seat, each in enumerate(bids) if each[number] == best]
        if winner not in tied:
            raise file.wrong(f"round {number + 1} was won by player_{winner}, who bid less")
        lots.append((tied.index(winner) + 0.5) / len(tied))
    names = "valuation_min", "valuation_max", "interval"
    params: dict[str, Any] = {name: file.whole(name) for name in names}
    params |= {"price": price, "tie_rng": "own", "valuation_draw": "random"}
    chance = {"valuations": valuations, "lots": lots}
    params |= {"rounds": len(file.rounds)}
    shared = {"given": chance, "shared": valuations}
    return _recording(file, "sealed_bid_auction", params, bids, **shared)


def _royale(file: _File) -> Recording:
    moves: list[list[Any]] = [[] for _ in file.players]
    hits = []
    for number, row in enumerate(file.rounds):
        place = f"round {number + 1}"
        shooter = file.seat(row.get("player_shooting"), f"'player_shooting' of {place}")
        texts = file.of(row, "responses", list, place)
        if not texts or "out" not in row:
            raise file.wrong(f"{place} lacks 'responses' or 'out'")
        moves[shooter].append(str(texts[-1]))
        hits.append(row["out"] not in (None, False, "", "null", -1, "-1", []))
    longest = max(20, len(file.rounds))
    rolls = [0 if hit else 99 for hit in hits] + [0] * (longest - len(hits))
    params = {key: file.whole(key) for key in ("base_hit_rate", "interval")} | {
        "max_shots": longest
    }

    def check(records: Sequence[Mapping[str, Any]]) -> str:
        came = [bool(record["hit"]) for record in records]
        wrong = [i for i, pair in enumerate(zip(came, hits, strict=False), 1) if len({*pair}) > 1]
        return f"'out' of round {wrong[0]} does not follow from its shot" if wrong else ""

    return _recording(file, "battle_royale", params, moves, given={"rolls": rolls}, check=check)


def _pirates(file: _File) -> Recording:
    moves: list[list[Any]] = [[] for _ in file.players]
    for proposer, row in enumerate(file.rounds[: len(file.players) - 1]):  # the last one is alone
        place = f"round {proposer + 1}"
        plan = file.of(row, "gold_distribution", list, place)
        votes = file.of(row, "responses", list, place)
        if {len(plan), len(votes)} != {len(file.players) - proposer}:
            raise file.wrong(f"{place} has {len(plan)} shares and {len(votes)} votes")
        moves[proposer].append({str(proposer + 1 + i): coins for i, coins in enumerate(plan)})
        for seat, vote in enumerate(votes[1:], proposer + 1):
            moves[seat].append(vote)
    params = {"gold": file.whole("gold") if "gold" in file.meta else 100}
    return _recording(file, "pirate_game", params, moves)


_READERS: Mapping[str, Callable[[_File], Recording]] = {
    "home": _bar,
    "golds": _dollar,
    "tokens": _goods,
    "cheap_cost": _diners,
    "valuation_min": _sealed,
    "base_hit_rate": _royale,
    "gold_distribution": _pirates,
    "ratio": _guessing,
}
"""By a key that only recordings of one game have, the last of what is left."""
