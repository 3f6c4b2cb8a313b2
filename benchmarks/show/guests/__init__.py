"""Seats for somebody outside: a page for people, JSON over HTTP and MCP for programs."""
