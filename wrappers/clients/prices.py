"""Prices of models: those that somebody gives, and those of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

MILLION = 1_000_000
IN_BATCHES = " in batches"  # after the name of a model: its price there


@dataclass(frozen=True)
class Price:
    """The price of a model, for each million tokens of prompts and of replies.

    None: tokens of a prompt that were `cached`, or `written` into the server's cache, cost as much
    as the others, those of `reasoning` as much as the rest of a reply. With a prompt of more than
    `above` tokens, `longer` is the price of all of the call. `source` says where it is from.
    """

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cached: Decimal | None = None
    reasoning: Decimal | None = None
    above: int | None = None
    longer: Price | None = None
    source: str = ""
    written: Decimal | None = None

    def of(
        self,
        tokens_in: int,
        tokens_out: int,
        tokens_cached: int = 0,
        tokens_reasoning: int = 0,
        tokens_written: int = 0,
    ) -> Decimal:
        """Return the exact price of so many tokens; the last three kinds are among them."""
        price = self.for_prompt(tokens_in)
        cached = price.input if price.cached is None else price.cached
        written = price.input if price.written is None else price.written
        thought = price.output if price.reasoning is None else price.reasoning
        hits, thoughts = min(tokens_cached, tokens_in), min(tokens_reasoning, tokens_out)
        stored = min(tokens_written, tokens_in - hits)
        cost = (tokens_in - hits - stored) * price.input + hits * cached + stored * written
        return (cost + (tokens_out - thoughts) * price.output + thoughts * thought) / MILLION

    def for_prompt(self, tokens_in: int) -> Price:
        if self.longer is None or self.above is None or tokens_in <= self.above:
            return self
        return self.longer.for_prompt(tokens_in)

    def bound(self, choose: Callable[[Iterable[Decimal]], Decimal]) -> Price:
        """Return the `min` or `max` price by length alone: cached or not, thoughts or not."""
        prompts = (self.input, self.cached, self.written)
        return Price(
            choose(price for price in prompts if price is not None),
            choose(price for price in (self.output, self.reasoning) if price is not None),
            above=self.above,
            longer=self.longer and self.longer.bound(choose),
        )

    def half(self) -> Price:
        """Return the price of calls in batches."""
        values: dict[str, Any] = {
            k: v / 2 if isinstance(v, Decimal) else v for k, v in vars(self).items()
        }
        values["longer"] = self.longer and self.longer.half()
        values["source"] = f"half, of {self.source}" if self.source else "half"
        return Price(**values)

    def holds(self, url: str) -> bool:
        """Test whether the price applies at this server; a listed one is of one server only."""
        source, _, server = self.source.partition(" for ")
        return not source.startswith("genai-prices ") or server in ("", url)

    def plain(self) -> dict[str, Any]:
        """Return it as plain values, as a run's configuration holds it."""
        values = {k: float(v) if isinstance(v, Decimal) else v for k, v in vars(self).items()}
        return values | {"longer": self.longer and self.longer.plain()}


def listed(name: str, url: str = "", provider: str = "") -> Price | None:
    """Return today's price by the package ``genai-prices``, None without it or if it is not listed.

    Known are models (``gpt-5``, ``openai/gpt-5``) at the address of a provider, or of one by name.
    A model's name alone says nothing: anybody may serve it.
    """
    (first, _, model), tried = name.partition("/"), list[dict[str, str]]()
    if url:
        tried = [{"model_ref": ref, "provider_api_url": url} for ref in (name, model) if ref]
    elif model and not provider:
        tried = [{"model_ref": model, "provider_id": first}]
    if provider:
        tried.append({"model_ref": name, "provider_id": provider})
    if not tried or find_spec("genai_prices") is None:
        return None
    import genai_prices

    for query in tried:
        with suppress(LookupError):
            match: Any = genai_prices.calc_price(genai_prices.Usage(), **query).model_price  # type: ignore[call-overload]
            source = f"genai-prices {genai_prices.__version__}{url and f' for {url}'}"
            return _read(match, source)
    return None


def _read(match: Any, source: str) -> Price | None:
    """Return a listed price as one of ours; None if tokens are not what is paid for."""
    ours = {"input": "input", "output": "output", "cached": "cache_read", "written": "cache_write"}
    ours["reasoning"] = "output_reasoning"
    prices = {name: getattr(match, f"{theirs}_mtok") for name, theirs in ours.items()}
    if prices["input"] is None or prices["output"] is None:
        return None
    starts = {tier.start for price in prices.values() for tier in getattr(price, "tiers", ())}
    whole, above = None, None
    for start in (*sorted(starts, reverse=True), 0):
        prices_here: Any = {name: _tier(price, start) for name, price in prices.items()}
        whole, above = Price(**prices_here, above=above, longer=whole, source=source), start
    return whole


def _tier(price: Any, start: int) -> Any:
    """Return a price for prompts of more tokens than `start`."""
    if not hasattr(price, "tiers"):
        return price
    reached = [tier.price for tier in price.tiers if tier.start <= start and start]
    return reached[-1] if reached else price.base
