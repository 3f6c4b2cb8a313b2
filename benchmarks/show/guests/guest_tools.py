"""A seat for agents that speak the Model Context Protocol: the tools `observe` and `act`."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings

from llm_games.benchmarks.show.guests.guest_app import LONGEST_WAIT
from llm_games.benchmarks.show.guests.guest_door import LARGEST_BODY
from llm_games.wrappers.guests import GuestSeat, NotNow, NotTaken

HOW = "You play a game. Call observe, then act with the turn it names, until its state is over."


class SeatTools:
    """A server of one seat: an application, and what must be entered while it is served."""

    def __init__(self, seat: GuestSeat, path: str) -> None:
        self.server = MCPServer(f"llm-games {seat.name}", instructions=HOW)
        self.app = self.server.streamable_http_app(
            streamable_http_path=path,
            stateless_http=True,
            json_response=True,
            max_request_body_size=LARGEST_BODY,
            # The door before it has looked at host and origin.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

        @self.server.tool()
        async def observe(wait: float = 20.0) -> dict[str, Any]:
            """Return what your seat sees, once you are asked or `wait` seconds later (up to 30)."""
            try:
                if seat.kind == "program":
                    seat.join(protocol="mcp")
            except NotTaken as error:
                raise ToolError(str(error)) from None
            await seat.wait(max(0.0, min(wait, LONGEST_WAIT)))
            return seat.sees()

        @self.server.tool()
        async def act(turn: str, reply: dict[str, Any]) -> dict[str, Any]:
            """Answer the question of a turn with an object of its schema."""
            try:
                return seat.act(turn, reply)
            except (NotNow, NotTaken) as error:
                raise ToolError(str(error)) from None

    def running(self) -> AbstractAsyncContextManager[Any]:
        return self.server.session_manager.run()


def tools(seat: GuestSeat, path: str) -> SeatTools:
    logging.getLogger("mcp").setLevel(logging.ERROR)  # which warns of each refusal
    return SeatTools(seat, path)
