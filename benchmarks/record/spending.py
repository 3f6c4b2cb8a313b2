"""What a run has spent, as its books have it: the one source of all that shows tokens or money."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property

from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.worker_files import spent_so_far
from llm_games.wrappers.clients.budget import Usage


class Spending:
    """The usage of a run: in `total`, and by ``models``, ``seats``, ``games`` and ``players``.

    Seats are as `Ledger.seat_of` names them, "" for greetings. Who asked nobody is missing; so are
    players before version 0.3, when seats went by game, and two labels of one.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self.total, self.pairs = Usage(), spent_so_far(records)
        self.models, self.seats = defaultdict[str, Usage](Usage), defaultdict[str, Usage](Usage)
        self.games, self.players = defaultdict[str, Usage](Usage), defaultdict[str, Usage](Usage)
        rows = records.games()
        games = {row.game: row for row in rows if [r.game for r in rows].count(row.game) == 1}
        games |= {row.label: row for row in rows}
        old = [int(part) for part in re.findall(r"\d{1,9}", records.package)[:2]] < [0, 3]
        for (model, seat), usage in self.pairs.items():
            label, _, position = seat.rpartition("/player_")
            usages = [self.total, self.models[model], self.seats[seat]]
            seats = [f"{n}" for n in range(len(games[label].seats))] if label in games else []
            if (row := games.get(label)) is not None and position in seats:
                usages += [self.games[row.label]]
                usages += [] if old else [self.players[row.seats[int(position)]]]
            for counted in usages:
                counted.add(usage)

    @cached_property
    def estimated(self) -> list[str]:
        """Models whose tokens are estimates, such as own functions; while the file is open."""
        counted, models = self._records.counted(), dict[str, int]()
        for (model, seat), usage in self.pairs.items():
            if usage.tokens and seat:
                models[model] = models.get(model, 0) + counted.get(seat, 0)
        return [model for model, tokens in models.items() if not tokens]

    @property
    def note(self) -> str:
        """Say of which models tokens are estimates, and what is not known; "" if nothing is."""
        names, lost = ", ".join(self.estimated), unsure(self.total)
        note = f"Tokens of {names} are estimates: nobody counted them." if names else ""
        return " ".join(filter(None, (note, lost and f"{lost}.")))


def unsure(usage: Usage) -> str:
    """Say what calls may have cost of which nobody knows; "" if there are none."""
    if not usage.unknown:
        return ""
    calls = "1 call" if usage.unknown == 1 else f"{usage.unknown:,} calls"
    money = f" and money {usage.unknown_money:.4f}" * bool(usage.unknown_money)
    return (
        f"{calls} sent, outcome unknown: at most {usage.unknown_in:,} tokens in, "
        f"{usage.unknown_out:,} out{money} beside"
    )
