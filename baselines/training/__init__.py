"""Learners in short scripts, one file a method: ``python -m llm_games.baselines.training.ppo``."""
