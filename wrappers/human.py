"""A person at the terminal as a player: reads what a language model would, answers in a line."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Awaitable, Callable
from contextlib import suppress

from llm_games.errors import LLMGamesError
from llm_games.questions import Question
from llm_games.replies import Reply, read_reply
from llm_games.view import View, Who
from llm_games.wrappers.clients.base import Completion, Request
from llm_games.wrappers.dialogue import ChatMemory
from llm_games.wrappers.llm_policy import Cut, LLMPolicy

MEANT = dict.fromkeys(("none", "nothing", "nobody", "pass", "withdraw", "miss"), "null")
"""What a person may say, in JSON, besides the words that a question offers."""
MEANT |= {"yes": '"accept"', "y": '"accept"', "no": '"reject"', "n": '"reject"'}


class PersonLeft(LLMGamesError):
    """The person has closed the input (Ctrl-D)."""


class HumanClient:
    """Asks a person until the answer is legal; `read` gives the next line, `write` shows a text."""

    def __init__(
        self,
        read: Callable[[], Awaitable[str]] | None = None,
        write: Callable[[str], None] | None = None,
        name: str = "human",
    ) -> None:
        self.name, self._read, self._write = name, read or read_line, write or show
        self._shown: set[tuple[Who, str]] = set()
        self._turn = asyncio.Lock()

    async def complete(self, request: Request) -> Completion:
        """Show news, and return the answer in its canonical form; PersonLeft if input has ended."""
        async with self._turn:  # two seats of one person, one after the other
            rules = [m["content"] for m in request.messages[:-1] if m["role"] == "system"]
            seat = request.who._replace(step=0, call=0)
            fresh = [text for text in rules if (seat, text) not in self._shown]
            self._shown |= {(seat, text) for text in fresh}
            for text in (*fresh, request.messages[-1]["content"]):
                self._write(f"\n{text}")
            if request.question is not None:
                wanted = re.sub(r"\bnull\b", '"none"', request.question.wanted())
                self._write(f"(A bare answer will do: {wanted}. Ctrl-D leaves.)")
            while True:
                try:
                    line = await self._read()
                except EOFError:
                    raise PersonLeft("the player has left the table") from None
                if request.question is None:
                    return Completion(line, model=self.name)
                reply = read_answer(line, request.question)
                if reply.outcome == "valid":
                    return Completion(request.question.reply(reply.action), model=self.name)
                if line.strip():
                    self._write(f"{reply.why}. Try again.")

    async def close(self) -> None:
        """Nothing to let go of."""


class HumanPolicy(LLMPolicy):
    """A person on a seat, by default at the terminal; the wording is chosen as in `LLMPolicy`."""

    def __init__(
        self,
        client: HumanClient | None = None,
        *,
        prompts: str = "v1",
        prompt_folder: str | None = None,
    ) -> None:
        super().__init__(
            client or HumanClient(),
            prompts=prompts,
            prompt_folder=prompt_folder,
            memory="none",  # a terminal shows what was said before
            max_attempts=1,  # the client asks until the answer is legal
        )

    async def _asides(self, view: View, memory: ChatMemory, calls: int) -> Cut:
        """Ask a person for moves and speeches alone."""
        return Cut(memory)


def read_answer(line: str, question: Question) -> Reply:
    """Read a person's line: a JSON object as a model would write it, or the bare value.

    That is also a word of `MEANT`, or numbers in a row for those with names: ``99, 0, 1``.
    """
    whole = read_reply(line, question)
    if whole.outcome != "unparsable" or f'"{question.key}"' in line:
        return whole
    bare = line.strip()
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        bare = json.dumps(bare)
    candidates = [bare, MEANT.get(line.strip(" .!").lower(), bare), json.dumps(line)]
    names, numbers = question.value_schema().get("properties", ()), re.findall(r"[^\s,;]+", line)
    if len(names) == len(numbers := [number.strip("[]()") for number in numbers]):
        candidates.append(json.dumps(dict(zip(names, numbers, strict=True))))
    replies = [read_reply(f'{{"{question.key}": {value}}}', question) for value in candidates]
    order = ("unparsable", "out_of_range", "valid")  # the best, of equals the first
    return max(replies, key=lambda reply: order.index(reply.outcome))


def show(text: str) -> None:
    """Print a text whose lines are broken between words, at the terminal's width."""
    width = shutil.get_terminal_size().columns
    for line in text.split("\n"):
        print(textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False))


async def read_line() -> str:
    """Read a line while other players think and Ctrl-C works; EOFError if there are no more."""
    print("> ", end="", flush=True)
    if sys.stdin.isatty():
        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        with suppress(NotImplementedError):  # Windows: the line is waited for where it is read
            loop.add_reader(sys.stdin, typed.set)
            try:
                await typed.wait()
            finally:
                loop.remove_reader(sys.stdin)
    line = sys.stdin.readline()
    if not line:
        print()
        raise EOFError
    return line.rstrip("\n")
