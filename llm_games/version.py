"""The package's version: read here by all that name it, and by the build."""

__version__ = "0.8.0"
