"""The fixed rules by which a text announces a move, so that words can be compared with play.

A text falls into sentences, these into clauses, each with its subject. An announcement is a clause
whose speaker says what it will do, or proposes what all are to do; none asks, supposes, guesses,
denies, or tells what was. How people say so in English and Chinese stands in `speech_forms`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from llm_games import speech_forms as forms

PRECISION, RECALL, SENTENCES = 0.98, 0.94, 279
"""How sure the reader is: of what it took for announcements in sentences labelled by hand, which
its rules were written without, this share was some, and it knew this share of those that were."""

_SENTENCES = re.compile(r"(?<=[.!?;])(?:\s+|(?=[^\x00-\x7f]))|(?<=[。!?;])|\n+")
_OPEN = re.compile(
    r"\?|\b(?:not|never|no longer|cannot|neither|nor|instead of|rather than|if|unless|suppose|"
    r"would|could|might|maybe|perhaps)\b|n['’]t\b|不|别|没|如果|要是|[吗呢]$",
    re.IGNORECASE,
)
_NUMBERS = re.compile(
    r"(?<![\w.,#–-])(?<!\bplayer )(?<!\bround )(?<!\bturn )"
    r"[+-]?\$?\d[\d,_]*(?:\.\d+)?(?![\w%]|[–-]\d)",
    re.IGNORECASE | re.ASCII,
)
_LISTED = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s+")
_QUOTED = re.compile(
    r"(\b(?:says?|said|told \w+|claim\w*|wrote|announced|asked)[,:]? )\"[^\"]*\"", re.IGNORECASE
)
_LABELLED = re.compile(rf"\b(my (?:\w+ ){{0,3}}{forms.NOUN}):", re.IGNORECASE)
_FUTURE = re.compile(forms.TO, re.IGNORECASE)
_WILL_FIRST = re.compile(
    r"^(?:\w+ly |then |also |now )?(?:will|'ll|shall|am going to)\b", re.IGNORECASE
)
_VERB_FIRST = re.compile(rf"^(?:then |also |now )?(?:{forms.VERBS})\b", re.IGNORECASE)
_DOING_FIRST = re.compile(rf"^(?:then |also |now )?(?:{forms.DOING})\b", re.IGNORECASE)
_DOUBTS = forms.HEDGE, forms.LATER, forms.NEGATION, forms.PAST
_HAN = re.compile(r"[\u4e00-\u9fff]")


class Announcement(NamedTuple):
    """The move that a text announces; `joint`: the speaker proposes it for all, itself included."""

    move: Any
    joint: bool = False


OWN, PLAIN, JOINT, WISH, BARE = range(5)
"""How clearly: it says what it will do, or does or did; what all are to do; what it would do; or
only a move."""


def announced(
    text: str, mentioned: Callable[[str], Iterable[Any]], opposite: Callable[[Any], Any]
) -> Announcement | None:
    """Return what a text announces, None if nothing: the first of its clearest words.

    `mentioned` yields the legal moves of some words; `opposite` returns what one does who says that
    it won't make a move, or with None any; None where that is open.
    """
    reader = _ClauseReader(mentioned, opposite)
    read = [word for sentence in sentences(text) for word in reader.read(sentence)]
    rank, move = min(read, key=lambda word: word[0], default=(BARE, None))
    return None if move is None else Announcement(move, rank == JOINT)


def mentions(text: str, mentioned: Callable[[str], Iterable[Any]]) -> Any:
    """Return the one move of which a text speaks, whoever is to make it; None for several."""
    statements = (sentence for sentence in _SENTENCES.split(text) if not _OPEN.search(sentence))
    moves = {move for sentence in statements for move in mentioned(sentence)}
    return moves.pop() if len(moves) == 1 else None


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, with plain signs and numbers in digits."""
    plain = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    plain = re.sub(r"\ball in\b", "all-in", plain, flags=re.IGNORECASE)
    plain = re.sub(r"[*`]", "", re.sub(r"[“”「」]", '"', plain))
    plain = _QUOTED.sub(r"\1", plain).replace('"', "")
    for sentence in _SENTENCES.split(forms.in_digits(plain)):
        if stripped := _LISTED.sub("", sentence).strip():
            yield _LABELLED.sub(r"\1 is", stripped)


class _ClauseReader(NamedTuple):
    """Reads sentences for the moves of one question; methods return (clearness, move)."""

    mentioned: Callable[[str], Iterable[Any]]
    opposite: Callable[[Any], Any]

    def read(self, sentence: str) -> Iterator[tuple[int, Any]]:
        """Yield what the clauses of a sentence announce, up to where it supposes something."""
        subject = ""
        for part in forms.APART.split(_stated(sentence)):
            clauses = [c for c in map(_trimmed, forms.CLAUSES.split(part)) if c]
            supposed = any(forms.CONDITION.search(_spoken(clause)[1]) for clause in clauses)
            if supposed or forms.THREAT.search(part):
                clauses = [clause for clause in clauses if forms.LETS.match(clause)]
            if "?" in part:
                clauses = [] if forms.QUESTION.search(part.replace("?", "")) else clauses[:-1]
            lead = before = ""
            for clause, behind in pairwise([*clauses, ""]):
                whole = f"{lead}{_completed(clause, subject)}"
                clause_reader = self._chinese if _HAN.search(clause) else self._english
                word = clause_reader(whole, subject)
                if forms.SAME.search(clause) and (word is None or word[1] is None):
                    word = self._meaning(self._move(before))._english(whole, subject)
                before = clause
                went_on = word and word[0] == PLAIN and forms.WENT_ON.match(behind)
                is_part = word and word[0] == BARE and behind and not re.search(r"\d", clause)
                if word is not None and word[1] is not None and not (went_on or is_part):
                    yield word
                lead = f"{clause}, " if forms.WHEN.match(clause) else ""
                subject = _subject(whole) or subject

    def _meaning(self, move: Any) -> _ClauseReader:
        """Return a reader to whom all words speak of one move, or of none."""
        return self._replace(mentioned=lambda words: () if move is None else (move,))

    def _english(self, clause: str, previous: str) -> tuple[int, Any] | None:
        proposal = forms.PROPOSES.search(clause)
        if proposal is None:
            request = forms.REQUEST.search(clause)
            intent = forms.OWN.search(clause, request.end() if request else 0)
            if intent:
                is_plain = forms.MAYBE_PAST.match(clause[intent.end() :])
                will = _FUTURE.search(intent[0])
                if (move := self._intended(clause, intent)) is not None:
                    return PLAIN if is_plain and not will else OWN, move
            if request:
                return None
            proposal = forms.JOINT.search(clause)
        if proposal and not forms.ELSE.search(clause):
            return JOINT, self._proposed(clause, proposal)
        if intent := forms.WISH.search(clause):
            return WISH, self._intended(clause, intent)
        if any(f.search(clause) for f in (*_DOUBTS, forms.BELIEF, forms.REPORT)):
            return None
        behind = forms.AFTER.search(clause)
        if behind and not forms.WHO.search(forms.IT_IS.sub("", clause[: behind.start()])):
            return OWN, self._move(clause)
        if previous != "other" and forms.BARE.match(clause) and not _VERB_FIRST.match(clause):
            return BARE, self._move(clause)
        return None

    def _intended(self, clause: str, intent: re.Match[str]) -> Any:
        """Return the move of a clause in which its speaker is the one who acts."""
        lead, whole, rest = _spoken(clause, intent)
        if forms.REPORT.search(lead) or forms.HEDGE.search(whole) or forms.LATER.search(whole):
            return None
        is_meant = _FUTURE.search(intent[0]) or forms.MUST.search(intent[0])
        if forms.BELIEF.search(lead) and not is_meant:
            return None
        decides = forms.DECIDES.search(whole)
        is_future = (_FUTURE.search(intent[0]) and not decides) or forms.COMING.search(clause)
        if not is_future and (
            forms.LONG_AGO.search(whole) or (forms.PAST.search(whole) and not decides)
        ):
            return None
        if forms.NEGATION.search(whole) and not forms.NONE.search(rest):
            return self._denied(whole)
        return self._move(rest)

    def _denied(self, clause: str) -> Any:
        move = self._move(clause)
        denial = forms.DECLINED if move is None else forms.OPPOSED
        return self.opposite(move) if denial.search(clause) else None

    def _proposed(self, clause: str, proposal: re.Match[str]) -> Any:
        """Return the move of a clause in which its speaker proposes what all do."""
        lead, whole, rest = _spoken(clause, proposal)
        if forms.REPORT.search(lead) or (
            forms.BELIEF.search(lead) and not forms.URGES.search(clause)
        ):
            return None
        if any(f.search(whole) for f in (*_DOUBTS, forms.LONG_AGO)):
            return None
        return self._move(rest)

    def _chinese(self, clause: str, previous: str) -> tuple[int, Any] | None:
        if forms.HAN_ORDERS.search(clause):
            return None
        intent = forms.HAN_OWN.search(clause) or forms.HAN_MY.search(clause)
        if not intent and not forms.HAN_OTHERS.search(clause):
            act = forms.HAN_ACT if previous == "own" else forms.HAN_NOBODY
            intent = act.search(clause)
        proposal = forms.PROPOSES.search(clause) or (not intent and forms.JOINT.search(clause))
        if previous == "joint" and not intent and not forms.HAN_OTHERS.search(clause):
            proposal = proposal or re.match("都", clause)
        if proposal and (forms.ELSE.search(clause) or not forms.HAN_ACT.search(clause)):
            return None
        start = proposal or intent or forms.BARE.match(clause)
        if not start or self._is_open_chinese(clause, intent, start):
            return None
        _, whole, _ = _spoken(clause, start)
        rank = JOINT if proposal else OWN if intent else BARE
        if forms.NEGATION.search(whole) and not forms.NONE.search(whole):
            return rank, self._denied(whole) if rank == OWN else None
        nothing = forms.NONE.search(whole)
        return rank, self._move(whole if nothing else whole[start.start() :])

    def _is_open_chinese(
        self, clause: str, intent: re.Match[str] | None, start: re.Match[str]
    ) -> bool:
        belief = forms.BELIEF.search(clause)
        if belief and not (intent and intent.end() > belief.end() + 1):
            return True
        lead, whole, _ = _spoken(clause, start)
        if forms.REPORT.search(lead) or forms.HEDGE.search(whole) or forms.LATER.search(whole):
            return True
        did = forms.HAN_DID.search(clause) and not re.search(r"了吧?$", clause)
        return bool(did or (forms.LONG_AGO.search(clause) and not forms.HAN_WILL.search(clause)))

    def _move(self, words: str) -> Any:
        """Return the first move of some words, None if these leave it open."""
        words = forms.CHANGED.sub(r"\1", words)
        if forms.SPAN.search(words) or forms.EITHER.search(words):
            return None
        plain = forms.ASIDE.sub(" ", forms.WHOLE.sub(" ", words))
        moves = list(dict.fromkeys(self.mentioned(plain)))
        if len(moves) < 2:
            return moves[0] if moves else None
        for end in re.finditer(r"(?<=\w)\b|$", plain):
            if early := list(dict.fromkeys(self.mentioned(plain[: end.start()]))):
                return early[0] if len(early) == 1 else None
        return None


def _stated(sentence: str) -> str:
    """Return a sentence without the question that merely asks for consent."""
    stated = forms.HAN_ASKS_ALL.sub(r"\1", forms.TAG.sub(".", sentence))
    if forms.ASKS_ALL.match(stated):
        stated = forms.ASKS_ALL.sub("let's ", stated).replace("?", "")
    return stated


def _trimmed(clause: str) -> str:
    plain = forms.IDIOMS.sub(" ", clause)
    return re.sub(r"\s+", " ", plain).strip(" .,!?;:。、")


def _completed(clause: str, subject: str) -> str:
    """Give a clause without a subject the one before it."""
    subject_word = {"own": "I", "joint": "we"}.get(subject)
    if subject_word is None or _HAN.search(clause):
        return clause
    if _WILL_FIRST.match(clause) or _VERB_FIRST.match(clause):
        return f"{subject_word} {clause}"
    return f"I'm {clause}" if subject_word == "I" and _DOING_FIRST.match(clause) else clause


def _subject(clause: str) -> str:
    """Return whose clause it is: ``own``, ``past``, ``joint``, ``other``, "" if nobody's."""
    match = forms.WHO.search(clause)
    if match is None:
        return ""
    if forms.REQUEST.search(clause):
        return "other"
    if re.match(r"we\b|let|our\b|咱|大家|我们", clause[match.start() :], re.IGNORECASE):
        return "joint"
    if re.match(r"(?:i|my|mine|me)\b|我", match[0], re.IGNORECASE):
        return "past" if forms.PAST.search(clause) else "own"
    return "other"


def _spoken(clause: str, start: re.Match[str] | None = None) -> tuple[str, str, str]:
    """Return a clause before `start`, all of it up to where it gives reasons, and that from there.

    What is announced is said by then.
    """
    begin = start.end() if start else 0
    tail = forms.TAIL.search(clause, begin)
    whole = clause[: tail.start()] if tail else clause
    return clause[: start.start()] if start else "", whole, whole[begin:]


def numbers(sentence: str) -> Iterator[str]:
    """Yield the numbers of a sentence as they stand there, but for players and rounds."""
    return (match[0].rstrip(",_") for match in _NUMBERS.finditer(sentence))


def share(sentence: str) -> float | None:
    """Return the share of all one has that a sentence speaks of, 0 for nothing; None without."""
    for share, form in ((0.0, forms.NONE), (1.0, forms.ALL), (0.5, forms.HALF)):
        if form.search(sentence):
            return share
    return None


def holds(sentence: str, word: str) -> bool:
    """Test for a word in a sentence; only a single letter must have its own capital."""
    if form := forms.FORMS.get(word):
        return form.search(sentence) is not None
    if word.casefold() not in sentence.casefold():  # most are not: fast
        return False
    flags = re.NOFLAG if len(word) == 1 else re.IGNORECASE
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", sentence, flags | re.ASCII) is not None
