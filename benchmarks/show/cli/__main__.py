"""``python -m llm_games.benchmarks.show.cli`` is ``llm-games``."""

from llm_games.benchmarks.show.cli import main

if __name__ == "__main__":
    main()
