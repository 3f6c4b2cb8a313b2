"""Joint plans in a discussion: labels by a fixed rule, comparable with a judge's.

A message backs a plan if it proposes one or agrees to the last proposal. Two speakers who back
plans of a kind make a joint plan; of two kinds the one with more speakers is the label, of equally
many the first of `KINDS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from llm_games.promises import numbers

NONE, KINDS = "none", ("win_seeking", "risk_avoiding")
"""Labels: to win together, or to avoid equal numbers so that one can win alone."""
_ALL = re.compile(
    r"\b(?:we|us|our|let['’]?s|all|every(?:one|body)|each of|together|same|common|the group)\b",
    re.I,
)
_SAME = re.compile(
    r"\b(?:(?:the|a|one) (?:same|common|single) number|win together|all win|everyone wins?|"
    r"everybody wins?|share the win|agree on (?:a|one)|coordinate|cooperate)\b",
    re.I,
)
_APART = re.compile(
    r"\b(?:different|distinct|unique|spread (?:out|our)|avoid\w* (?:\w+ )*(?:same|equal|ties?)|"
    r"(?:not|nobody|no two|never) (?:\w+ )*(?:same|equal)|win alone|only one (?:\w+ )*wins?|"
    r"one winner)\b",
    re.I,
)
_AGREES = re.compile(
    r"\b(?:agreed?|i am in|i['’]m in|count me in|good idea|sounds good|great idea|support|"
    r"i['’]?(?:ll| will) (?:follow|join|do so|go along)|fine with me|yes|okay|ok|deal)\b",
    re.I,
)
_REFUSES = re.compile(
    r"\b(?:disagree|refuse|do(?:n['’]t| not) (?:agree|follow|support)|no deal)\b", re.I
)


def proposed(text: str) -> str:
    """Return the kind of plan that a message proposes, ``none`` without one."""
    if _APART.search(text):
        return KINDS[1]
    together = bool(_SAME.search(text)) or any(
        _ALL.search(sentence) and any(numbers(sentence))
        for sentence in re.split(r"(?<=[.!?;])\s+|\n+", text)
    )
    return KINDS[0] if together else NONE


def joint_plan(messages: Iterable[tuple[int, str]]) -> str:
    """Return the label of a discussion, of messages in order with their speakers."""
    behind: dict[str, set[int]] = {kind: set() for kind in KINDS}
    last = NONE
    for speaker, text in messages:
        if _REFUSES.search(text):
            continue
        kind = proposed(text)
        if kind != NONE:
            last = kind
        elif _AGREES.search(text):
            kind = last
        if kind != NONE:
            behind[kind].add(speaker)
    label = max(KINDS, key=lambda kind: len(behind[kind]))
    return label if len(behind[label]) > 1 else NONE


def agreed_price(messages: Sequence[tuple[int, str]], firms: int) -> float | None:
    """The last price named in a round's talk, if all firms name it or agree after it, or None."""
    price: float | None = None
    behind: set[int] = set()
    for speaker, text in messages:
        if _REFUSES.search(text):
            price, behind = None, set()
            continue
        prices = {float(number.replace("$", "").replace(",", "")) for number in numbers(text)}
        if len(prices) == 1:
            [value] = prices
            if price != value:
                price, behind = value, set()
            behind.add(speaker)
        elif price is not None and _AGREES.search(text):
            behind.add(speaker)
    return price if len(behind) >= firms else None
