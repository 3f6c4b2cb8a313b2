"""The table of measures of skill: how well each player of a run played its games."""

from __future__ import annotations

from llm_games.benchmarks.judge.player_skill import skills
from llm_games.benchmarks.judge.result_table import Label, ResultTable, Value
from llm_games.benchmarks.record.recorded_games import Run

NOTE = """\
In payoffs a round, or an episode in games without rounds; others' moves and chance are as recorded.
“Regret” is in hindsight and holds luck as well as skill; “interim” regret is on average over what \
the player could not know. “Solver's reply” is what the reply that theory names first would have \
brought more (below 0: less), without bias; the “best-reply gap” is what the best of all replies \
that theory names would have, biased upwards by the choice; its interval is cross-fitted. The \
“response gap” is that of a best response worked out for this field, where theory can. \
“Exploitability” is what a best reply gains a step from copies of the player's own mix of moves, \
“predicted” the same of one who also knows the move before: what the order of moves gives away. \
Both have the gain of fitting chance taken off; of fewer than four episodes steps are taken as \
independent. \
“Distance” (0 to 1) to the nearest equilibrium and “efficiency” (1: the best for all together) are \
those of the whole table; the “price of anarchy” is the best welfare over that of the worst known \
equilibrium, both of what stands under “of”: without the consumers where it is joint profit. In \
auctions distance and interim regret take bidders to know the law of \
valuations, which prompts tell only if `tell_prior` is true. A dash: not defined in that game, or \
in so few episodes."""


def skill_grid(run: Run) -> ResultTable:
    """A row for each player of each game; none where no theory is known."""
    heads = {"game": "", "player": "", "per": "", "regret": ".2f", "interim": ".2f"}
    heads |= {"solver's reply": ".2f", "by": "", "best-reply gap": ".2f", "with": ""}
    heads |= {"response gap": ".2f", "exploitability": ".3f", "predicted": ".3f"}
    heads |= {"distance": ".3f", "efficiency": ".3f", "price of anarchy": ".2f", "of": ""}
    surplus = any(skill.consumers for game in run.games for skill in skills(game))
    heads |= dict.fromkeys(["consumer surplus", "total surplus"] * surplus, ".2f")
    rows: list[list[Value]] = []
    failed = dict[str, None]()  # why nothing was measured, each once
    for game in run.games:
        for skill in skills(game):
            if skill.why:
                failed[f"“{game.label}” could not be measured: {skill.why}"] = None
            mean = skill.means()
            row: list[Value] = [game.label, Label(skill.player), skill.per, mean["regret"]]
            row += [mean["interim regret"], mean["solver's reply"], skill.solver or None]
            row += [mean["best-reply gap"], skill.best or None, mean["response gap"]]
            row += [mean["exploitability"], mean["predicted"], mean["distance"]]
            row += [mean["efficiency"], skill.anarchy, skill.welfare if skill.efficiency else None]
            rows.append(row + [mean["consumer surplus"], mean["total surplus"]] * surplus)
    note = "\n".join([NOTE] * bool(rows) + list(failed))
    strong = ["solver's reply", "best-reply gap"]
    return ResultTable(heads, rows, name="skill", note=note, strong=strong)
