"""A run from its file to its record: configuration, plan, conduct, resume and replay."""
