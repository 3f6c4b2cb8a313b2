"""``python -m llm_games.benchmarks.cli`` is ``llm-games``."""

from llm_games.benchmarks.cli import main

if __name__ == "__main__":
    main()
