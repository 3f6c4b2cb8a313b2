"""All layers around a client, in the order in which they work together.

From the outside in: `Cache` (what is known is not asked), `Retry` (a failed call leaves its place
to others while it waits), `Limit` (a place at the server), `Metered` (every try is booked).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from llm_games.wrappers.clients.base import Client
from llm_games.wrappers.clients.budget import Ledger
from llm_games.wrappers.clients.cache import Cache, ReplyCache, default_path
from llm_games.wrappers.clients.limit import Gates, Limit
from llm_games.wrappers.clients.metered import Metered
from llm_games.wrappers.clients.retry import Retry, Waits
from llm_games.wrappers.clients.tokens import Estimator


@dataclass
class Shared:
    """What the clients of one run have in common."""

    ledger: Ledger = field(default_factory=Ledger)
    replies: ReplyCache | None = None
    """None: no cache unless a client asks for it"""
    use_cache: bool = True
    """False: no cache, whatever clients ask for"""
    gates: dict[Any, Gates] = field(default_factory=dict)
    """of each server, by model, address and limits"""
    waits: Waits = field(default_factory=Waits)
    """what is waited for now"""


def dress(
    client: Client,
    *,
    max_wait: float = 0.0,
    max_in_flight: int | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    cache: bool | None = None,
    shared: Shared | None = None,
) -> Client:
    """Put layers around a client.

    Args:
        client: any client.
        max_wait: seconds for which one call waits for its server in all, see `Retry`.
        max_in_flight: calls at the same time, for each event loop, see `Gate`; None: no limit,
            or 64 if there is a limit a minute.
        requests_per_minute, tokens_per_minute: what the server allows, replies included.
        cache: keep replies and serve them again, see `Cache`; None: only those at temperature 0,
            and only if the run has a cache; False: never.
        shared: with other clients; by default nothing is.

    Raises:
        BadParameter: a limit out of range, or a budget of money and no price for the model.
        CacheError: the file of replies cannot be used.
    """
    shared, estimator = shared or Shared(), Estimator()
    source = str(getattr(client, "base_url", "") or getattr(client, "path", ""))
    dressed: Client = Metered(client, shared.ledger, estimator, max_in_flight)
    limits = (max_in_flight, requests_per_minute, tokens_per_minute)
    if any(limit is not None for limit in limits):
        limits = (64 if max_in_flight is None else max_in_flight, *limits[1:])
        gates = shared.gates.setdefault((client.name, source, limits), Gates(*limits))
        dressed = Limit(dressed, gates, estimator)
    dressed = Retry(dressed, max_wait, shared.waits, source)
    if cache and shared.use_cache and shared.replies is None:
        shared.replies = ReplyCache(default_path())
    if cache is not False and shared.use_cache and shared.replies is not None:
        how = [getattr(client, "structured", ""), getattr(client, "tool_calls", "")]
        how += sorted(getattr(client, "leave_out", ()))
        dressed = Cache(dressed, shared.replies, source, bool(cache), " ".join(how))
    return dressed


LAYER_SETTINGS = tuple(signature(dress).parameters)[1:]
"""What `dress` takes besides the client."""


def layers(client: Client) -> Iterator[Client]:
    """Return a client and those inside it, from the outside in."""
    inside: Client | None = client
    while inside is not None:
        yield inside
        inside = getattr(inside, "client", None)


def ledger_of(client: Client) -> Ledger | None:
    """Return the books in which a client's calls are entered, if there are any."""
    return next((layer.ledger for layer in layers(client) if isinstance(layer, Metered)), None)
