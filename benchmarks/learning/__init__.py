"""What learners come to where a result is claimed: each with its script, its curve and its date."""
