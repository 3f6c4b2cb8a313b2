"""gamma_bench."""
