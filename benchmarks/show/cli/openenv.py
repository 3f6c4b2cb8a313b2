"""``llm-games openenv init``: a game as a project of OpenEnv, and so as a Space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from llm_games.benchmarks.show.cli.common import Commands, say, values_of
from llm_games.errors import BadParameter
from llm_games.version import __version__

app = Typer(cls=Commands, no_args_is_help=True)
PORT = 8000
UNLIMITED = 1e9  #: in place of infinity, which the manifest does not take
FILES = {
    "openenv.yaml": """\
spec_version: 1
name: {name}
version: 0.1.0
type: space
runtime: fastapi
app: server.app:app
port: {port}
validation:
  reward:  # payoffs, in what the game pays; no oracle is declared
    range: [{low}, {high}]
    oracle_tolerance: 0.0
    floor_margin: 0.1
  resources:
    cpu: 1.0
    memory_mb: 1024
    disk_mb: 1024
    episode_timeout_s: 600.0
  capabilities:
    verifier:
      kind: reward_channel
  types:
    tags: [game]
""",
    "Dockerfile": """\
FROM python:3.11-slim
WORKDIR /app
COPY pyproject.toml README.md ./
COPY server server
RUN pip install --no-cache-dir .
RUN useradd --create-home --uid 1000 user
USER user
EXPOSE {port}
ENV HOST=0.0.0.0
CMD ["python", "-m", "server.app"]
""",
    "pyproject.toml": """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "openenv-{dashed}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["llm-games[openenv]>={version}"]

[project.scripts]
server = "server.app:main"

[tool.setuptools]
packages = ["server"]
""",
    "README.md": """\
---
title: {title}
sdk: docker
app_port: {port}
tags: [openenv]
---

{title} ({source}) as an environment of OpenEnv, played by llm-games. `python -m server.app`
serves it here, `openenv push` as a Space.
""",
    "server/__init__.py": "",
    "server/app.py": '''\
"""{title} as an environment of OpenEnv."""

import os

from llm_games.benchmarks.show.guests.openenv_server import make_app, serve

HOSTS = [name for name in os.environ.get("SPACE_HOST", "").split(",") if name]
"""Names at which it answers besides this machine's; a Space tells its own."""

app = make_app({game!r}, parameters={parameters!r}, opponents={opponents!r}, hosts=HOSTS)


def main() -> None:
    """Serve it, at this machine alone unless HOST says otherwise."""
    serve(app, os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", {port})))


if __name__ == "__main__":
    main()
''',
}


@app.callback()
def about() -> None:
    """Nothing: a callback makes ``init`` a word that must be written."""


@app.command()
def init(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="a new folder, or an empty one")],
    game: Annotated[str, Option(help="the game; clients may name others")],
    param: Annotated[
        list[str] | None, Option(metavar="NAME=VALUE", help="a parameter of the game")
    ] = None,
    opponents: Annotated[str, Option(help="who plays where a client names nobody")] = "random",
) -> None:
    """Write a project of OpenEnv around a game, which can be served and become a Space."""
    import numpy as np

    from llm_games.baselines.players import make_player
    from llm_games.registry import rulebook

    parameters = values_of("--param", param or [])
    rules = rulebook(game, **parameters)
    make_player(opponents, rules)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadParameter(f"{folder} is not empty: name another folder")
    low, high = np.clip(rules.payable, -UNLIMITED, UNLIMITED).tolist()
    values = {
        "name": f"llm_games_{rules.name}",
        "dashed": rules.name.replace("_", "-"),
        "game": rules.name,
        "title": rules.title,
        "source": rules.source,
        "parameters": parameters,
        "opponents": opponents,
        "low": low,
        "high": max(high, low + 1),
        "version": __version__,
        "port": PORT,
    }
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(**values), encoding="utf-8")
    say(f"{folder}: python -m server.app there serves {rules.title} at port {PORT}")
