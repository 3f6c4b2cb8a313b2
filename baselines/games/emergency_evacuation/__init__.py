"""emergency_evacuation."""
