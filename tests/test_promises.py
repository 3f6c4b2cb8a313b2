"""What texts announce, held against sentences that people labelled, in questions of the games."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from llm_games.promises import PRECISION, RECALL, SENTENCES
from llm_games.questions import MISSING, BadReply, Integer
from llm_games.registry import rulebook

DATA = Path(__file__).parent / "data"
GAMES = {
    "bar": "el_farol_bar",
    "dollar": "divide_dollar",
    "exits": "emergency_evacuation",
    "goods": "public_goods",
    "guess": "beauty_contest",
    "prices": "bertrand_competition",
    "diners": "diners_dilemma",
    "sealed": "sealed_bid_auction",
    "water": "water_allocation",
    "royale": "battle_royale",
}


@cache
def question(game):
    more = {"water": {"balance_start": 500}, "prices": {"a": 20}, "royale": {"players": 4}}
    rules = rulebook(GAMES[game], **more.get(game, {}))
    state = rules.reset(0)
    return rules.question(state, int(np.flatnonzero(rules.asked(state))[0]))


def sentences(name):
    for line in (DATA / name).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            game, label, kind, text = line.split("|", 3)
            yield question(game), label, kind, text


def labelled(asked, label):
    if label == "-":
        return None
    try:
        return asked.read(None if label == "none" else asked.mended(label)[0])
    except BadReply as error:
        return error.action if error.action != MISSING else pytest.fail(f"{label}: {error}")


@pytest.mark.parametrize("name", ["announcements.txt", "announcements_held_out.txt"])
def test_announcements_are_read_as_people_read_them(name, record_property):
    rows, right, missed, proposals = list(sentences(name)), [], 0, []
    for asked, label, kind, text in rows:
        read, meant = asked.announced(text), labelled(asked, label)
        missed += meant is not None and (read is None or read.move != meant)
        if read is not None:
            right.append(read.move == meant)
            proposals += [read.joint == (kind == "joint")] * (read.move == meant)
    precision, recall = np.mean(right), sum(right) / (sum(right) + missed)
    record_property("precision, recall", (float(precision), float(recall)))
    assert precision >= 0.95
    assert recall >= 0.85
    assert np.mean(proposals) >= 0.95
    if "held_out" in name:  # what tables of promises say
        assert (round(precision, 2), round(recall, 2)) == (PRECISION, RECALL)
        assert len(rows) == SENTENCES


def test_own_words_go_before_proposals_and_plans_before_what_may_be_past():
    number = Integer("number", 0, 100)
    assert number.announced("Let's all choose 30! I will choose 40.") == (40, False)
    assert number.announced("Let's all choose 30!") == (30, True)
    assert number.named("I bid 40 and lost. I'll bid 50.") == 50
    assert number.named("I bid 40 and lost.") is None
    assert number.named("大家都选30吧。", anybody=True) == 30


def test_no_text_takes_long():
    for part in ("I ", "really ", "a", "1,", "我", "go to ", "every time ", "word ", "my "):
        began = time.process_time()
        Integer("number", 0, 100).announced(f"I {part * (4000 // len(part))} is 5")
        assert time.process_time() - began < 2, part
