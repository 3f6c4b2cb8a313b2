"""All layers around a client, in the order in which they work together.

From the outside in: `Cache` (what is known is not asked), `Retry` (a failed call leaves its place
to others while it waits), `Ready` (some calls are written down before there is a place), `Metered`
(every try is booked), `Limit` (a place at the server). Of what goes out in batches, `Waves` are in
place of `Ready` and `Limit`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from llm_games.errors import BadParameter
from llm_games.facts import check_integer
from llm_games.wrappers.clients.base import CACHING, Client
from llm_games.wrappers.clients.budget import Budget, Ledger, budget_of, usage_of
from llm_games.wrappers.clients.cache import MEMORY, Cache, ReplyCache, default_path
from llm_games.wrappers.clients.limit import Gates, Limit, Ready
from llm_games.wrappers.clients.metered import Metered
from llm_games.wrappers.clients.retry import Retry, Waits
from llm_games.wrappers.clients.sampled import ReplySampler
from llm_games.wrappers.clients.tokens import Estimator
from llm_games.wrappers.clients.waves import AT_ONCE, WaveRetry, Waves


@dataclass
class Shared:
    """The parts that the clients of one run share."""

    ledger: Ledger = field(default_factory=Ledger)
    replies: ReplyCache | None = None  # none: no cache unless a client asks for it
    use_cache: bool = True  # false: no cache, whatever clients ask for
    gates: dict[Any, Gates] = field(default_factory=dict)  # by model, address and limits
    waits: Waits = field(default_factory=Waits)  # what is waited for now
    waves: dict[Any, Waves] = field(default_factory=dict)  # by model and address


def add_layers(
    client: Client,
    *,
    max_wait: float = 0.0,
    max_in_flight: int | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    batch: bool = False,
    cache: bool | str | Path | None = None,
    samples: int | None = None,
    fresh: float = 0.0,
    nearest: bool = False,
    budget: Budget | Mapping[str, Any] | None = None,
    shared: Shared | None = None,
) -> Client:
    """Put layers around a client.

    Args:
        client: any client.
        max_wait: seconds for which one call waits for its server in all, see `Retry`.
        max_in_flight: calls at the same time, for each event loop, see `Gate`; None: no limit,
            or 64 if there is a limit a minute.
        requests_per_minute, tokens_per_minute: what the server allows, replies included.
        batch: let the calls of a run go out together, as batches at half the price, see `Waves`;
            `max_in_flight` are then batches.
        cache: keep replies and serve them again, see `Cache`; None: only those at temperature 0,
            and only if the run has a cache; False: never; a path: in that file, or ``:memory:``.
        samples: replies kept for each situation, of which one is drawn whenever it comes up, for
            opponents of learners, see `ReplySampler`; they are kept at any temperature.
        fresh: the share of draws that are asked for anew.
        nearest: once a budget has ended, the nearest known situation answers for unknown ones.
        budget: the most to spend, see `Budget`, or its limits by name, such as ``{"calls": 1000}``.
        shared: with other clients, a budget among it; by default nothing is.

    Raises:
        BadParameter: a limit out of range, a budget of money and no price for the model, or
            settings that do not go together.
        CacheError: the file of replies cannot be used.
    """
    if budget is not None and shared is not None:
        raise BadParameter("a budget of its own is for a client that shares none: leave one out")
    if batch and shared is None:
        raise BadParameter("batches are for runs, which keep record of them: leave out batch")
    if samples is None and (fresh or nearest):
        raise BadParameter("fresh and nearest are about samples: set samples, such as samples=4")
    if samples is not None and cache is False:
        raise BadParameter("samples are kept in a cache: leave out cache=False")
    shared = shared or Shared(Ledger(budget_of(budget or {})))
    estimator = Estimator()
    source = str(getattr(client, "base_url", "") or getattr(client, "path", ""))
    limits = (max_in_flight, requests_per_minute, tokens_per_minute)
    if batch:
        _put_into_waves(client, limits, shared, max_wait)
    places = None if batch else max_in_flight
    if not batch and any(limit is not None for limit in limits):
        limits = (64 if max_in_flight is None else max_in_flight, *limits[1:])
        gates = shared.gates.setdefault((client.name, source, limits), Gates(*limits))
        limited = Limit(client, gates, estimator)
        dressed: Client = Ready(Metered(limited, shared.ledger, estimator, places), gates)
    else:
        dressed = Metered(client, shared.ledger, estimator, places)
    dressed = (WaveRetry if batch else Retry)(dressed, max_wait, shared.waits, source)
    if isinstance(cache, str | Path):
        shared = replace(shared, replies=_opened(Path(cache)))
    elif (cache or samples is not None) and shared.use_cache and shared.replies is None:
        shared.replies = _opened(default_path())
    file = shared.replies if shared.use_cache and cache is not False else None
    if file is None:
        return dressed
    how = [getattr(client, "structured", ""), getattr(client, "tool_calls", "")]
    how += sorted({*getattr(client, "leave_out", ())} - {*CACHING})
    cache_arguments = dressed, file, source, " ".join(how)
    if samples is None:
        return Cache(*cache_arguments, always=bool(cache))
    ledger = shared.ledger
    return ReplySampler(
        *cache_arguments, samples=samples, fresh=fresh, nearest=nearest, ledger=ledger
    )


def _put_into_waves(
    client: Any, limits: tuple[int | None, ...], shared: Shared, max_wait: float
) -> None:
    """Let a client's calls go out with those of others that ask the same model."""
    if not hasattr(client, "batches"):
        raise BadParameter(
            f"{client.name} has no batches: leave out batch, which is for anthropic/ and for "
            "servers that speak OpenAI's chat completions"
        )
    most, *rates = limits
    if rates != [None, None]:
        raise BadParameter(
            "requests_per_minute and tokens_per_minute are for calls one by one: leave them out, "
            "or batch; max_in_flight limits the batches under way"
        )
    check_integer("max_in_flight", AT_ONCE if most is None else most, 1)
    key = client.name, client.base_url, most
    if key not in shared.waves:
        shared.waves[key] = Waves(client, most or AT_ONCE, max_wait, shared.waits)
    waves = shared.waves[key]
    client.batches()  # says what does not go together
    waves.clients.append(client)
    client.waves = waves


_files: WeakValueDictionary[Path, ReplyCache] = WeakValueDictionary()


def _opened(path: Path) -> ReplyCache:
    """Return a file of replies, the same to all who name it: who asked what is known to all."""
    path = path if path == MEMORY else path.absolute()
    return _files.get(path) or _files.setdefault(path, ReplyCache(path))


LAYER_SETTINGS = tuple(signature(add_layers).parameters)[1:]
"""What `add_layers` takes besides the client."""


def layers(client: Client) -> Iterator[Client]:
    """Return a client and those inside it, from the outside in."""
    inside: Client | None = client
    while inside is not None:
        yield inside
        inside = getattr(inside, "client", None)


def ledger_of(client: Client) -> Ledger | None:
    """Return the books in which a client's calls are entered, if there are any."""
    return next((layer.ledger for layer in layers(client) if isinstance(layer, Metered)), None)


def books_of(clients: Iterable[Client]) -> list[Ledger]:
    """Return the books of several clients, each once."""
    ledgers = {id(ledger): ledger for client in clients if (ledger := ledger_of(client))}
    return list(ledgers.values())


def spent(clients: Iterable[Client]) -> list[Any]:
    """Return these clients' usage, ledger by ledger, as plain values for `booked`."""
    books = books_of(clients)
    return [[(*pair, usage.plain()) for pair, usage in ledger.pairs.items()] for ledger in books]


def booked(
    clients: Iterable[Client], records: Sequence[Any], ledgers_booked: Collection[Ledger] = ()
) -> None:
    """Book what `spent` returned, against budgets again, but in books that have it already.

    Raises:
        BadParameter: these clients have another number of books.
    """
    books = books_of(clients)
    if len(books) != len(records):
        raise BadParameter(
            f"there are the books of {len(records)} budgets, and the opponents have {len(books)}: "
            "go on with those of before"
        )
    for ledger, pairs in zip(books, records, strict=True):
        for model, seat, usage in [] if ledger in ledgers_booked else pairs:
            ledger.book(model, seat, usage_of(usage))


def tally(clients: Iterable[Client]) -> dict[str, float]:
    """Return the costs of clients since they were made, and their savings by the cache.

    ``hits`` are stored replies, ``near`` those to the nearest known situation, ``hit_rate`` the
    share of both; ``calls``, ``failures``, ``tokens_in``, ``tokens_out`` and ``money`` are of those
    asked for; ``waited`` are seconds for which servers were down, or refused calls as too many.
    """
    clients = list(clients)
    caches = {id(c): c for client in clients for c in layers(client) if isinstance(c, Cache)}
    hits = sum(cache.hits for cache in caches.values())
    near = sum(getattr(cache, "near", 0) for cache in caches.values())
    asked = sum(cache.misses for cache in caches.values())
    spent = [vars(ledger.total) for ledger in books_of(clients)]
    names = "calls", "failures", "tokens_in", "tokens_out", "money"
    costs = {name: float(sum(usage[name] for usage in spent)) for name in names}
    rate = (hits + near) / max(1, hits + near + asked)
    waits = {id(c.waits): c.waits for k in clients for c in layers(k) if isinstance(c, Retry)}
    costs["waited"] = sum(wait.past for wait in waits.values())
    return {"hits": hits, "near": near, "hit_rate": rate, **costs}
