"""``llm-games export``."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from llm_games.benchmarks.show.cli.common import Database, say, value


def export(
    db: Database,
    out: Annotated[
        Path | None, value("DIR", "folder; its tables are replaced", "--out", "-o")
    ] = None,
    form: Annotated[str, Option("--format", help="csv, parquet or trace")] = "csv",
    logs: Annotated[
        bool, Option("--eval", help="logs of inspect_ai instead, one for each game")
    ] = False,
    sft: Annotated[
        Path | None, value("FILE", "legal replies, as data for TRL's SFTTrainer", "--sft")
    ] = None,
    preferences: Annotated[
        Path | None, value("FILE", "better and worse replies, for its DPOTrainer", "--preferences")
    ] = None,
    players: Annotated[
        list[str] | None,
        value("NAME", "of whom, again for more; else of all that asked a model", "--player"),
    ] = None,
    most_regret: Annotated[
        float | None, value("X", "of --sft, only moves that lost no more", "--most-regret", min=0)
    ] = None,
    hindsight: Annotated[
        bool, Option("--hindsight", help="judge by regret in hindsight, also where theory has more")
    ] = False,
) -> None:
    """Write episodes, steps, decisions and attempts (with their prompts) as tables.

    A trace is one file of JSON lines, one for each move: what was done, said, heard and recorded.
    """
    from llm_games.benchmarks.record.store import Records
    from llm_games.benchmarks.show.export.inspect_log import export_eval
    from llm_games.benchmarks.show.export.moves import export_trace
    from llm_games.benchmarks.show.export.table_files import export
    from llm_games.errors import BadParameter

    if out is None and not (sft or preferences):
        raise BadParameter("say what to write: -o DIR, --sft FILE or --preferences FILE")
    with Records.open_readonly(db) as records:
        selection: dict[str, Any] = {"players": players or (), "hindsight": hindsight}
        if sft or preferences:  # what these need takes a third of a second to import
            from llm_games.benchmarks.show.export import dialogues
        if sft is not None:
            replies = dialogues.sft(records, most_regret=most_regret, **selection)
            print(f"{sft}: {dialogues.write(replies, sft)} replies")
        if preferences is not None:
            left_out = Counter[str]()
            pairs = dialogues.preferences(records, left_out=left_out, **selection)
            print(f"{preferences}: {dialogues.write(pairs, preferences)} pairs")
            for reason, count in left_out.items():
                say(f"prompts without a pair: {count}, {reason}")
        if out is None:
            return
        tables = export_trace if form == "trace" else partial(export, form=form)
        write = export_eval if logs else tables
        for path, count in write(records, out).items():
            print(f"{path}: {count} {'samples' if logs else 'rows'}")
