"""econ_arena."""
