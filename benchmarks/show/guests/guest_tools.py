"""A seat for agents that speak the Model Context Protocol: the tools `observe` and `act`."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

from mcp import Client, MCPError
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings

from llm_games.benchmarks.show.guests.guest_app import LONGEST_WAIT
from llm_games.benchmarks.show.guests.guest_door import LARGEST_BODY
from llm_games.wrappers.guest_seat import GuestSeat, NotNow, NotTaken

HOW = "You play a game. Call observe, then act with the turn it names, until its state is over."
OBSERVE = "Return what your seat sees, once you are asked or `wait` seconds later (up to 30)."
ACT = "Answer the question of a turn with an object of its schema."
LOGGED: Literal["WARNING"] = "WARNING"  # below it, each call is logged, with the link and its token


class SeatTools:
    """A server of one seat: an application, and what must be entered while it is served."""

    def __init__(self, seat: GuestSeat, path: str) -> None:
        logging.getLogger("mcp").setLevel(logging.ERROR)  # which warns of each refusal
        self.server = MCPServer(f"llm-games {seat.name}", instructions=HOW, log_level=LOGGED)
        self.app = self.server.streamable_http_app(
            streamable_http_path=path,
            stateless_http=True,
            json_response=True,
            max_request_body_size=LARGEST_BODY,
            # The door before it has looked at host and origin.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

        @self.server.tool(description=OBSERVE)
        async def observe(wait: float = 20.0) -> dict[str, Any]:
            if seat.kind == "program":  # a person joins by the page
                seat.join(protocol="mcp")
            await seat.wait(max(0.0, min(wait, LONGEST_WAIT)))
            return seat.sees()

        @self.server.tool(description=ACT)
        async def act(turn: str, reply: dict[str, Any]) -> dict[str, Any]:
            try:
                return seat.act(turn, reply)
            except (NotNow, NotTaken) as error:
                raise ToolError(str(error)) from None

    def running(self) -> AbstractAsyncContextManager[Any]:
        return self.server.session_manager.run()


def relay(link: str) -> MCPServer:
    """Return a server whose tools are those of a link, for agents that start servers themselves."""
    server = MCPServer("llm-games seat", instructions=HOW, log_level=LOGGED)

    async def passed_on(tool: str, **arguments: Any) -> dict[str, Any]:
        try:
            async with Client(f"{link}/mcp") as client:
                answer = await client.call_tool(tool, arguments)
        except (ExceptionGroup, OSError, MCPError) as error:
            raise ToolError("the link cannot be reached; is the run still on?") from error
        if answer.is_error:
            raise ToolError(" ".join(getattr(part, "text", "") for part in answer.content))
        assert answer.structured_content is not None
        return answer.structured_content

    @server.tool(description=OBSERVE)
    async def observe(wait: float = 20.0) -> dict[str, Any]:
        return await passed_on("observe", wait=wait)

    @server.tool(description=ACT)
    async def act(turn: str, reply: dict[str, Any]) -> dict[str, Any]:
        return await passed_on("act", turn=turn, reply=reply)

    return server
