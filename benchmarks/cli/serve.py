"""``llm-games serve-tiny``."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_games.benchmarks.cli.common import say


def serve_tiny(
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="port to listen on")] = 8000,
) -> None:
    """Serve the embedded tiny model to OpenAI-compatible clients until interrupted."""
    from llm_games.baselines.tiny.server import serve

    says = f"tiny, a toy model, answers at http://{host}:{port}/v1 (Ctrl-C stops it)"
    serve(host, port, ready=lambda: say(says))
