import re
from html.parser import HTMLParser

import numpy as np
from playing import legal_actions

from llm_games.benchmarks.report import build
from llm_games.benchmarks.scores import GAMES
from llm_games.benchmarks.store import AttemptRow, DecisionRow, StepRow, Store
from llm_games.registry import rulebook

OUTCOMES = ("valid", "valid", "valid", "unparsable", "out_of_range", "refused", "truncated")


def play(store, row, number, seats, rng, steps, asks):
    """Play one episode at random and write what happened."""
    game = rulebook(row.game, **row.params)
    state, step = game.reset(rng), 0
    store.begin(number)
    while not state.over and step != steps:
        asked = np.flatnonzero(game.asked(state)).tolist()
        state, outcome = game.step(state, legal_actions(game, state, rng), rng)
        record = {key: np.asarray(value).tolist() for key, value in outcome.record.items()}
        rewards, made = outcome.rewards.tolist(), []
        for seat in asked:
            reading = str(rng.choice(OUTCOMES)) if asks else "valid"
            made.append(DecisionRow(step, seat, 1, reading, reading != "valid", rewards[seat]))
            if asks:
                tokens = 300 + 40 * step
                store.attempt(
                    number,
                    AttemptRow(
                        *(step, seat, 0, [], "{}", "stop", "", reading, "", tokens, 12),
                        *(float(rng.gamma(2.0, 0.4)), 7, f"{seats[seat]} at a server"),
                    ),
                )
        finished = np.flatnonzero(outcome.finished).tolist()
        store.step(number, StepRow(step, asked, record, rewards, finished), made)
        step += 1
    if state.over:
        store.end(number)


def write_run(
    path,
    games=GAMES,
    seats="openai:some-model",
    episodes=2,
    steps=-1,
    title="A run",
    params=None,
    void=(),
    asks=True,
):
    """Write a run: `steps` stops each episode early, `void` lists the episodes to end as void."""
    rows = []
    for name in games:
        game = rulebook(name, **(params or {}))
        names = [seats] * game.players if isinstance(seats, str) else seats
        rows.append((name, name, params or {}, names))
    store = Store.create(path, title, {"seed": 5}, rows, [list(range(episodes))] * len(rows))
    rng = np.random.default_rng(3)
    for episode in store.episodes():
        play(store, episode.game, episode.id, episode.game.seats, rng, steps, asks)
        if episode.number in void:
            store.end(episode.id, "a reply broke the rules")
    store.close()
    return path


class Text(HTMLParser):
    """What a reader sees, and every address that the page would load."""

    def __init__(self, html):
        super().__init__()
        self.words, self.loads, self.skip = [], [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.skip = tag == "style"
        wanted = ("src", "href", "xlink:href", "data", "action")
        self.loads += [v for k, v in attrs if k in wanted and not v.startswith("#")]
        if tag in ("script", "link", "iframe", "img", "object"):
            self.loads.append(tag)

    def handle_data(self, data):
        if not self.skip:
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def page(*paths):
    out = build(list(paths), paths[0].parent)
    return out.read_text("utf-8")
