"""Seats as environments of OpenEnv 0.10, played over its WebSocket.

``app = make_app("public_goods", opponents="rational")`` is the server of a game, at which a session
is one seat of a table of its own, or of one that several share; ``llm-games openenv init`` writes a
project around it. `link_app` is that of a link. OpenEnv needs an environment of its own, as it
excludes ``mcp`` 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from openenv.core import Action, ConcurrencyConfig, Environment, Observation, State, create_app
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field
from starlette.routing import Route

from llm_games.benchmarks.show.guests.guest_door import LARGEST_BODY, GuestDoor, refusal
from llm_games.benchmarks.show.guests.offer import WORDS, Offer
from llm_games.errors import BadParameter, LLMGamesError, NotReady, unknown_keyword
from llm_games.facts import check_integer
from llm_games.version import __version__
from llm_games.wrappers.guest_seat import GuestSeat, NotTaken
from llm_games.wrappers.guest_table import GuestSession, GuestTable
from llm_games.wrappers.together import run_sync

LIMIT = 20.0  #: seconds of a turn at a shared table, and for which its seats are waited for
PATIENCE = 30.0  #: seconds for which a reset or step waits; OpenEnv's client gives up after 60
IDLE = 3600.0  #: seconds after which a silent session is closed


class GameAction(Action):
    """An answer: the text that a language model would write, such as ``{"number": 3}``."""

    reply: str = Field(max_length=20_000, description="the JSON object that was asked for, as text")
    turn: str | None = Field(None, description="the turn that it answers; None: the last one read")


class GameObservation(Observation):
    """What a seat reads and is asked; reward is what was paid since the last observation."""

    text: str = Field("", description="what is new since the last observation, with the question")
    reply_schema: dict[str, Any] | None = Field(None, description="JSON schema of a legal reply")
    numbers: dict[str, float] = Field({}, description="what the seat knows, in numbers")
    kind: str = Field("", description="what is asked for: a move, a speech, or a question beside")
    turn: str = Field("", description="the name of what is asked, EPISODE.STEP.CALL")
    seat: int | None = Field(None, description="from 0; None: the game has not begun")
    asked: bool = Field(False, description="a reply is waited for; if not, step with any to wait")
    outcome: str | None = Field(
        None, description='how the reply was read: "valid", "unparsable", "out_of_range", "late"'
    )
    why: str = Field("", description="what was wrong with it")
    action: Any = Field(None, description="what was played last, as the game counts it")
    broke: bool = Field(False, description="it broke a rule, and the declared move was played")
    payoff: float = Field(
        0.0, description="what the seat got so far; at a link, in all games of the run"
    )


class GameState(State):
    """A session's game; `messages` is all that a language model would have been sent by now."""

    game: str = ""
    seed: int | None = None
    seat: int | None = None
    table: str | None = None
    turn: str = ""
    over: bool = False
    payoff: float = 0.0
    messages: list[dict[str, str]] = Field([])


# -- the environment -------------------------------------------------------------------------------


class SeatEnvironment(Environment[GameAction, GameObservation, GameState]):
    """A seat that is played by a session of OpenEnv."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._session: GuestSession | None = None
        self._episode: str | None = None
        self._steps = 0

    async def _begun(self, seat: GuestSeat, episode: str | None) -> GameObservation:
        self._session, self._episode, self._steps = GuestSession(seat), episode, 0
        return await self._observed(self._session)

    async def _observed(self, session: GuestSession) -> GameObservation:
        await session.seat.wait(PATIENCE)
        return GameObservation(**session.read())

    async def step_async(
        self, action: GameAction, timeout_s: float | None = None, **rest: Any
    ) -> GameObservation:
        """Answer, and return what the seat is asked next, or how the game ended.

        An answer that comes after the limit is not played, and says so by the outcome ``late``.

        Raises:
            NotReady: the game was never reset, or is over.
            BadParameter: the action names another turn than the one that was read last.
        """
        if (session := self._session) is None:
            raise NotReady("reset() comes first: it sits down at a game")
        if session.is_over:
            raise NotReady("the game is over: reset() begins another")
        if action.turn not in (None, session.turn):
            fault = f"turn {action.turn!r:.40} is not asked, but {session.turn!r}"
            raise BadParameter(f"{fault}: answer the last observation")
        self._steps += 1
        session.answer(action.reply)
        return await self._observed(session)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **words: Any
    ) -> GameObservation:
        """Call `reset_async` from code without an event loop."""
        words |= {"seed": seed, "episode_id": episode_id}
        observation: GameObservation = run_sync(self.reset_async(**words))
        return observation

    def step(
        self, action: GameAction, timeout_s: float | None = None, **rest: Any
    ) -> GameObservation:
        """Call `step_async` from code without an event loop."""
        observation: GameObservation = run_sync(self.step_async(action, timeout_s, **rest))
        return observation

    @property
    def state(self) -> GameState:
        """What this session plays, and all that its seat was told."""
        if self._session is None:
            return GameState()
        turn, standing, over = self._session.seat.snapshot()
        return GameState(
            episode_id=self._episode,
            step_count=self._steps,
            game=standing.view.game.name if standing.view else "",
            seat=standing.view.seat if standing.view else None,
            turn=turn.name if turn else "",
            over=over,
            payoff=standing.payoff,
            messages=[dict(message) for message in turn.request.messages] if turn else [],
        )


class GameEnvironment(SeatEnvironment):
    """A seat of a game that the client asks for."""

    def __init__(self, offer: Offer) -> None:
        super().__init__()
        self._offer = offer
        self._place: tuple[GuestTable, int, str | None] | None = None  # with the table's name

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        seat: int | None = None,
        table: str | None = None,
        outside: int | None = None,
        **words: Any,
    ) -> GameObservation:
        """Sit down at a game, and return what its seat reads first.

        Args:
            seed: of all chance; None: any.
            episode_id: any name, which `state` then has.
            seat: from 0; None: the first that is free.
            table: the name of a table that several sessions share; None: one of its own.
            outside: how many sessions sit there; the first to come says so.
            words: ``game`` and ``parameters``, another than the server's own; ``opponents``, a
                player by rule for all other seats, or one for each.

        Raises:
            UnknownKeyword: another word; it is never dropped silently.
            BadParameter, UnknownName: a value is not allowed; the message says what is.
            ClientError: a player inside brought no answer.
        """
        if odd := [*{*words} - {*WORDS}]:
            ours = [*WORDS, "episode_id", "seat", "table", "outside"]
            raise unknown_keyword("word of reset", odd[0], ours)
        self.close()
        asked = {**dict.fromkeys(WORDS), **words, "seed": seed}
        shared = self._offer.table(table, outside, asked)
        if seat is not None:
            check_integer("seat", seat, 0, shared.game.players - 1)
        self._place = shared, await shared.sit_down(seat), table
        return await self._begun(shared.seats[self._place[1]], episode_id)

    @property
    def state(self) -> GameState:
        """What this session plays, and all that its seat was told."""
        state = super().state
        if self._place is None:
            state.game = self._offer.game
        else:
            table, state.seat, state.table = self._place
            state.game, state.seed = table.game.name, table.seed
        return state

    def get_metadata(self) -> EnvironmentMetadata:
        """Return what this server plays, in words."""
        rules = self._offer.rules
        about = f"{rules.title} ({rules.source}), {rules.players} players, one or more outside"
        return EnvironmentMetadata(name=rules.name, description=about, version=__version__)

    def close(self) -> None:
        """Leave the table, from any thread."""
        if self._place is not None:
            (table, seat, _), self._place = self._place, None
            table.leave(seat)


class LinkEnvironment(SeatEnvironment):
    """The seat of a link: the run has chosen all else. To close it is not to leave."""

    def __init__(self, seat: GuestSeat) -> None:
        super().__init__()
        self._seat = seat

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **words: Any
    ) -> GameObservation:
        """Join, and return what the seat reads first.

        Raises:
            BadParameter: a word that the run decides.
            NotTaken: it is a person's seat.
        """
        if odd := [*({"seed": seed} if seed is not None else {}), *words]:
            fault = f"{odd[0]} is not this session's to choose: the run behind this link has"
            raise BadParameter(f"{fault}; call reset() without it")
        if self._seat.kind != "program":
            raise NotTaken("this link is a person's: open it in a browser")
        self._seat.join(protocol="openenv")
        return await self._begun(self._seat, episode_id)

    def get_metadata(self) -> EnvironmentMetadata:
        """Return whose seat it is."""
        about = f"the seat {self._seat.name} of a run of llm-games"
        return EnvironmentMetadata(name="llm_games", description=about, version=__version__)


# -- the server ------------------------------------------------------------------------------------


def link_app(seat: GuestSeat) -> FastAPI:
    """Return the server of a link's seat, for `guest_app` to mount."""
    return _served(partial(LinkEnvironment, seat), "llm_games", 8)


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
    app = _served(partial(GameEnvironment, offer), offer.game, sessions)
    app.add_middleware(GuestDoor, hosts=hosts)
    return app


def _served(make: Callable[[], SeatEnvironment], name: str, sessions: int) -> FastAPI:
    app = create_app(
        make,
        GameAction,
        GameObservation,
        env_name=name,
        state_cls=GameState,
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=IDLE),
    )
    why = "a game is kept by the WebSocket /ws alone: POST /step has none to go on"
    app.router.routes.insert(0, Route("/step", lambda _: refusal(409, why), methods=["POST"]))

    @app.exception_handler(LLMGamesError)
    async def refused(_: Request, error: LLMGamesError) -> Response:
        return refusal(422, str(error))

    return app


def serve(app: Any, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve an app until interrupted; another host than this machine's is seen by others."""
    import uvicorn

    uvicorn.run(app, host=host, port=port, ws_max_size=LARGEST_BODY, log_level="warning")
