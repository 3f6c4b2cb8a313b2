"""A game as an environment of OpenEnv 0.10: agents sit down over its WebSocket.

``app = make_app("public_goods", opponents="rational")`` is the server's; ``llm-games openenv init``
writes a project around it. A session is one seat at a table of its own, or of one that several
sessions share. OpenEnv needs an environment of its own, as it excludes ``mcp`` 2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from openenv.core import Action, ConcurrencyConfig, Environment, Observation, State, create_app
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field

from llm_games import game_rooms as rooms
from llm_games.baselines.players import make_player, rule_of
from llm_games.errors import BadParameter, LLMGamesError, NotReady, unknown, unknown_keyword
from llm_games.facts import check_integer, check_number
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Rulebook
from llm_games.version import __version__
from llm_games.view import Sight
from llm_games.wrappers.outside_table import OutsideTable, outside_player
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.together import run_sync

LIMIT = 20.0  #: seconds of a turn at a shared table, and for which its seats are waited for
PATIENCE = 30.0  #: seconds for which a reset or step waits; OpenEnv's client gives up after 60
IDLE = 3600.0  #: seconds after which a silent session is closed
LARGEST = 64 * 1024  #: bytes of a message
MOST_PLAYERS, MOST_STEPS = 100, 10_000  #: of a game that a client may ask for
LOCAL = ("127.0.0.1", "localhost", "::1")
WORDS = ("seed", "episode_id", "game", "seat", "opponents", "parameters", "table", "outside")
LATE = "the limit of time passed"


class GameAction(Action):
    """An answer: the text that a language model would write, such as ``{"number": 3}``."""

    reply: str = Field(max_length=20_000, description="the JSON object that was asked for, as text")
    turn: int | None = Field(None, description="the turn that it answers; None: the last one read")


class GameObservation(Observation):
    """What a seat reads and is asked; reward is what was paid since the last observation."""

    text: str = Field("", description="what is new since the last observation, with the question")
    reply_schema: dict[str, Any] | None = Field(None, description="JSON schema of a legal reply")
    numbers: dict[str, float] = Field({}, description="what the seat knows, in numbers")
    kind: str = Field("", description="what is asked for: a move, a speech, or a question beside")
    turn: int = Field(0, description="counts what this seat was asked")
    seat: int = 0
    asked: bool = Field(False, description="a reply is waited for; if not, step with any to wait")
    outcome: str | None = Field(
        None, description='how the reply was read: "valid", "unparsable", "out_of_range", "late"'
    )
    why: str = Field("", description="what was wrong with it")
    action: Any = Field(None, description="what was played last, as the game counts it")
    broke: bool = Field(False, description="it broke a rule, and the declared move was played")
    payoff: float = Field(0.0, description="what the seat got in this game so far")


class GameState(State):
    """A session's game; `messages` is all that a language model would have been sent by now."""

    game: str = ""
    parameters: dict[str, Any] = Field({})
    seed: int | None = None
    seat: int | None = None
    table: str | None = None
    turn: int = 0
    over: bool = False
    payoff: float = 0.0
    messages: list[dict[str, str]] = Field([])


# -- what a server offers, and its tables ----------------------------------------------------------


class Offer:
    """What a server lets its clients play; see `make_app`."""

    def __init__(
        self,
        game: str,
        parameters: Mapping[str, Any],
        opponents: str | Sequence[str],
        allowed: Sequence[str],
        *,
        limit: float,
        player: Mapping[str, Any],
    ) -> None:
        check_number("limit", limit, 0.1)
        self.rules, self.parameters = rulebook(game, **parameters), dict(parameters)
        self.game, self.opponents, self.allowed = self.rules.name, opponents, set(allowed)
        self.limit, self.player = limit, outside_player(**player)
        self.tables: dict[str, SharedTable] = {}
        self.inside(self.rules, None, self.rules.players - 1)

    def game_of(
        self, name: str | None, parameters: Mapping[str, Any] | None
    ) -> tuple[Rulebook, dict[str, Any]]:
        """Return the rules that a client asked for, with all parameters that were named.

        Raises:
            BadParameter, UnknownName: there is no such game, or it is too large for a stranger.
        """
        if parameters is not None and not isinstance(parameters, Mapping):
            raise BadParameter(f'parameters must be such as {{"players": 3}}, got {parameters!r}')
        if name is None and parameters is None:
            return self.rules, self.parameters
        plain = str(name or self.game).removesuffix("-v0").removesuffix("_v0")
        if plain not in rooms.ROOMS:  # never a module of the client's choice
            raise unknown("game", plain, rooms.ROOMS)
        chosen = {**(self.parameters if plain == self.game else {}), **(parameters or {})}
        players = chosen.get("players", 1)
        if isinstance(players, int) and players > MOST_PLAYERS:
            raise BadParameter(f"players must be at most {MOST_PLAYERS} here, got {players}")
        rules = rulebook(game_class(plain), **chosen)
        if rules.players > MOST_PLAYERS or (rules.length() or 0) > MOST_STEPS:
            most = f"{MOST_PLAYERS} players and {MOST_STEPS} steps"
            raise BadParameter(f"a game here has at most {most}: {rules.players}, {rules.length()}")
        return rules, chosen

    def inside(self, rules: Rulebook, names: Any, count: int) -> list[Policy]:
        """Return the players of the seats that are not outside's, in order.

        Raises:
            BadParameter: a client named one that is neither by rule nor allowed, or too few.
        """
        asked = names is not None
        if not asked:
            names = self.opponents if isinstance(self.opponents, str) else self.opponents[:count]
        listed = [names] * count if isinstance(names, str) else names
        if not isinstance(listed, list | tuple) or not all(isinstance(n, str) for n in listed):
            raise BadParameter(f"opponents must be a player's name, or several, got {names!r}")
        if len(listed) != count:
            raise BadParameter(
                f"opponents must be one name or {count} (the seats inside), got {len(listed)}"
            )
        for name in listed if asked else ():
            if name not in self.allowed and rule_of(name.partition(":")[0], rules.name) is None:
                able = ", ".join(["any player by rule", *sorted(self.allowed)])
                raise BadParameter(f"opponent {name!r} is not allowed at this server: {able}")
        players = {name: make_player(name, rules) for name in dict.fromkeys(listed)}
        return [players[name] for name in listed]


class SharedTable:
    """A table at which one or more sessions sit.

    It begins when `wanted` have sat down, or the limit has passed: a seat that nobody took is
    played by the declared move until somebody takes it.
    """

    def __init__(self, offer: Offer, name: str | None, wanted: int, asked: dict[str, Any]) -> None:
        self.offer, self.name, self.wanted, self.asked = offer, name, wanted, asked
        self.rules, self.parameters = offer.game_of(asked["game"], asked["parameters"])
        check_integer("outside", wanted, 1, self.rules.players)
        if asked["seed"] is not None:
            check_integer("seed", asked["seed"], 0)
        self.policies = offer.inside(self.rules, asked["opponents"], self.rules.players - wanted)
        self.taken: set[int] = set()
        self.free: set[int] = set()  #: outside seats of a game that began without them
        self.late: set[int] = set()  #: seats whose turn passed since they read last
        self.table: OutsideTable | None = None
        self._playing, self._changed = asyncio.Lock(), asyncio.Event()
        self._fault: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timed: Sight | None = None  # the state that the timer is for
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def over(self) -> bool:
        """The game has ended for all who sit here, so that another may begin by this name."""
        table = self.table
        return table is not None and all(map(table.is_over, self.taken))

    def check_same(self, asked: Mapping[str, Any]) -> None:
        """Raise BadParameter if a later session asks for another game than the first."""
        for word, value in asked.items():
            if value is not None and value != self.asked[word]:
                fault = f"{word} is {self.asked[word]!r} at table {self.name!r}, not {value!r}"
                raise BadParameter(f"{fault}: leave it out, or take another table")

    def sit_down(self, seat: int | None) -> int:
        """Take a seat (None: the first that is free), and begin if all are there."""
        every = {*range(self.rules.players)}
        free = every - self.taken if self.table is None else self.free
        if not free:
            raise BadParameter(f"table {self.name!r} has begun, and no seat is free")
        seat = min(free) if seat is None else seat
        check_integer("seat", seat, 0, self.rules.players - 1)
        if seat not in free:
            raise BadParameter(f"seat {seat} of table {self.name!r} is not free: {sorted(free)}")
        self.taken.add(seat)
        if self.table is not None:
            self.free.discard(seat)
            self.table.left.discard(seat)
        elif len(self.taken) == self.wanted:
            self._begin()
        elif self._timer is None:
            self._after_limit(self._begin)
        return seat

    def _begin(self) -> None:
        absent = [seat for seat in range(self.rules.players) if seat not in self.taken]
        missing = self.wanted - len(self.taken)
        inside = dict(zip(absent[missing:], self.policies, strict=True))
        self._stop_timer()
        self.free = {*absent[:missing]}
        seed = self.asked["seed"]
        self.table = OutsideTable(self.rules, inside, self.offer.player, seed=seed)
        self.table.left |= self.free
        self._go_on()

    def answer(self, seat: int, reply: str) -> None:
        assert self.table is not None
        self.table.seats[seat].answer(reply)
        self._go_on()

    def leave(self, seat: int) -> None:
        """Play the declared move of a seat from now on, at once."""
        self.taken.discard(seat)
        if self.table is not None:
            self.table.left.add(seat)
        if self.taken:
            self._go_on()
            return
        self._stop_timer()
        if self.name is not None and self.offer.tables.get(self.name) is self:
            del self.offer.tables[self.name]

    async def stop(self, seat: int) -> None:
        """Wait until a seat is asked, or has nothing more to do, `PATIENCE` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._fault is None and not self._stops(seat):
                    await self._changed.wait()
        if self._fault is not None:
            raise self._fault

    def _stops(self, seat: int) -> bool:
        table = self.table
        return table is not None and (table.is_over(seat) or table.seats[seat].request is not None)

    def _go_on(self) -> None:
        task = asyncio.ensure_future(self._play_on())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _play_on(self) -> None:
        async with self._playing:
            if self.table is None or not self.taken:
                return
            try:
                await self.table.play_on()
            except Exception as error:  # all who sit here are told
                self._fault = error
            sight = self.table.table.ready()
            if self.wanted > 1 and sight is not self._timed:
                self._timed = sight
                self._stop_timer()
                if self.table.waiting:
                    self._after_limit(partial(self._pass, sight))
            self._changed.set()
            self._changed = asyncio.Event()

    def _pass(self, sight: Sight) -> None:
        """Play the declared moves of those who have not answered within the limit."""
        if self.table is not None and self.table.table.sight is sight:
            self.late |= {*self.table.waiting}
            for seat in self.table.waiting:
                self.table.seats[seat].decline(LATE)
            self._go_on()

    def _after_limit(self, work: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.offer.limit, work)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


# -- the environment -------------------------------------------------------------------------------


class GameSession(Environment[GameAction, GameObservation, GameState]):
    """One seat of one game at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, offer: Offer) -> None:
        super().__init__()
        self._offer = offer
        self._place: tuple[SharedTable, int] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._episode: str | None = None
        self._begin(None)

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        game: str | None = None,
        seat: int | None = None,
        opponents: str | list[str] | None = None,
        parameters: dict[str, Any] | None = None,
        table: str | None = None,
        outside: int | None = None,
        **rest: Any,
    ) -> GameObservation:
        """Sit down at a game, and return what its seat reads first.

        Args:
            seed: of all chance; None: any.
            episode_id: any name, which `state` then has.
            game, parameters: another than the server's own.
            seat: from 0; None: the first that is free.
            opponents: a player by rule for all other seats, or one for each.
            table: the name of a table that several sessions share; None: one of its own.
            outside: how many sessions sit there; the first to come says so.

        Raises:
            UnknownKeyword: another word; it is never dropped silently.
            BadParameter, UnknownName: a value is not allowed; the message says what is.
        """
        if rest:
            raise unknown_keyword("word of reset", next(iter(rest)), WORDS)
        self._leave()
        self._loop = asyncio.get_running_loop()
        asked = {"game": game, "parameters": parameters, "seed": seed, "opponents": opponents}
        if table is not None and (not isinstance(table, str) or not 0 < len(table) <= 64):
            raise BadParameter(f"table must be a name of 1 to 64 characters, got {table!r:.80}")
        shared = self._offer.tables.get(table) if table is not None else None
        if shared is None or shared.over:
            shared = SharedTable(self._offer, table, 1 if outside is None else outside, asked)
            if table is not None:
                self._offer.tables[table] = shared
        else:
            shared.check_same(asked)
            if outside not in (None, shared.wanted):
                raise BadParameter(f"outside is {shared.wanted} at table {table!r}, not {outside}")
        try:
            place = shared.sit_down(seat)
        except LLMGamesError:
            if table is not None and not shared.taken:
                self._offer.tables.pop(table, None)
            raise
        self._begin((shared, place))
        self._episode = episode_id
        return await self._observed()

    def _begin(self, place: tuple[SharedTable, int] | None) -> None:
        self._place, self._turn, self._steps, self._paid = place, 0, 0, 0.0
        self._told: Decision | None = None  # the last decision of which the client was told
        self._over = False

    async def step_async(
        self, action: GameAction, timeout_s: float | None = None, **rest: Any
    ) -> GameObservation:
        """Answer, and return what the seat is asked next, or how the game ended.

        An answer that comes after the limit is not played, and says so by the outcome ``late``.

        Raises:
            NotReady: the game was never reset, or is over.
            BadParameter: the action names another turn than the one that was read last.
        """
        if self._place is None:
            raise NotReady("reset() comes first: it sits down at a game")
        if self._over:
            raise NotReady("the game is over: reset() begins another")
        if action.turn is not None and action.turn != self._turn:
            fault = f"turn {action.turn} is not asked, but {self._turn}"
            raise BadParameter(f"{fault}: answer the last observation")
        (shared, seat), self._steps = self._place, self._steps + 1
        outside = shared.table.seats[seat] if shared.table is not None else None
        if outside and outside.request is not None and outside.turn == self._turn:
            shared.answer(seat, action.reply)
        return await self._observed()

    async def _observed(self) -> GameObservation:
        assert self._place is not None
        shared, seat = self._place
        await shared.stop(seat)
        if (table := shared.table) is None:
            return GameObservation(seat=seat, text="Others are waited for; step to wait on.")
        outside, self._over = table.seats[seat], table.is_over(seat)
        payoff = float(table.payoffs[seat])
        reward, self._paid = payoff - self._paid, payoff
        outcome, why = None, ""
        if seat in shared.late:
            outcome, why = "late", f"{LATE}: the declared move was played"
        elif outside.decision and outside.decision is not self._told and outside.decision.attempts:
            attempt = outside.decision.attempts[-1]
            outcome, why = attempt.outcome, attempt.why
        shared.late.discard(seat)
        self._told, self._turn = outside.decision, outside.turn
        request = None if self._over else outside.request
        question = request.question if request else None
        return GameObservation(
            text=table.news(seat),
            reply_schema=question.schema() if question else None,
            numbers=table.numbers(seat),
            kind=request.kind if request else "",
            turn=outside.turn,
            seat=seat,
            asked=request is not None,
            outcome=outcome,
            why=why,
            action=outside.action,
            broke=outside.broke,
            payoff=payoff,
            reward=reward,
            done=self._over,
        )

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **words: Any
    ) -> GameObservation:
        """Do the same from code that cannot wait."""
        observation: GameObservation = run_sync(self.reset_async(seed, episode_id, **words))
        return observation

    def step(
        self, action: GameAction, timeout_s: float | None = None, **rest: Any
    ) -> GameObservation:
        """Do the same from code that cannot wait."""
        observation: GameObservation = run_sync(self.step_async(action, timeout_s, **rest))
        return observation

    @property
    def state(self) -> GameState:
        """What this session plays, and all that its seat was told."""
        offer = self._offer
        if self._place is None:
            return GameState(game=offer.game, parameters=offer.parameters)
        shared, seat = self._place
        state = GameState(
            episode_id=self._episode,
            step_count=self._steps,
            game=shared.rules.name,
            parameters=shared.parameters,
            seat=seat,
            table=shared.name,
        )
        if table := shared.table:
            request = table.seats[seat].request
            state.seed, state.turn = table.table.seed, table.seats[seat].turn
            state.over, state.payoff = table.is_over(seat), float(table.payoffs[seat])
            state.messages = [dict(message) for message in request.messages] if request else []
        return state

    def get_metadata(self) -> EnvironmentMetadata:
        """Return what this server plays, in words."""
        rules = self._offer.rules
        about = f"{rules.title} ({rules.source}), {rules.players} players, one or more outside"
        return EnvironmentMetadata(name=rules.name, description=about, version=__version__)

    def close(self) -> None:
        """Leave the table; called from any thread, it does not wait."""
        if self._place is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        if self._place is not None:
            (shared, seat), self._place = self._place, None
            shared.leave(seat)


# -- the server ------------------------------------------------------------------------------------


class HostDoor:
    """Middleware: requests need an allowed host, no foreign page, and a message of `LARGEST`."""

    def __init__(self, app: Any, hosts: Sequence[str]) -> None:
        self.app, self.hosts = app, {*LOCAL, *hosts}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif refusal := self._refusal(scope):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008, "reason": refusal[1]})
            else:
                await JSONResponse({"error": refusal[1]}, refusal[0])(scope, receive, send)
        elif scope["type"] == "websocket":
            await self.app(scope, partial(_message, receive, send), send)
        elif (body := await _body(receive)) is None:
            fault = {"error": f"a body has at most {LARGEST} bytes"}
            await JSONResponse(fault, 413)(scope, receive, send)
        else:
            await self.app(scope, _once(body, receive), send)

    def _refusal(self, scope: Any) -> tuple[int, str] | None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        host, origin = headers.get("host", ""), headers.get("origin")
        if _host(f"//{host}") not in self.hosts and "*" not in self.hosts:
            return 421, f"this server does not answer at {host[:80]!r}"
        if origin is not None and origin.partition("://")[2] != host:
            return 403, f"a page of {origin[:80]!r} cannot ask this server"
        if scope["type"] == "http" and scope["path"].rstrip("/") == "/step":
            return 409, "a game is kept by the WebSocket /ws alone: POST /step has none to go on"
        return None


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


async def _body(receive: Any) -> bytes | None:
    """Return the body of a request; None if it is too large."""
    body = b""
    while len(body) <= LARGEST:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body if len(body) <= LARGEST else None
    return None


def _once(body: bytes, receive: Any) -> Any:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Any:
        return messages.pop() if messages else await receive()

    return received


async def _message(receive: Any, send: Any) -> Any:
    message = await receive()
    text = message.get("text") or message.get("bytes") or ""
    if len(text) <= LARGEST:
        return message
    await send({"type": "websocket.close", "code": 1009})
    return {"type": "websocket.disconnect", "code": 1009}


def make_app(
    game: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    opponents: str | Sequence[str] = "random",
    allowed: Sequence[str] = (),
    limit: float = LIMIT,
    sessions: int = 64,
    hosts: Sequence[str] = (),
    player: Mapping[str, Any] | None = None,
) -> FastAPI:
    """Return the server of a game, for `serve` or any other of ASGI.

    Args:
        game: the one that is played where a client names no other of ours.
        parameters: of the game.
        opponents: where a client names none: one player for all seats inside, or one for each.
        allowed: players that a client may name, besides those by rule, letter by letter: a name
            such as ``openai/gpt-5`` lets strangers spend your money.
        limit: seconds of a turn at a table that several sessions share.
        sessions: at once.
        hosts: names at which it answers, besides this machine's; ``"*"``: any.
        player: settings of `LLMPolicy`, such as ``{"prompts": "v2"}``: how a seat is asked.

    Raises:
        BadParameter, UnknownName: an argument is not one of these.
    """
    offer = Offer(game, parameters or {}, opponents, allowed, limit=limit, player=player or {})
    check_integer("sessions", sessions, 1)
    app = create_app(
        partial(GameSession, offer),
        GameAction,
        GameObservation,
        env_name=offer.game,
        state_cls=GameState,
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=IDLE),
    )
    app.add_middleware(HostDoor, hosts=hosts)

    @app.exception_handler(LLMGamesError)
    async def refused(request: Request, error: LLMGamesError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 422)

    return app


def serve(app: Any, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve an app until interrupted; another host than this machine's is seen by others."""
    import uvicorn

    uvicorn.run(app, host=host, port=port, ws_max_size=LARGEST, log_level="warning")
