"""AucArena: metrics of recorded English auctions, and the published table.

Source: *Put Your Money Where Your Mouth Is* (arXiv 2310.05746), sections 3.2 to 4.3. An item is
identified by its name, and by its index in the order of sale, from 0. Undefined metrics are None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, product
from statistics import fmean
from typing import Any, NamedTuple

from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.means import POSITIVE, SHARE, Ends, MeanCell, estimated, paid
from llm_games.benchmarks.judge.paper import printed
from llm_games.benchmarks.papers.auc_arena.spearman import Correlation, spearman
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame
from llm_games.benchmarks.record.schema import AttemptRow, NoteRow
from llm_games.errors import BadParameter, unknown
from llm_games.games.english_auction.rules import EnglishAuction

FAILED = ("below_start", "below_increment", "over_budget")
"""Bids that count as failed; breaks of the form, ``format``, are counted apart."""
GROUPS = ("own", "others")  # what a bidder's beliefs are about: itself and others
DEFINITIONS = ("paper", "authors")
"""Of right fields in the failure rate of beliefs. ``paper``: those of an update's last checked
reply, as each ends up right; ``authors``: the right ones of all checked replies."""
PLANS = ("initial", "current")
"""The plan made before the auction, or the one in force when an item is called."""
STATISTICS = ("engagement", "win")
"""What priorities are correlated with: accepted bids on an item, or whether it was won."""


class Lot(NamedTuple):
    """An item and its sale: `bids` and remaining money by seat; `winner`, `price` -1: none."""

    place: int
    name: str
    start: int
    value: int
    winner: int
    price: int
    bids: tuple[int, ...]
    budgets: tuple[int, ...]


class PlanNote(NamedTuple):
    """A plan from `item` on, priorities 1 to 3; `again`: a second; `lost`: no reply was usable."""

    item: int
    priorities: Mapping[str, int]
    again: bool = False
    lost: bool = False


class BeliefNote(NamedTuple):
    """One update of a bidder's beliefs, after an item.

    `checks` has, for each reply, the number of mentioned fields of each of `GROUPS` and of the
    wrong ones among them; `known` the number that it could have mentioned. `resent`: wrong ones
    were.
    """

    item: int
    checks: Sequence[Mapping[str, tuple[int, int]]]
    unreadable: int = 0
    resent: bool = True
    known: Mapping[str, int] = {}


class Bidder(NamedTuple):
    """One seat of an auction: its budget at the start, its profit and items won at the end.

    `accepted` counts legal replies, withdrawals included; `failed` refused ones by kind, see
    `FAILED`. `strategy`: None where it is not known.
    """

    name: str
    objective: str
    budget: int
    profit: int
    won: int
    accepted: int = 0
    failed: Mapping[str, int] = {}
    plans: Sequence[PlanNote] = ()
    beliefs: Sequence[BeliefNote] = ()
    strategy: str | None = None

    def priority(self, lot: Lot, plan: str) -> int | None:
        """Return an item's priority in the ``initial`` or ``current`` plan; None without any."""
        last = 0 if plan == "initial" else lot.place
        plans = [p for p in self.plans if p.item <= last and lot.name in p.priorities]
        return plans[-1].priorities[lot.name] if plans else None


class Auction(NamedTuple):
    """One auction: rules, lots in order (without those nobody could pay), bidders by seat."""

    game: EnglishAuction
    lots: Sequence[Lot]
    bidders: Sequence[Bidder]

    def money(self, seat: int) -> list[int]:
        """Return a seat's money before the first item and after each place in the order."""
        money_by_place = {lot.place: lot.budgets[seat] for lot in self.lots}
        curve = [self.bidders[seat].budget]
        for index in range(len(self.game.catalogue)):
            curve.append(money_by_place.get(index, curve[-1]))
        return curve


def seats_of(auctions: Sequence[Auction], player: str) -> Iterator[tuple[Auction, int]]:
    for auction in auctions:
        for seat, bidder in enumerate(auction.bidders):
            if bidder.name == player:
                yield auction, seat


class Rate(NamedTuple):
    """A corrected failure rate: the numbers of failed and correct cases."""

    failed: int
    correct: int

    @property
    def value(self) -> float | None:
        """Return failed / (correct + failed); None for none at all."""
        return self.failed / sum(self) if any(self) else None


def bid_failures(bidders: Sequence[Bidder]) -> Rate:
    """Return the failed bids of some bidders, and their accepted replies."""
    failed = sum(bidder.failed.get(kind, 0) for bidder in bidders for kind in FAILED)
    return Rate(failed, sum(bidder.accepted for bidder in bidders))


def failure_rate(episode: RecordedEpisode) -> float | None:
    """Return the corrected failure rate of all bids of one auction, see `bid_failures`."""
    failed = _refused(episode.attempts())
    accepted = sum(not decision.broke for decision in episode.decisions())
    return Rate(sum(failed[kind] for kind in FAILED), accepted).value


def belief_failures(beliefs: Sequence[BeliefNote], group: str, definition: str = "paper") -> Rate:
    """Wrong and right fields of some updates; UnknownName: no such group or definition."""
    _check("group of beliefs", group, GROUPS)
    _check("definition of the failure rate", definition, DEFINITIONS)
    wrong = right = 0
    for belief in beliefs:
        counts = [check[group] for check in belief.checks]
        wrong += sum(bad for _, bad in counts)
        if definition == "paper" and belief.resent:
            right += sum(checked for checked, _ in counts[-1:])
        else:
            right += sum(checked - bad for checked, bad in counts)
    return Rate(wrong, right)


class Coverage(NamedTuple):
    """The number of fields that the checked replies mention, and that they could have mentioned."""

    mentioned: int
    known: int

    @property
    def value(self) -> float | None:
        """Return mentioned / known; None for no fields at all."""
        return self.mentioned / self.known if self.known else None


def belief_coverage(beliefs: Sequence[BeliefNote], group: str) -> Coverage:
    """How many known fields the checked replies of updates mention; UnknownName: no group."""
    _check("group of beliefs", group, GROUPS)
    return Coverage(
        sum(check[group][0] for belief in beliefs for check in belief.checks),
        sum(belief.known.get(group, 0) * len(belief.checks) for belief in beliefs),
    )


def _check(kind: str, name: str, allowed: Sequence[str]) -> None:
    if name not in allowed:
        raise unknown(kind, name, allowed)


def follows(
    auctions: Sequence[Auction], player: str, plan: str, statistic: str
) -> Correlation | None:
    """Return the correlation of a player's priorities with its acts over all items.

    Its interval is of the mean of the auctions' own correlations, as items of one auction are not
    independent. None without a plan, or where either side is constant. Raises UnknownName.
    """
    _check("plan", plan, PLANS)
    _check("statistic", statistic, STATISTICS)
    pairs: list[list[tuple[int, int]]] = [
        [
            (priority, lot.bids[seat] if statistic == "engagement" else lot.winner == seat)
            for _, seat in seats_of([auction], player)
            for lot in auction.lots
            if (priority := auction.bidders[seat].priority(lot, plan)) is not None
        ]
        for auction in auctions
    ]
    groups = [[*chain(*pairs)], *pairs]
    correlation, *each = (spearman([p for p, _ in g], [did for _, did in g]) for g in groups)
    auction_rhos = [auction_correlation.rho for auction_correlation in each if auction_correlation]
    if correlation is None or len(auction_rhos) < intervals.RANKED:
        return correlation
    return correlation._replace(interval=intervals.score(auction_rhos, -1, 1))


def replans(bidders: Sequence[Bidder]) -> tuple[int, int]:
    """Return the number of plans that changed a priority, and that replaced another."""
    changed = total = 0
    for bidder in bidders:
        priorities: dict[str, int] = {}
        for plan in bidder.plans:
            total += plan.again
            moved = any(priorities.get(k) != value for k, value in plan.priorities.items())
            changed += plan.again and moved
            priorities |= plan.priorities
    return changed, total


def priority_matrix(auctions: Sequence[Auction], player: str) -> dict[str, list[float | None]]:
    """Each item's mean priority when each place in the order of sale is called, or None."""
    by_item: dict[str, list[list[int]]] = {}
    for auction, seat in seats_of(auctions, player):
        items = auction.game.catalogue
        for item in items:
            by_item.setdefault(item.name, [[] for _ in items])
        for lot in auction.lots:
            for index in range(lot.place + 1):
                priority = auction.bidders[seat].priority(lot._replace(place=index), "current")
                if priority is not None:
                    by_item[lot.name][index].append(priority)
    return {name: [fmean(c) if c else None for c in row] for name, row in by_item.items()}


def budget_curves(auctions: Sequence[Auction], player: str) -> list[list[float]]:
    """A player's mean money in each of its auctions; BadParameter: of different lengths."""
    curves = []
    for auction in auctions:
        seat_curves = [auction.money(seat) for _, seat in seats_of([auction], player)]
        if seat_curves:
            curves.append([*map(fmean, zip(*seat_curves, strict=True))])
    if len({len(curve) for curve in curves}) > 1:
        raise BadParameter("a budget curve needs auctions of equally many items")
    return curves


def money_within(auctions: Sequence[Auction]) -> Ends:
    """Return the ends between which a bidder's money lies."""
    return 0.0, float(max(bidder.budget for auction in auctions for bidder in auction.bidders))


def profits_within(games: Sequence[EnglishAuction]) -> Ends:
    """Return the ends between which a bidder's profit lies, whatever it pursues."""
    least, highest = zip(*(game.profits for game in games), strict=True)
    return min(least), max(highest)


def prices(auctions: Sequence[Auction]) -> dict[str, list[int]]:
    """Return the prices paid by bidders that pursue ``profit`` and those that pursue ``items``."""
    by_objective: dict[str, list[int]] = {}
    for auction in auctions:
        for lot in auction.lots:
            if lot.winner >= 0:
                by_objective.setdefault(auction.bidders[lot.winner].objective, []).append(lot.price)
    return by_objective


def price_gap(auctions: Sequence[Auction]) -> float | None:
    """Return the mean price of profit bidders less that of item bidders, or None."""
    by_objective = prices(auctions)
    if len(by_objective) < 2:
        return None
    return fmean(by_objective["profit"]) - fmean(by_objective["items"])


def profits(auctions: Sequence[Auction]) -> list[dict[str, int]]:
    """Everybody's profit, by auction; BadParameter: a player has several seats in one."""
    by_auction = []
    for auction in auctions:
        names = [bidder.name for bidder in auction.bidders]
        if len(set(names)) < len(names):
            raise BadParameter(
                f"ranks need another name for each seat of an auction, got {', '.join(names)}; "
                "give seats names"
            )
        by_auction.append({bidder.name: bidder.profit for bidder in auction.bidders})
    return by_auction


def ranks(auctions: Sequence[Auction]) -> dict[str, list[int | None]]:
    """Each player's rank by profit, ties sharing the better, or None; raises as `profits`."""
    games = profits(auctions)
    return {
        name: [
            1 + sum(other > game[name] for other in game.values()) if name in game else None
            for game in games
        ]
        for name in dict.fromkeys(name for game in games for name in game)
    }


class BidderStanding(NamedTuple):
    """One player's results over some auctions; a name on several seats counts once for each.

    Failed bids, wrong beliefs of itself and of others, and the share of the known fields that these
    mention; bids that were no legal JSON, unreadable updates of beliefs, plans without a usable
    reply; per auction profit, items won, money at the end and bids accepted; price to start price
    of the items won. `correlations` are by plan and statistic, see `follows`. The auctions are the
    units of all intervals; `shares` has those of the mean of the auctions' own shares.
    """

    player: str
    strategy: str | None
    seats: int
    bids: Rate
    own: Rate
    others: Rate
    own_named: Coverage
    others_named: Coverage
    bad_format: int
    bad_beliefs: int
    bad_plans: int
    correlations: Mapping[tuple[str, str], Correlation | None]
    profit: MeanCell
    won: MeanCell
    money_left: MeanCell
    accepted: MeanCell
    price_ratio: MeanCell | None
    changed: int
    replanned: int
    shares: Mapping[str, MeanCell | None]


def standings(auctions: Sequence[Auction], definition: str = "paper") -> list[BidderStanding]:
    """Results of every player as they first appear; UnknownName: none of `DEFINITIONS`."""
    names = dict.fromkeys(bidder.name for auction in auctions for bidder in auction.bidders)
    return [_standing(auctions, name, definition) for name in names]


def _standing(auctions: Sequence[Auction], player: str, definition: str) -> BidderStanding:
    taken = [seats for auction in auctions if (seats := list(seats_of([auction], player)))]
    sat = [[auction.bidders[seat] for auction, seat in seats] for seats in taken]
    bidders = [bidder for seats in sat for bidder in seats]
    games = [auction.game for auction in auctions]
    items = 0.0, float(max(len(game.catalogue) for game in games))

    def mean(of: Callable[[Auction, int], float], ends: Ends = POSITIVE) -> MeanCell:
        cell = paid([fmean(of(*seat) for seat in seats) for seats in taken], ends, True)
        assert cell is not None
        return cell

    def believed(bidders: Sequence[Bidder]) -> list[BeliefNote]:
        return [belief for bidder in bidders for belief in bidder.beliefs]

    kinds: dict[str, Callable[[Sequence[Bidder]], Rate | Coverage]] = {
        "bids": bid_failures,
        "own": lambda seats: belief_failures(believed(seats), "own", definition),
        "others": lambda seats: belief_failures(believed(seats), "others", definition),
        "own_named": lambda seats: belief_coverage(believed(seats), "own"),
        "others_named": lambda seats: belief_coverage(believed(seats), "others"),
        "changed": lambda seats: Coverage(*replans(seats)),
    }
    whole: dict[str, Any] = {name: of(bidders) for name, of in kinds.items()}
    changed = whole.pop("changed")
    return BidderStanding(
        player=player,
        strategy=bidders[0].strategy,
        seats=len(bidders),
        **whole,
        bad_format=sum(bidder.failed.get("format", 0) for bidder in bidders),
        bad_beliefs=sum(belief.unreadable for belief in believed(bidders)),
        bad_plans=sum(plan.lost for bidder in bidders for plan in bidder.plans),
        correlations={key: follows(auctions, player, *key) for key in product(PLANS, STATISTICS)},
        profit=mean(lambda auction, seat: auction.bidders[seat].profit, profits_within(games)),
        won=mean(lambda auction, seat: auction.bidders[seat].won, items),
        money_left=mean(lambda auction, seat: auction.money(seat)[-1], money_within(auctions)),
        accepted=mean(lambda auction, seat: sum(lot.bids[seat] for lot in auction.lots)),
        price_ratio=_price_ratio(taken),
        changed=changed.mentioned,
        replanned=changed.known,
        shares={
            name: _share([of(seats).value for seats in sat], of(bidders).value)
            for name, of in kinds.items()
        },
    )


def _share(each: Sequence[float | None], whole: float | None) -> MeanCell | None:
    """Return a share over all auctions, with the interval of the auctions' mean share."""
    cell = estimated([value for value in each if value is not None], SHARE)
    return None if whole is None or cell is None else cell._replace(mean=whole, std=None)


def _price_ratio(taken: Sequence[Sequence[tuple[Auction, int]]]) -> MeanCell | None:
    """Return the mean of price to start price over items won, its interval over auctions."""
    ratios: list[list[float]] = []
    for seats in taken:
        pairs = ((lot, seat) for auction, seat in seats for lot in auction.lots)
        won = (lot for lot, seat in pairs if lot.winner == seat and lot.start)
        ratios.append([lot.price / lot.start for lot in won])
    cell = paid([*map(fmean, filter(None, ratios))], POSITIVE, True)
    return cell and cell._replace(mean=fmean(chain(*ratios)))


def auctions(game: RecordedGame) -> list[Auction]:
    seats = game.planned.get("seats", [{}] * len(game.seats))
    settings = [seat.get("settings", {}) for seat in seats]
    return [_auction(episode, settings) for episode in game.done]


def _auction(episode: RecordedEpisode, settings: Sequence[Mapping[str, Any]]) -> Auction:
    rules: Any = episode.rules
    decisions, attempts, notes = episode.decisions(), episode.attempts(), episode.notes()
    zero = [0] * rules.players  # nobody could pay anything
    last = episode.records[-1] if episode.records else {"profit": zero, "won": zero}
    bidders = []
    for seat, (name, index) in enumerate(zip(episode.seats, episode.row.seating, strict=True)):
        asked = [attempt for attempt in attempts if attempt.seat == seat]
        noted = [note for note in notes if note.seat == seat]
        plans = list(_plans(noted, asked))
        bidder = Bidder(
            name,
            rules.objectives[seat],
            int(rules.purses[seat]),
            last["profit"][seat],
            last["won"][seat],
            accepted=sum(decision.seat == seat and not decision.broke for decision in decisions),
            failed=_refused(asked),
            plans=plans,
            beliefs=list(_beliefs(noted, settings[index], rules.names()[seat])),
            strategy=settings[index].get("strategy", "adaptive" if plans else None),
        )
        bidders.append(bidder)
    return Auction(rules, list(_lots(rules, episode.records)), bidders)


def _refused(attempts: Sequence[AttemptRow]) -> Counter[str]:
    """Count bids that were refused, by kind."""
    bids = [attempt for attempt in attempts if attempt.kind == "move"]
    refused = [bid for bid in bids if bid.outcome not in (None, "valid", "failed", "tool")]
    return Counter(bid.detail or "format" for bid in refused)


def _lots(rules: EnglishAuction, records: Sequence[Mapping[str, Any]]) -> Iterator[Lot]:
    bids = [0] * rules.players
    for record in records:
        for seat, action in enumerate(record["actions"]):
            bids[seat] += action >= 0
        if record["closed"]:
            name, start, value = rules.catalogue[record["lot"]]
            listed, sold = (record["item"], name, start, value), (record["winner"], record["price"])
            yield Lot(*listed, *sold, tuple(bids), tuple(record["budget"]))
            bids = [0] * rules.players


def _plans(notes: Sequence[NoteRow], attempts: Sequence[AttemptRow]) -> Iterator[PlanNote]:
    usable = {(a.step, a.kind) for a in attempts if a.outcome == "valid"}
    read = {(a.step, a.kind) for a in attempts if a.outcome != "failed"}
    for note in notes:
        if note.kind == "plan":
            content, again = note.content, note.content["again"]
            lost = (note.step, "replan" if again else "plan") in read - usable
            yield PlanNote(content["item"], content["priorities"], again, lost)


def _beliefs(
    notes: Sequence[NoteRow], settings: Mapping[str, Any], me: str
) -> Iterator[BeliefNote]:
    resent = settings.get("correct_belief", True)
    for content in (note.content for note in notes if note.kind == "belief"):
        checks = [{"own": check["self"], "others": check["others"]} for check in content["checks"]]
        known_fields = _known_fields(content["truth"], me)
        yield BeliefNote(content["item"], checks, len(content["unusable"]), resent, known_fields)


def _known_fields(truth: Mapping[str, Any], me: str) -> dict[str, int]:
    """Count a belief's fields of known truth by group: own money, announced profits, items."""
    facts = [*truth["total_profits"].items(), *truth["winning_bids"].items()]
    is_own = [name == me for name, fact in facts if fact is not None]
    return {"own": 1 + sum(is_own), "others": len(is_own) - sum(is_own)}


class PublishedCorrelation(NamedTuple):
    """A cell of the paper's Table 1: a model's rank correlation, see `follows`."""

    model: str
    checkpoint: str
    plan: str
    statistic: str
    spearman: float


@cache
def published() -> tuple[PublishedCorrelation, ...]:
    """Return Table 1: five models, both plans and both statistics."""
    return printed(__package__, "table1", PublishedCorrelation)
