"""Budgets when nobody knows how long replies are, and what models cost."""

import asyncio
import math
import random
from decimal import Decimal
from importlib.util import find_spec

import pytest
from fault_server import FATAL, FaultServer, error, http
from playing import each_row

from llm_games.errors import BadParameter
from llm_games.view import Who
from llm_games.wrappers.clients.base import (
    ClientError,
    Completion,
    ContextOverflow,
    Request,
    Sampling,
)
from llm_games.wrappers.clients.budget import Budget, BudgetExceeded, Ledger
from llm_games.wrappers.clients.metered import Metered, price_of
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.prices import Price, listed
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.clients.stack import Shared, add_layers

PROMPT = 100  # tokens of each prompt, as the server counts them
TEXT = ({"role": "user", "content": "x" * 300},)


class Server:
    """Gives replies of the lengths that `law(rng, number)` says, and counts what it is asked."""

    def __init__(self, law, keeps=True, refuses=None, most=None, counts=True, left_out=None):
        self.law, self.keeps, self.refuses, self.most = law, keeps, refuses, most
        self.counts, self.left_out = counts, left_out
        self.spent = self.calls = self.cut = self.now = self.peak = 0
        self.limits, self.rng = [], random.Random(1)
        self.base_url = ""

    async def __call__(self, request):
        limit = request.sampling.max_tokens
        self.calls, self.limits = self.calls + 1, [*self.limits[-5000:], limit]
        if self.most and (limit or 0) > self.most:
            raise self.refuses
        self.now += 1
        self.peak = max(self.peak, self.now)
        length = self.law(self.rng, self.calls)
        try:
            await asyncio.sleep(0 if length < 1000 else 1e-5)
        finally:
            self.now -= 1
        short = bool(limit and self.keeps and length > limit)
        length = limit if short else length
        self.spent, self.cut = self.spent + PROMPT + length, self.cut + short
        count = {"tokens_in": PROMPT, "tokens_out": length} if self.counts else {}
        return Completion("…", "length" if short else "stop", **count, left_out=self.left_out)


def metered(server, limits, prices=None, **how):
    ledger = Ledger(Budget(**limits), prices)
    client = ScriptedClient(server, "m")
    return add_layers(client, shared=Shared(ledger), **({"max_in_flight": 64} | how)), ledger


def ask(number=0, max_tokens=None):
    return Request(TEXT, sampling=Sampling(max_tokens=max_tokens), who=Who("dice", seat=number % 3))


def play(client, calls, max_tokens=None):
    async def go():
        asked = (client.complete(ask(number, max_tokens)) for number in range(calls))
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(go())


LAWS = {
    "short": lambda rng, n: rng.randint(5, 40),
    "log-normal": lambda rng, n: int(rng.lognormvariate(math.log(800), 1)) + 1,
    "up to 64k": lambda rng, n: min(64_000, int(rng.lognormvariate(math.log(3000), 1.2)) + 1),
    "all long": lambda rng, n: 20_000,
    "turning": lambda rng, n: 200 if n < 100 else 6000,
}


@each_row("limit", [200_000, 2_000_000])
@each_row("law", LAWS)
def test_no_budget_is_passed_whatever_the_lengths(law, limit):
    server = Server(LAWS[law])
    client, ledger = metered(server, {"tokens": limit})
    got = play(client, 500)
    assert ledger.total.tokens == server.spent <= limit
    whole = [answer for answer in got if isinstance(answer, Completion)]
    assert all(answer.finish == "stop" for answer in whole)  # what was cut has been asked again
    assert all(isinstance(answer, Completion | BudgetExceeded) for answer in got)
    if len(whole) < len(got):
        assert server.spent > limit / 3
        assert any("raise tokens to go on" in str(answer) for answer in got)
    assert all(server.limits)
    assert server.peak <= 4 or ledger.lengths["m"].seen


def test_an_ample_budget_costs_no_time_and_cuts_nothing():
    server = Server(LAWS["log-normal"])
    client, _ = metered(server, {"tokens": 10**9})
    got = play(client, 300)
    assert all(isinstance(answer, Completion) for answer in got)
    assert (server.calls, server.cut) == (300, 0)
    assert set(server.limits) == {65_536}
    assert server.peak > 30


def test_without_such_a_budget_nothing_is_sent_or_held():
    server = Server(LAWS["all long"])
    client, ledger = metered(server, {"calls": 50, "calls_per_seat": 40})
    got = play(client, 60)
    assert set(server.limits) == {None}
    assert server.calls == 50 == ledger.total.calls
    assert sum(isinstance(answer, BudgetExceeded) for answer in got) == 10


def test_a_limit_of_ones_own_is_held_and_its_cuts_are_replies():
    server = Server(LAWS["all long"])
    client, ledger = metered(server, {"tokens": 5000})
    got = play(client, 20, max_tokens=400)
    assert {answer.finish for answer in got if isinstance(answer, Completion)} == {"length"}
    assert set(server.limits) == {400}
    assert server.calls == 9  # of 500 tokens each; a prompt is thought to have a few more
    assert ledger.total.tokens == server.spent == 4500


def test_a_reply_that_the_budget_cuts_is_booked_and_asked_again():
    server = Server(lambda rng, n: 5000)
    client, ledger = metered(server, {"tokens": 20_000})
    (got,) = play(client, 1)
    assert (got.finish, got.tokens_out) == ("stop", 5000)
    assert server.limits == [20_000 // 8 - 190, 4 * (20_000 // 8 - 190)]
    assert (ledger.total.calls, ledger.total.failures) == (2, 0)
    assert ledger.total.tokens == server.spent


@each_row("counted", [-1, -40])
def test_a_cut_of_the_budgets_is_known_though_it_is_counted_otherwise(counted):
    def answer(request):
        limit = request.sampling.max_tokens
        if limit > 5000:
            return Completion("whole", "stop", PROMPT, 5000)
        return Completion("half", "length", PROMPT, limit + counted)

    client = Metered(ScriptedClient(answer, "m"), Ledger(Budget(tokens=20_000)))
    assert play(client, 1)[0].text == "whole"


def test_a_reply_that_the_budget_cuts_stops_the_run_if_there_is_no_more():
    server = Server(lambda rng, n: 5000)
    client, ledger = metered(server, {"tokens": 4000})
    (got,) = play(client, 1)
    assert isinstance(got, BudgetExceeded)
    assert "tokens = 4000, has" in str(got)
    assert ledger.total.tokens == server.spent <= 4000


@pytest.mark.parametrize("max_tokens", [None, 50])
def test_a_server_that_ignores_the_limit_is_named_and_called_with_care(max_tokens, caplog):
    server = Server(lambda rng, n: 4000, keeps=False)
    client, ledger = metered(server, {"tokens": 30_000})
    play(client, 1, max_tokens)
    server.peak = 0
    got = play(client, 60, max_tokens)
    assert ledger.total.tokens == server.spent <= 30_000 + 2 * 4100
    assert server.peak <= 2
    assert any(isinstance(answer, BudgetExceeded) for answer in got)
    assert caplog.text.count("does not keep to max_tokens") == 1


def test_one_reply_at_most_is_too_much_where_no_limit_can_be_sent():
    both = ["max_tokens", "max_completion_tokens"]
    server = Server(LAWS["log-normal"], keeps=False, left_out=both)
    ledger = Ledger(Budget(tokens=50_000))
    client = ScriptedClient(server, "m")
    client.leave_out = both
    got = play(Metered(client, ledger), 100)
    assert set(server.limits) == {None}
    assert any(isinstance(answer, BudgetExceeded) for answer in got)
    assert server.spent <= 50_000 + max(a.tokens_out for a in got if isinstance(a, Completion))
    ample = Metered(client, Ledger(Budget(tokens=10**8)))
    play(ample, 200)
    assert server.peak > 30


def test_a_model_is_found_to_take_no_limit_by_what_was_left_out(caplog):
    both = ["max_completion_tokens", "max_tokens"]
    server = Server(lambda rng, n: 300, keeps=False, left_out=both)
    client, ledger = metered(server, {"tokens": 50_000})
    play(client, 1)
    assert not ledger.lengths["m"].sent
    server.peak = 0
    play(client, 20)
    assert 1 < server.peak < 20
    assert caplog.text == ""


@each_row(
    "refuses",
    [
        ClientError("max_tokens is too large: at most 16384 completion tokens", status=400),
        ContextOverflow("maximum context length is 8192 tokens", status=400),
    ],
)
def test_a_limit_that_is_too_large_for_the_server_is_halved(refuses):
    server = Server(LAWS["short"], most=20_000, refuses=refuses)
    client, ledger = metered(server, {"tokens": 10**8})
    got = play(client, 50)
    assert all(isinstance(answer, Completion) for answer in got)
    assert set(server.limits) <= {65_536, 32_768, 16_384}
    assert ledger.total.failures <= 8
    assert ledger.total.tokens == server.spent


TOO_LARGE = [
    ("max_tokens is too large: {0}. This model supports at most 8192 tokens.", "max_tokens"),
    ("This model's maximum context length is 8192 tokens. However, you requested {0}.", None),
    ("'max_tokens' or 'max_completion_tokens' is too large: {0}. This model's maximum context "
     "length is 8192 tokens and your request has 20 input tokens.", None),
    ("`max_tokens` must be less than or equal to `8192`", None),
    ("max_tokens: {0} > 8192, which is the maximum allowed number of output tokens", None),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", None),
    ("`inputs` tokens + `max_new_tokens` must be <= 8192. Given: {0} `max_new_tokens`", None),
]  # fmt: skip


@each_row(("message", "param"), TOO_LARGE)
def test_servers_words_for_a_limit_that_is_too_large_are_known(message, param):
    def choose(body, number):
        limit = body.get("max_tokens") or body.get("max_completion_tokens")
        if limit is not None and limit <= 8192:
            return "ok"
        said = error(message.format(limit), param=param, code="invalid_value")
        FATAL["too large"] = (http(400, said),)
        return "too large"

    with FaultServer(choose) as server:
        ledger = Ledger(Budget(tokens=10**7))
        client = add_layers(OpenAIClient("m", server.url), shared=Shared(ledger))

        async def go():
            try:
                return [await client.complete(ask()) for _ in range(2)]
            finally:
                await client.close()

        got = asyncio.run(go())
    del FATAL["too large"]
    assert [(answer.finish, answer.left_out) for answer in got] == [("stop", None)] * 2
    assert [body["max_tokens"] for body in server.seen] == [65536, 32768, 16384, 8192, 8192]
    assert ledger.total.failures == 3


def test_a_prompt_that_is_too_long_stays_so():
    overflow = ContextOverflow("maximum context length is 8192 tokens", status=400)
    server = Server(LAWS["short"], most=1, refuses=overflow)
    client, ledger = metered(server, {"tokens": 10**8})
    (got,) = play(client, 1)
    assert got is overflow
    assert ledger.total.failures == server.calls <= 9


@each_row("tokens", [100, 3000])
def test_what_the_server_itself_cuts_is_a_reply(tokens):
    answer = Completion("…", "length", PROMPT, tokens)
    ledger = Ledger(Budget(tokens=10_000))
    (got,) = play(Metered(ScriptedClient(lambda _: answer, "m"), ledger), 1)
    assert got is answer
    assert ledger.total.calls == 1


def test_a_server_that_counts_nothing_is_booked_by_estimates():
    server = Server(lambda rng, n: 10, counts=False)
    client, ledger = metered(server, {"tokens": 10**6})
    play(client, 1)
    assert ledger.total.tokens_in >= PROMPT
    assert ledger.total.tokens_out > 0


@each_row(
    "answer",
    [
        Completion("x" * 400, tokens_in=PROMPT),
        Completion("", tool_calls=[{"name": "calculator", "arguments": {"e": "1" * 400}}]),
    ],
)
def test_what_a_server_does_not_count_is_an_estimate(answer):
    ledger = Ledger(Budget(tokens=10**6))
    play(Metered(ScriptedClient(lambda _: answer, "m"), ledger), 1)
    assert ledger.total.tokens_in
    assert ledger.total.tokens_out >= 200


@each_row("law", LAWS)
def test_no_budget_of_money_is_passed(law):
    server, price = Server(LAWS[law]), Price(Decimal("0.15"), Decimal("0.6"), Decimal("0.075"))
    limit = Decimal("0.2")
    client, ledger = metered(
        server, {"money": limit, "money_per_seat": Decimal("0.1")}, {"m": price}
    )
    got = play(client, 300)
    assert ledger.total.money <= limit
    assert all(usage.money <= Decimal("0.1") for usage in ledger.seats.values())
    assert ledger.total.tokens == server.spent
    assert sum(isinstance(answer, Completion) for answer in got) > 4


def test_money_is_limited_though_replies_are_free():
    server = Server(LAWS["short"])
    client, ledger = metered(server, {"money": Decimal("0.001")}, {"m": Price(input=Decimal(1))})
    got = play(client, 50)
    assert ledger.total.money <= Decimal("0.001")
    assert sum(isinstance(answer, Completion) for answer in got) >= 5


@each_row("limits", [{"tokens": 90}, {"tokens_per_seat": 90}])
def test_a_budget_below_one_call_says_what_is_needed(limits):
    server = Server(LAWS["short"])
    (got,) = play(metered(server, limits)[0], 1)
    assert isinstance(got, BudgetExceeded)
    assert server.calls == 0
    assert f"{next(iter(limits))} = 90, has 0 spent and the next call may take 446" in str(got)


def test_nothing_is_spent_on_calls_that_end_early():
    async def go():
        server = Server(LAWS["all long"])
        client, ledger = metered(server, {"tokens": 10**7})
        calls = [asyncio.create_task(client.complete(ask())) for _ in range(8)]
        await asyncio.sleep(0)
        while not server.now:
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return server, ledger

    server, ledger = asyncio.run(go())
    assert (ledger.total.tokens, server.spent) == (0, 0)
    assert ledger.total.calls == ledger.total.failures == server.calls > 0
    assert ledger.remaining("", "tokens") == [10**7]


# -- prices ----------------------------------------------------------------------------------------


def test_cached_tokens_and_thoughts_have_their_prices():
    longer = Price(Decimal(4), Decimal(20), above=None)
    price = Price(Decimal(2), Decimal(10), Decimal("0.5"), Decimal(12), 1000, longer)
    assert price.of(1000, 100, 400, 60) == Decimal("0.00252")
    assert price.of(1001, 100, 400, 60) == Decimal("0.006004")
    assert Price(Decimal(2), Decimal(10)).of(1000, 100, 400, 60) == Decimal("0.003")
    assert price.bound(max).of(1000, 100) == price.of(1000, 100, 0, 100)
    assert price.bound(min).of(1000, 100) == price.of(1000, 100, 1000)
    assert price.bound(min).of(1001, 100) == longer.of(1001, 100)
    price = Price(Decimal(2), Decimal(10), Decimal("0.5"), written=Decimal("2.5"))
    assert price.of(1000, 100, 400, 0, 300) == Decimal("0.00255")
    assert price.of(1000, 100, 400, 0, 900) == price.of(1000, 100, 400, 0, 600)  # what is left
    assert price.bound(max).of(1000, 100) == price.of(1000, 100, 0, 0, 1000)


def test_what_a_completion_cost_is_booked_exactly():
    parts = {"tokens_cached": 400, "tokens_reasoning": 60, "tokens_written": 200}
    answer = Completion("x", "stop", 1000, 100, **parts)
    price = Price(Decimal(2), Decimal(10), Decimal("0.5"), Decimal(12), written=Decimal("2.5"))
    ledger = Ledger(prices={"m": price})
    play(Metered(ScriptedClient(lambda _: answer, "m"), ledger), 3)
    spent = ledger.models["m"]
    assert spent.money == 3 * Decimal("0.00262")
    assert (spent.tokens_cached, spent.tokens_reasoning, spent.tokens_written) == (1200, 180, 600)


needs_list = pytest.mark.skipif(find_spec("genai_prices") is None, reason="no list of prices")


@needs_list
@pytest.mark.parametrize(
    ("name", "url", "known"),
    [
        ("gpt-5", "https://api.openai.com/v1", True),
        ("openai/gpt-5-2025-08-07", "", True),
        ("openai/gpt-5", "https://api.openai.com/v1", True),
        ("anthropic/claude-sonnet-4.5", "https://openrouter.ai/api/v1", True),
        ("gpt-5", "", False),
        ("gpt-5", "http://127.0.0.1:8000/v1", False),
        ("openai/of-my-own", "", False),
        ("ollama/qwen3:8b", "", False),
    ],
)
def test_prices_of_providers_are_known(name, url, known):
    price = listed(name, url)
    assert (price is not None) == known
    if price is not None:
        assert 0 < price.cached < price.input < price.output
        assert price.source.startswith("genai-prices ")


@needs_list
def test_listed_prices_are_what_the_list_makes_of_them():
    import genai_prices

    price = listed("google/gemini-2.5-pro")
    for tokens in (1000, 250_000):
        usage = genai_prices.Usage(input_tokens=tokens, cache_read_tokens=800, output_tokens=100)
        found = genai_prices.calc_price(usage, "gemini-2.5-pro", provider_id="google")
        assert price.of(tokens, 100, 800) == found.total_price


@needs_list
def test_a_listed_price_is_of_one_server():
    name, ledger = "openai/gpt-oss-120b", Ledger()
    servers = "https://api.groq.com/openai/v1", "https://openrouter.ai/api/v1"
    for url in servers:
        assert price_of(OpenAIClient(name, url, "k" * 9), ledger) == listed(name, url)
    assert listed(name, servers[0]) != listed(name, servers[1])
    here = OpenAIClient(name, "http://127.0.0.1:9/v1")
    assert price_of(here, ledger) is None
    again = Ledger(prices=ledger.prices)  # as a run that goes on has them
    assert price_of(OpenAIClient(name, servers[0], "k" * 9), again) == listed(name, servers[0])
    with pytest.raises(BadParameter, match="gpt-oss-120b at http"):
        price_of(here, Ledger(Budget(money=Decimal(1)), again.prices))
    own = Ledger(prices={name: Price(Decimal(7))})
    assert price_of(here, own).input == 7


@needs_list
def test_ones_own_price_goes_before_the_listed():
    def booked(**own):
        ledger = Ledger(Budget(money=Decimal(1)), own)
        client = ScriptedClient(lambda _: Completion("", "stop", 1000, 0), "openai/gpt-5")
        play(add_layers(client, shared=Shared(ledger)), 1)
        return ledger.total.money

    assert booked() == Decimal("0.00125")
    assert booked(**{"openai/gpt-5": Price(Decimal(7))}) == Decimal("0.007")


def test_money_needs_a_price():
    client = ScriptedClient(lambda _: "x", "m")
    with pytest.raises(BadParameter, match=r'needs the price of \'m\': \[prices\."m"\]'):
        Metered(client, Ledger(Budget(money_per_seat=Decimal(1))))
