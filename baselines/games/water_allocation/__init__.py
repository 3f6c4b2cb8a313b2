"""water_allocation."""
