"""The items of auctions: AucArena's list, checks of lists of one's own, and orders of sale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llm_games.errors import BadParameter, unknown
from llm_games.facts import check_integer

LISTED = """Widget A, Gadget B, Thingamajig C, Doodad D, Equipment E, Gizmo F, Implement G, \
Apparatus H, Contraption I, Mechanism J, Tool K, Device L, Instrument M, Utensil N, Appliance O, \
Machine P, Unit Q, Element R, Component S, Piece T, Object U, Item V, Product W, Accessory X, \
Module Y, Entity Z"""
EXPENSIVE = ("Equipment E", "Mechanism J", "Machine P", "Element R")
MOST_ITEMS = 100
LARGEST = 10**9  # of prices and budgets: small enough that no sum or product leaves int64


class Item(NamedTuple):
    """One item: its name, start price and common true value."""

    name: str
    start: int
    value: int


ITEMS = tuple(
    Item(n, 5000, 10000) if n in EXPENSIVE else Item(n, 1000, 2000) for n in LISTED.split(", ")
)
"""Items of AucArena (arXiv 2310.05746, §4): 22 cheap ones and 4 expensive ones."""
SETS = {f"items_{count}": ITEMS[:count] for count in range(1, len(ITEMS) + 1)}
ORDERS = ("listed", "shuffled", "early", "middle", "late")


def catalogue(items: Any) -> tuple[Item, ...]:
    """Return the items of a set's name, ``items_1`` to ``items_26``, or of rows; else raise."""
    if isinstance(items, str):
        if items not in SETS:
            raise unknown("set of items", items, SETS)
        return SETS[items]
    try:
        rows = tuple(Item(*row) for row in items)
    except TypeError:
        rows = ()
    names = [row.name for row in rows]
    if not 1 <= len(rows) <= MOST_ITEMS or not all(isinstance(n, str) and n for n in names):
        raise BadParameter(
            f'items must be a set such as "items_10" or 1 to {MOST_ITEMS} rows (name, start '
            f"price, value), got {items!r}"
        )
    for row in rows:
        check_integer(f"start price of {row.name}", row.start, 0, LARGEST)
        check_integer(f"value of {row.name}", row.value, 0, LARGEST)
    if len(set(names)) < len(names):
        raise BadParameter(f"items must have different names, got {names}")
    return rows


def order_of(items: Sequence[Item], order: Any) -> list[int]:
    """Return the items' indices in the order of sale; as listed if that is drawn later.

    ``early``, ``middle`` and ``late`` place the highest start price. UnknownName or BadParameter
    else.
    """
    listed = list(range(len(items)))
    if isinstance(order, str):
        if order not in ORDERS:
            raise unknown("item_order", order, ORDERS)
        dear = [i for i in listed if items[i].start == max(item.start for item in items)]
        cheap = [i for i in listed if i not in dear]
        split = {"early": 0, "middle": len(cheap) // 2, "late": len(cheap)}.get(order)
        return listed if split is None else [*cheap[:split], *dear, *cheap[split:]]
    names = [item.name for item in items]
    if not isinstance(order, (tuple, list)) or sorted(map(str, order)) != sorted(names):
        raise BadParameter(
            f"item_order must be one of {', '.join(ORDERS)}, or the names of all "
            f"{len(names)} items in order, got {order!r}"
        )
    return [names.index(name) for name in order]
