"""Runs the tests of conformance with the oldest and the newest versions of all that is needed.

``python -m tests.libraries.versions`` makes two environments, one where everything that
pyproject.toml names has its lowest version, and one with the newest, and runs pytest in each; what
is given goes to pytest. See `tests.libraries.run` for what it needs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.libraries.run import ROOT, environment, versions

RESOLUTIONS = ("lowest-direct", "highest")
EXTRAS = "all"
CONFORMANCE = ("env", "single_agent", "vector_env", "team_env", "codecs", "doors", "cli", "sb3")
CONFORMANCE += ("training", "best_response", "tabular", "metagame", "crossplay", "tables", "ghosts")
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "nashpy")


def main() -> int:
    asked = sys.argv[1:] or [f"tests/test_{name}.py" for name in CONFORMANCE]
    failed = 0
    for resolution in RESOLUTIONS:
        with tempfile.TemporaryDirectory() as folder:
            package = f"llm-games[{EXTRAS}] @ {ROOT.as_uri()}"
            python = environment(Path(folder), "--resolution", resolution, package)
            found = versions(python)
            print(resolution, *(f"{name}={found[name]}" for name in sorted(found)), flush=True)
            subprocess.run(["uv", "pip", "install", "-q", "-p", python, *TOOLS], check=True)
            # What is old may use what newer packages have deprecated.
            lenient = ["-W", "default"] if resolution == RESOLUTIONS[0] else []
            run = [python, "-m", "pytest", "-q", "-n", "0", *lenient, *asked]
            failed += subprocess.run(run, cwd=ROOT, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
