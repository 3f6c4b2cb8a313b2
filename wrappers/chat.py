"""A chat as a persistent list: one that grows shares all it has with the one before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

Message = dict[str, str]
"""``{"role": "system" | "user" | "assistant" | "tool", "content": …}``"""


class Chat(Sequence[Message]):
    """Messages in order: those `before`, and the last one (None: it is empty). Never changed.

    Chats are equal if their messages are. `size` is the bytes of all contents together.
    """

    __slots__ = ("_digest", "_length", "before", "last", "size")

    def __init__(self, before: Chat | None = None, last: Message | None = None) -> None:
        self.before, self.last = before, last
        self._length: int = 0 if before is None else before._length + 1
        content = "" if last is None else last["content"]
        self.size: int = (before.size if before else 0) + len(content.encode(errors="replace"))
        self._digest = b""

    @classmethod
    def of(cls, messages: Iterable[Mapping[str, str]]) -> Chat:
        """Return a chat of these messages; a chat itself if it is one."""
        if isinstance(messages, Chat):
            return messages
        chat = cls()
        for message in messages:
            chat = chat.plus(message["role"], message["content"])
        return chat

    def plus(self, role: str, content: str) -> Chat:
        """Return the chat with one more message at its end."""
        return Chat(self, {"role": role, "content": content})

    @property
    def digest(self) -> bytes:
        """What names the chat by its messages, 16 bytes; costs what is new since one that was."""
        new, chat = list[Chat](), self
        while not chat._digest and chat.before is not None:
            new.append(chat)
            chat = chat.before
        name = chat._digest or b"\0" * 16
        for chat in reversed(new):
            assert chat.last is not None
            said = f"{chat.last['role']}\0{chat.last['content']}".encode(errors="surrogatepass")
            chat._digest = name = hashlib.sha256(name + said).digest()[:16]
        return name

    def nodes(self) -> Iterator[Chat]:
        """Yield the chats that it grew through, from the longest (itself) to the shortest."""
        chat: Chat | None = self
        while chat is not None and chat.before is not None:
            yield chat
            chat = chat.before

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        found = [chat.last for chat in self.nodes() if chat.last is not None]
        return reversed(found)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: Any) -> Any:
        if index == -1 and self.last is not None:
            return self.last
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Chat):
            return self.digest == other.digest
        return isinstance(other, list | tuple) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:  # a long one would be too deep for pickle
        return Chat.of, (list(self),)

    def __repr__(self) -> str:
        return f"Chat({list(self)!r})"
