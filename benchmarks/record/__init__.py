"""The record of a run: its tables, who writes and who reads them."""
