"""Pages from templates that escape all text, and how numbers stand on them.

All text is made `visible` too; what a form sends back must stay as it is: ``{{ name | e }}``.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from llm_games.benchmarks.show.view.texts import visible
from llm_games.version import __version__

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'"
)
"""What a page may do; a header of the viewer's adds who may frame it."""
Context = dict[str, Any]
Crumb = tuple[str, str]
"""A step of the way to a page: its words, and its address."""


def render(template: str, **context: Any) -> str:
    """Return a page: `template` is the name of a file in ``templates/`` without its endings."""
    return environment().get_template(f"{template}.html.j2").render(context)


@cache
def environment(package: str = "llm_games.benchmarks.show.view") -> Environment:
    env = Environment(
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        loader=PackageLoader(package),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {"number": number, "exact": exact, "counted": counted, "seconds": seconds}
    env.globals |= {"version": __version__, "query": query, "exported": None, "labelled": None}
    return env


def query(**filters: Any) -> str:
    return urlencode(filters, doseq=True)


def _shown(value: Any) -> Any:
    return visible(value) if type(value) is str else value


def number(value: float | None, digits: int = 2) -> str:
    """Write a number with at most so many decimals; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text.replace("-", "−")


def exact(value: float | None) -> str:
    """Write a payoff or regret in six digits; "" for none."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.6g}".replace("-", "−")


def counted(count: int, singular: str, plural: str = "") -> str:
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def seconds(value: float) -> str:
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:,.0f} min"
