"""A chat as a persistent list: one that grows shares all it has with the one before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar, overload

Message = dict[str, str]  # ``{"role": "system" | "user" | "assistant" | "tool", "content": …}``
T = TypeVar("T")


def byte_count(text: str) -> int:
    """Return the bytes of a text in UTF-8; that of ASCII is known without encoding it."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


class Grown(Generic[T]):
    """A list that is never changed: the list `before`, and the `last` entry (None: it is empty)."""

    __slots__ = ("_length", "before", "last")

    def __init__(self, parent: Self | None, last: T | None) -> None:
        self.before, self.last = parent, last
        self._length: int = 0 if parent is None else parent._length + 1

    def nodes(self) -> Iterator[Self]:
        """Yield the lists that it grew through, from the longest (itself) to the shortest."""
        node: Self | None = self
        while node is not None and node.before is not None:
            yield node
            node = node.before

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return reversed([node.last for node in self.nodes() if node.last is not None])


class Chat(Grown[Message], Sequence[Message]):
    """Messages in order, equal if these are; `size` is the bytes of all contents together."""

    __slots__ = ("_digest", "size")

    def __init__(self, parent: Chat | None = None, last: Message | None = None) -> None:
        super().__init__(parent, last)
        content = "" if last is None else last["content"]
        self.size: int = (parent.size if parent else 0) + byte_count(content)
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
        return Chat(self, {"role": role, "content": content})

    @property
    def digest(self) -> bytes:
        """A hash of the messages, 16 bytes; costs only what is new since a hashed ancestor."""
        new, chat = list[Chat](), self
        while not chat._digest and chat.before is not None:
            new.append(chat)
            chat = chat.before
        name = chat._digest or b"\0" * 16
        for chat in reversed(new):
            assert chat.last is not None
            text = f"{chat.last['role']}\0{chat.last['content']}".encode(errors="surrogatepass")
            chat._digest = name = hashlib.sha256(name + text).digest()[:16]
        return name

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
