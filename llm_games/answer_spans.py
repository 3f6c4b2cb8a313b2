"""Whether an object in a text is an answer, the final one, or quoted; see docs/replies.md.

By words of English and a few of other languages; else one in the middle of a sentence is quoted.
"""

from __future__ import annotations

import re

WINDOW = 300  # characters around an object that are looked at
QUOTED, PLAIN, MARKED, FINAL = -1, 0, 1, 2
"""How much an object counts: not at all, by its place, as an answer in words, as the final one."""


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_LAYOUT = " \t\r\n>*_`~|\"'“”‘’«»()[]{}$#•–—\\-+"
_NOISE = _words(
    r"^\s*assistant:?\s*$",
    r"</?[\w|]{1,30}>",
    r"\\?\b(?:boxed|text|mathrm|json|python|print)\b",
    r"^\s*\d+[.)]\s",
)
_SENTENCE = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!\bvs)(?<!P\.S)(?<!\d)[.!?][\"')*_]*\s|[。！？]")
_CLAUSE = re.compile(r"[,;:–—]\s+(?=\S)|，|；|\s-\s")
_CONNECTED = _words(r"^(?:and )?(?:so|thus|hence|therefore|then|accordingly|now|instead)\b")
_GIVEN = _words(
    r"^(?:since|as|because|given|considering|having|after|while|though|although|seeing|knowing)\b[^,]*,$"
)

_FINAL = _words(
    r"\b(?:final|corrected|correction|revised|updated|definitiv\w*|finale|endgültig\w*)\b",
    "最终|最終|итогов|окончательн",
)
_BETTER = _words(
    r"\b(?:actually|instead|better|rather|on reflection|on second thoughts?|in the end)\b",
    r"\b(?:ultimately|after \w* ?(?:thought|thinking|consideration|reflection))\b",
)
_MARKED = _words(
    r"(?:^|\b(?:my|our|the|this is|here is|here's) (?:\w+ )?)(?:answer|reply|response|decision|"
    r"choice|bid|move|action|proposal|plan|vote|contribution|number|target|output|conclusion|mine)"
    r"\b[^,;]{0,40}$",
    r"\bI(?:['’](?:ll|m|d like to)| will| shall| am| do| now| hereby| therefore| thus| choose to| "
    r"decide to| would like to| going to)* (?:answer|bid|play|cho?ose|propose|decide|contribute|"
    r"reply|respond|submit|vote|pick|put|offer|give|name|say|shoot|aim|target|go|settle|stick|"
    r"stay|withdraw|accept|reject|prefer|confirm)\b[^,;]{0,40}$",
    r"^(?:therefore|thus|hence|in conclusion)\W*$",
)
_MINE = _words(r"\W{0,5}(?:is|as|that is|that's) (?:my|the final|our)\b")
_IMAGINED = (
    r"if|unless|suppos\w+|imagin\w+|hypothe\w+|e\.g|example|instance|such as|something like|"
    r"template|of (?:this|the) form|well-formed|draft\w*|wenn|falls|wäre\w*|hätte\w*|"
    r"let(?:['’]s| me| us) (?:\w+[ -])?(?:verify|check|test|compute|calculate)|verify(?:ing)?|"
    r"double-check(?:ing)?|sanity check"
)
_DOUBT = _words(
    rf"\b(?:{_IMAGINED}|could|might|may|maybe|perhaps|probably|never|not|cannot|neither|nor|either|"
    r"instead of|rather than|options?|alternative\w*|scenario|candidates?|ideas?|initial\w*|"
    r"consider(?:ed|ing)?|i thought|thought (?:about|of)|tempt\w*|were|had|before:|würde\w*|"
    r"vielleicht|si|peut-être|quizás|"
    r"previous\w*|earlier|next|yesterday|expect\w*|predict\w*|assum\w+|highest|lowest|minimum|"
    r"maximum|average|winning|(?<!you )asked|want me|too)\b",
    "если|если бы|может быть|如果|假如|也许|可能|もし",
    r"n['’]t\b|(?<!\bI )\bwould\b(?! like| be)|(?<!\bas )(?<!\bas in )(?<!\bas in the )\blast\b",
)
_UNREAL = _words(
    rf"\b(?:{_IMAGINED}|were I|had I)\b",
    r"\b(?:I|we)(?: \w+){0,2} (?:not|never)\b",
    r"(?<!as )\b(?:before|old|last round|yesterday|initial\w*)\W*$",
    "если|如果|假如|もし",
)
_POLITE = _words(
    r"\b(?:would|würde|dirais|diría)\b|['’]d\b"
)  # or a condition, which then stands before it
_OFFERED = _words(r"\b(?:would|or)\b")  # doubtful where the answers of a reply differ
_SOMEBODY = (
    r"\b(?:(?:player|pirate|bidder|opponent|rival|seat|resident|user|assistant)s?"
    r"(?:[\s_]?(?:\d+|[a-z])\b)?|others?|they|he|she|every(?:one|body)|some(?:one|body)|nobody)"
)
_ACTS = (
    r"(?:s(?:ay|aid)\w*|shout\w*|bids?|answer\w*|repl\w+|respon\w+|play\w*|cho?os\w+|chose|go|goes|"
    r"propos\w+|vot\w+|contribut\w+|offer\w*|pick\w*|puts?|submit\w*|g[ai]ves?|announc\w+|do|does|"
    r"did|declar\w+|ha[sd]|have|will|would|went|think\w*|wants?)"
)
_OTHERS = _words(
    rf"^\W*{_SOMEBODY}\W*$",
    rf"^(?!.*\b(?:I|my|is)\b).*{_SOMEBODY}\W{{0,5}}[:=→]\W*$",
    rf"(?:{_SOMEBODY}['’]s?|\b(?:his|hers?|theirs?))\b(?:\W{{1,3}}\w+){{0,4}}\W*$",
    rf"{_SOMEBODY}(?:\W{{1,3}}(?!I\b|my\b)\w+){{0,3}}\W{{1,3}}{_ACTS}\b(?:\W{{1,3}}\w+){{0,2}}\W*$",
)
_LEADING = _words(
    r"[:：=→>,]\W*$",
    rf"\b(?:{_ACTS}|with|like|as|is|was|were|be|to|of|than|try|tried|expect\w*|thought|example)"
    r"(?:\W+(?:me|us|you|him|her|them|now|just|then|that|this))?\W*$",
)
_DOUBT_BEHIND = _words(
    r"^\W{0,5}(?:if|unless|were I|had I|provided|was|is what (?!I\b))\b",
    rf"^\W{{0,5}}(?:(?:by|from|of|says?|said) )?{_SOMEBODY}",
)
_SINCE = _words(r"\W{0,5}(?:because|since)\b")
_OWN = _words(
    r"\b(?:I|my|me|mine|we|our|us|so|then|thus|here|ich|mein\w*|je|mon|ma|yo|mi|eu|io|я|мой)\b",
    "我|私",
)
_RETRACTED = _words(
    r"(?:^|[\n.!?。])\W{0,5}(?:wait\b|hold on\b|h+m+\b|scratch that|on second thoughts?|no[,.!]|"
    r"actually,? (?:no\b|scratch|i\b|let)|correction\b|let me (?:re|correct|think|change))",
    r"^\W{0,5}or\b\W{0,5}\w",
)
_ALTERNATIVE = _words(
    r"^(?:or )?(?:(?:an?|my|another|other|possible) )?"
    r"(?:alternativ\w*|second option|option \w|plan b|backup)(?: \w+){0,3} ?[:：]?$"
)
_KEPT = _words(r"\b(?:keep|confirm|stands|stick|remains?|unchanged)\b")
_WAVERING = _words(
    _RETRACTED.pattern,
    r"(?:^|[\n.!?。])\W{0,5}(?:but|however|although|alternatively|yet)\b",
    r"\b(?:instead|maybe|perhaps|reconsider|actually)\b",
)
_EXPLAINING = _words(
    r"\W{0,9}(?:explanation|explaining|reason|rationale|justification|because|since|this|that|"
    r"with this|here|note|i (?:chose|choose|bid|picked|think|believe|expect)|my)"
)


def standing(text: str, begin: int, end: int, since: int, until: int, differ: bool) -> int:
    """Rank the object at `begin` to `end`, between others' ends: QUOTED, PLAIN, MARKED or FINAL.

    `differ`: the reply has several answers.
    """
    sentence = _sentence_start(text[max(since, begin - WINDOW) : begin])
    clause = "" if _GIVEN.match(sentence) else _CLAUSE.split(sentence)[-1].strip()
    line = text[end : min(until, end + WINDOW)].split("\n", 1)[0]
    rest = _plain(line)
    struck = text[max(0, begin - 2) : begin] == text[end : end + 2] == "~~"
    if struck or line.lstrip(_LAYOUT).startswith(("?", "？")) or _DOUBT_BEHIND.match(rest):
        return QUOTED
    ends_sentence = not rest or rest[0] in ".!;。！"  # its sentence ends with it
    polite = _POLITE.search(clause) is not None
    if clause and not _doubtful(sentence if polite else clause, differ):
        if _FINAL.search(clause) or (ends_sentence and differ and _BETTER.search(sentence)):
            return FINAL
        if _MARKED.search(clause):
            return MARKED
    if not rest and len(sentence.split()) > 3 and not _LEADING.search(sentence):
        return PLAIN  # the text before it does not introduce it
    short = len(clause.split()) < 2
    short = short and not (_GIVEN.match(sentence) or _CONNECTED.match(clause))
    lead = sentence if short or polite else clause
    introduced = sentence.endswith((":", "：", "=", "->", "→"))
    alone = introduced or not _plain(text[max(0, begin - WINDOW) : begin].rsplit("\n", 1)[-1])
    if alone and not differ and len(text) - end < WINDOW and not _plain(text[end:]):
        # It ends the reply: doubts before it are about the game, not about the answer.
        unreal = _UNREAL.search(lead)
        return QUOTED if unreal or _OTHERS.search(clause) else PLAIN
    if _doubtful(lead, differ):
        return QUOTED
    if _MINE.match(line):
        return MARKED
    if not sentence:
        if not differ and _SINCE.match(rest):
            return PLAIN
        return QUOTED if _doubtful(_SENTENCE.split(rest + " ")[0], True) else PLAIN
    scope = clause if _CONNECTED.match(clause) else sentence
    first_person = ends_sentence and _OWN.search(sentence) and not _doubtful(scope, differ)
    return PLAIN if not rest or introduced or first_person else QUOTED


def alternative(text: str) -> bool:
    """Test whether a text ends with a label that introduces an alternative."""
    return _ALTERNATIVE.search(_plain(text[-WINDOW:].rstrip().rsplit("\n", 1)[-1])) is not None


def retracted(behind: str) -> bool:
    return bool(_RETRACTED.search(behind)) and not _KEPT.search(behind)


def undecided(head: str, tail: str, rank: int) -> bool:
    """Test whether a reply that was cut off may not have reached its answer, the last of `rank`."""
    # Decided: it stands first or last, is marked, or an explanation without wavering follows.
    settled = rank > PLAIN or not _plain(head) or not _plain(tail) or _EXPLAINING.match(tail)
    return not settled or "{" in tail or bool(_WAVERING.search(tail))


def _doubtful(words: str, differ: bool) -> bool:
    doubt = _DOUBT.search(words) or _OTHERS.search(words)
    return bool(doubt or (differ and _OFFERED.search(words)))


def _sentence_start(text: str) -> str:
    """Return the unfinished sentence at the end of a text, "" if there is none."""
    *lines, line = text.split("\n")
    words, gap = _plain(line), False
    while not words and lines:
        line = lines.pop()
        words, gap = _plain(line), gap or not line.strip()
        if words and gap and not words.endswith((":", "：")) and not line.lstrip().startswith("#"):
            return ""
    return _SENTENCE.split(words + " ")[-1].strip()


def _plain(line: str) -> str:
    return _NOISE.sub(" ", line).strip(_LAYOUT)
