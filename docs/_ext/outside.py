"""Links to files outside the documentation lead to the repository: a page reads well in both."""

from sphinx.application import Sphinx

REPOSITORY = "https://github.com/llm-games/llm-games/blob/main/"


def lead_out(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace what leads out of the documents, from a page such as ``papers/alympics``."""
    up = "../" * (name.count("/") + 1)
    source[0] = source[0].replace(f"]({up}", f"]({REPOSITORY}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Have it done as pages are read."""
    app.connect("source-read", lead_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
