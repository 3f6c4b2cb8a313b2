"""Configurations: what they come to, and that every mistake is named before anything runs."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.baselines.seat_rotation import rotated, uneven
from llm_games.benchmarks.judge.paper import PAPERS
from llm_games.benchmarks.papers.gamma_bench.scores import GAMES
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.run.config import experiments, load, parse
from llm_games.benchmarks.run.estimate import estimate
from llm_games.benchmarks.run.plan import (
    Overrides,
    PlannedGame,
    RunPlan,
    episode_seed,
    players,
    resolve,
)
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.registry import rulebook

GOODS = '[[games]]\ngame = "public_goods"\n'


def plan_of(text, overrides=None, folder=None):
    path = folder / "run.toml"
    path.write_text(text)
    overrides = overrides or Overrides()
    raw = overrides.apply(load(str(path)))
    return resolve(parse(raw, path), str(path), overrides)


@each_row(
    ("text", "says"),
    [
        ("title = ", "not valid TOML: Invalid value (at end of document)"),
        ("seed = 3\nepisodes 4", "line 2, column 10"),
        ("", "the key games is missing"),
        ("games = []", "games = []"),
        (GOODS + "parms = {}", "games[0].parms; did you mean 'params'?"),
        ("episode = 3\n" + GOODS, "no key episode; did you mean 'episodes'?"),
        ("[player]\ntemperatur = 1\n" + GOODS, "player.temperatur; did you mean 'temperature'?"),
        ("[models.m]\nbaseurl = ''\n" + GOODS, "models.m.baseurl; did you mean 'base_url'?"),
        ("seats = [{player = 'tiny', persna = 'x'}]\n" + GOODS, "seats[0].persna; did you mean"),
        ("episodes = 0\n" + GOODS, "episodes = 0: it should be greater than or equal to 1"),
        ("episodes = '5'\n" + GOODS, "episodes = '5': it should be a valid integer"),
        (
            "seats = 3\n" + GOODS,
            'seats = 3: it should be a list of players, such as ["tiny"], or one',
        ),
        ("seats = [1]\n" + GOODS, "seats[0] = 1: it should be a table"),
        ("seed = -1\n" + GOODS, "seed = -1"),
        (
            "[player]\ntemperature = 2.5\n" + GOODS,
            "temperature = 2.5: temperature must be a number from 0 to 2",
        ),
        ("[player]\nmemory = -1\n" + GOODS, 'must be "full", "none" or a number'),
        ("[models.m]\nbase_url = 'x'\n" + GOODS, "models.m.base_url = 'x': must be an address"),
        ("[models.m]\napi_key = 'x'\n" + GOODS, "api_key_env"),
        ("[models.m]\nbase_url = 'http://a:b@c'\n" + GOODS, "api_key_env"),
        ('[[games]]\ngame = "public_godos"', "did you mean 'public_goods'?"),
        (GOODS + "params = {tokenz = 1}", "did you mean 'tokens'?"),
        (GOODS + "params = {tokens = 0}", "tokens must be an integer of at least 1"),
        (GOODS + "params = {ratio = 'much'}", "ratio must be a ratio"),
        (GOODS + "seats = ['random', 'random']", "has 10 seats, but seats lists 2 players"),
        (GOODS + GOODS, "two games are called 'public_goods'"),
        ("failed_reply = 'crash'\n" + GOODS, "failed_reply must be one of"),
        ("order = 'latin'\n" + GOODS, "order = 'latin': it should be 'fixed', 'rotate' or"),
        (GOODS + "order = 'turn'", "games[0].order = 'turn': it should be 'fixed', 'rotate' or"),
        (GOODS + "chance = ''", "games[0].chance = ''"),
        (
            '[[games]]\ngame = "battle_royale"\nparams = {max_shots = "none"}',
            "may never end with these parameters; set max_steps",
        ),
    ],
)
def test_mistakes_are_named(tmp_path, text, says):
    with pytest.raises(ConfigError) as caught:
        plan_of(text, folder=tmp_path)
    assert says in str(caught.value)


@each_row("seats", ['"random"', '["random"]', '{player = "random"}'])
def test_one_player_alone_sits_on_all_seats(tmp_path, seats):
    run, game = (
        plan_of(text, folder=tmp_path)
        for text in (f"seats = {seats}\n{GOODS}", f"{GOODS}seats = {seats}")
    )
    assert [seat.name for seat in run.games[0].seats] == ["random"] * 10
    assert game.games[0].seats == run.games[0].seats
    given = Overrides.of(seats="fixed:1", games="public_goods")
    changed = plan_of(f"{GOODS}seats = {seats}", given, tmp_path)
    assert {seat.player for seat in changed.games[0].seats} == {"fixed:1"}
    kept = plan_of(f"{GOODS}seats = 'default'", given, tmp_path)
    assert {seat.player for seat in kept.games[0].seats} == {"fixed:1"}


@each_row(
    ("seats", "says"),
    [
        ("'randm'", "seat 0 (randm): there is no player 'randm'; did you mean 'random'?"),
        ("'level_k'", "needs a value"),
        ("'openai'", "needs a value"),
        ("'fixed:99'", "99"),
        ("{player = 'random', persona = 'selfish'}", "takes no settings, got persona"),
        ("'transformers:/nowhere/model'", "there is no folder /nowhere/model"),
        ("{player = 'openai:m', api_key_env = 'NO_SUCH_KEY'}", "NO_SUCH_KEY"),
        ("{player = 'openai:m', api_key_file = '/nowhere'}", "/nowhere"),
    ],
)
def test_players_that_cannot_be_built(tmp_path, seats, says):
    plan = plan_of(f"seats = [{seats}]\n{GOODS}", folder=tmp_path)
    with pytest.raises(ConfigError) as caught:
        players(plan)
    assert says in str(caught.value)


def test_a_model_folder_without_weights(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    plan = plan_of(f"seats = ['transformers:{folder}']\n{GOODS}", folder=tmp_path)
    with pytest.raises(ConfigError, match="has no weights"):
        players(plan)


@each_row(
    ("source", "says"),
    [
        ("nowhere.toml", "there is no file nowhere.toml"),
        ("looks = [5, 10]\n" + GOODS, "there are no planned looks any more; leave the key out"),
        ("gamma-benc", "did you mean 'gamma-bench'?"),
        ("gamma-bench/vanila", "did you mean 'vanilla'?"),
        (str(PAPERS), "cannot be read"),
    ],
)
def test_files_that_cannot_be_read(source, says):
    with pytest.raises(ConfigError) as caught:
        load(source)
    assert says in str(caught.value)


def test_the_benchmark_by_name():
    plan = resolve(parse(load("gamma-bench"), "x"), "x")
    assert tuple(game.game for game in plan.games) == GAMES
    assert all(len(game.seats) == 10 and len(game.seeds) == 5 for game in plan.games)
    for game in plan.games:
        paper = rulebook(game.game, preset="gamma_bench")
        assert rulebook(game.game, **game.params) == paper
    assert {seat.player for game in plan.games for seat in game.seats} == {"tiny"}


@each_row("path", sorted(PAPERS.glob("*/*.toml")), ids=lambda p: p.stem)
def test_all_experiments_that_come_with_the_package(path):
    file = parse(load(str(path)), path)
    assert file.order or all(game.order for game in file.games)  # who sits where is said
    plan = resolve(file, str(path))
    assert RunPlan.model_validate_json(plan.model_dump_json()) == plan


def test_settings_are_merged_from_the_general_to_the_particular(tmp_path):
    text = """
    seats = ["openai:m", {player = "openai:m", persona = "selfish", name = "greedy"}, "random"]
    max_attempts = 2
    [player]
    temperature = 0.5
    memory = 3
    [models.m]
    model = "real-name"
    base_url = "http://127.0.0.1:1/v1"
    temperature = 0.7
    [[games]]
    game = "public_goods"
    params = {players = 3, ratio = "3/2"}
    """
    [game] = plan_of(text, Overrides(settings={"prompts": "v2"}), tmp_path).games
    plain, greedy, rule = game.seats
    common = {"max_attempts": 2, "temperature": 0.7, "memory": 3, "prompts": "v2"}
    assert plain.settings == common
    assert greedy.settings == common | {"persona": "selfish"}
    assert plain.client == greedy.client == {"base_url": "http://127.0.0.1:1/v1"}
    assert [seat.name for seat in game.seats] == ["openai:m", "greedy", "random"]
    assert plain.player == greedy.player == "openai:real-name"
    assert (rule.settings, rule.client) == ({}, {})


def test_an_old_name_is_recorded_as_the_game_it_means(tmp_path):
    text = '[[games]]\ngame = "sealed_bid_auction"\nseats = ["random", "random", "random"]\n'
    [game] = plan_of(text + 'params = {preset = "econ_arena", players = 3}', folder=tmp_path).games
    assert (game.label, game.game) == ("sealed_bid_auction", "budget_auction")
    assert game.rules().name == "budget_auction"


def test_the_command_line_wins(tmp_path):
    text = "episodes = 9\nseats = ['tiny']\n" + GOODS + "episodes = 8\nseats = ['fixed:1']\n"
    text += '[[games]]\ngame = "divide_dollar"\nlabel = "cake"'
    changed = Overrides(["random"], ["cake"], 2, 7, {})
    [game] = plan_of(text, changed, tmp_path).games
    assert (game.label, game.game, len(game.seeds)) == ("cake", "divide_dollar", 2)
    assert {seat.player for seat in game.seats} == {"random"}
    assert game.seeds == [episode_seed(7, "cake", i) for i in range(2)]
    with pytest.raises(LLMGamesError, match="did you mean 'cake'"):
        plan_of(text, Overrides(games=["cakee"]), tmp_path)


def test_nothing_secret_is_written_down(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    text = "[models.m]\napi_key_env = 'MY_KEY'\n" + GOODS + "seats = ['openai:m']"
    plan = plan_of(text, folder=tmp_path)
    players(plan)
    assert "MY_KEY" in plan.model_dump_json()
    assert "sk-very-secret" not in plan.model_dump_json()


@given(st.integers(0, 2**63 - 1), st.integers(0, 1000), st.sampled_from(GAMES))
def test_seeds_of_episodes(run, number, game):
    seed = episode_seed(run, game, number)
    assert 0 <= seed < 2**63  # fits a column of integers
    assert seed == episode_seed(run, game, number)
    assert seed != episode_seed(run, game, number + 1)


def test_the_estimate_counts_the_longest_games(tmp_path):
    text = (Path(PAPERS) / "gamma_bench" / "vanilla.toml").read_text()
    plan = plan_of(text, Overrides(seats=["random"]), tmp_path)
    decisions = {row.label: row.decisions for row in estimate(plan, players(plan))}
    assert decisions == dict.fromkeys(GAMES, 1000) | {"battle_royale": 100, "pirate_game": 270}


def test_settings_can_be_varied(tmp_path):
    text = "seats = ['tiny']\nvary = [{}, {persona = 'selfish'}, {temperature = 0.2}]\n" + GOODS
    plan = plan_of(text, Overrides(settings={"temperature": 0.5}), tmp_path)
    assert [(game.label, game.seats[0].settings) for game in plan.games] == [
        ("public_goods", {"max_attempts": 3, "temperature": 0.5}),
        (
            "public_goods, persona selfish",
            {"max_attempts": 3, "persona": "selfish", "temperature": 0.5},
        ),
        ("public_goods, temperature 0.2", {"max_attempts": 3, "temperature": 0.2}),
    ]


@each_row(("common", "different"), [("false", 3), ("true", 1)])
def test_labels_have_chance_of_their_own_unless_it_is_to_be_common(tmp_path, common, different):
    text = f"common_chance = {common}\nepisodes = 2\nseats = ['random']\n" + GOODS
    for label in ("a", "b"):
        text += f"{GOODS}label = '{label}'\n"
    seeds = {tuple(game.seeds) for game in plan_of(text, folder=tmp_path).games}
    assert len(seeds) == different
    assert len({seed for two in seeds for seed in two}) == 2 * different


def test_games_that_name_their_chance_share_it(tmp_path):
    text = "".join(
        f"{GOODS}label = '{label}'\nchance = '{label[0]}'\n" for label in ("a1", "a2", "b")
    )
    one, two, other = (game.seeds for game in plan_of(text, folder=tmp_path).games)
    assert one == two != other


def test_groups_of_a_paper_that_are_averaged_have_chance_of_their_own():
    for name in ("melee", "rational", "step_by_step"):
        plan = resolve(parse(load(f"econ-arena/{name}"), "x"), "x")
        seeds = [seed for game in plan.games for seed in game.seeds]
        assert len(seeds) == len(set(seeds)) == 300


@given(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=9))
def test_all_rotate_through_all_seats(table):
    many = len(table)
    rows = (2 * rotated(table))[: 2 * many]
    assert rows[0] == list(range(many))
    assert all(sorted(row) == rows[0] for row in rows)
    for first in (rows[:many], rows[many:]):  # each place has each seat once
        assert all(sorted(column) == rows[0] for column in zip(*first, strict=True))
    copies = {table.count(player) for player in table}
    if len(copies) == 1 or len(set(table)) == 2:  # then any number of episodes is as fair as it can
        for number in range(1, 2 * many):
            for player in table:
                columns = zip(*rows[:number], strict=True)
                times = [sum(table[place] == player for place in column) for column in columns]
                assert max(times) - min(times) <= 1


@each_row("many", range(2, 12))
def test_all_sit_before_all_others_equally_often(many):
    rounds, rows = 1 + many % 2, rotated(range(many))
    assert len(rows) == rounds * many
    before = Counter(pair for row in rows for pair in pairwise(row))
    assert set(before.values()) == {rounds}
    assert len(before) == many * (many - 1)


def test_seats_that_are_worth_something_are_named_unless_all_have_had_them(tmp_path):
    text = "[[games]]\ngame = 'pirate_game'\nparams = {players = 3}\n"
    text += "seats = ['fixed:1', 'random', 'random']\n"
    for more, said in (
        ("episodes = 3", False),
        ("episodes = 4", True),
        ("order = 'fixed'", True),
        ("seats = ['random']", False),
    ):
        lines = [line for line in text.splitlines() if line.split()[0] != more.split()[0]]
        [game] = plan_of("\n".join([*lines, more]), folder=tmp_path).games
        found = game.uneven()
        assert found.startswith("the lowest seat left proposes") == bool(found) == said
    assert uneven(rulebook("public_goods", players=2), "ab", [[0, 1]]) == ""
    assert uneven(rulebook("pirate_game", players=2), "ab", []) == ""


@each_row(
    ("text", "order"),
    [
        ("seats = ['random']\n" + GOODS, "fixed"),
        ("seats = ['random']\norder = 'shuffled'\n" + GOODS, "shuffled"),
        (GOODS + "params = {players = 2}\nseats = ['random', 'fixed:1']", "rotate"),
        (
            GOODS + "params = {players = 2}\nseats = ['random', {player='random', name='b'}]",
            "rotate",
        ),
        (
            "order = 'fixed'\n" + GOODS + "params = {players = 2}\nseats = ['random', 'fixed:1']",
            "fixed",
        ),
        ("order = 'fixed'\n" + GOODS + "order = 'rotate'", "rotate"),
    ],
)
def test_mixed_tables_rotate_unless_the_file_says_otherwise(tmp_path, text, order):
    [game] = plan_of(text, folder=tmp_path).games
    assert game.order == order
    assert game.model_dump()["order"] == order  # it is in the record
    assert PlannedGame(**{k: v for k, v in game if k != "order"}).order == "fixed"  # older records


def test_what_is_a_players_own_must_be_playable_on_all_seats(tmp_path, monkeypatch):
    auction = """[[games]]
    game = "english_auction"
    episodes = 3
    seats = ["random", "rule:4", "rule:5"]
    params = {players = 3, items = "items_3", budgets = [100, 200, 300]}
    """
    game = plan_of(auction, folder=tmp_path).games[0]
    assert [game.rules(row).budgets[0] for row in game.seatings()] == [100, 300, 200]
    usual = PlannedGame.rules

    def picky(self, seating=None):
        if seating and seating[0]:
            raise BadParameter("the first seat has the smallest budget")
        return usual(self, seating)

    monkeypatch.setattr(PlannedGame, "rules", picky)
    with pytest.raises(ConfigError, match=r"episode 1, .* smallest budget; order = .fixed. keeps"):
        plan_of(auction, folder=tmp_path)
    assert plan_of("order = 'fixed'\n" + auction, folder=tmp_path).games[0].order == "fixed"


@each_row("source", ["gamma-bench/fixed_strategies", "gamma-bench/variants"])
def test_another_player_takes_the_seats_of_the_default(source):
    overrides = Overrides(seats=["random"])
    plan = resolve(parse(overrides.apply(load(source)), source), source, overrides)
    for game in plan.games:
        first, *others = (seat.player for seat in game.seats)
        assert set(others) == {"random"}
        assert first == {"divide_dollar, one bids 91": "fixed:91"}.get(
            game.label, "fixed:0" if "gives nothing" in game.label else "random"
        )


def planned_with(name, seat):
    overrides = Overrides(seats=[seat])
    return resolve(parse(overrides.apply(load(name)), name), name, overrides)


def test_a_player_that_asks_no_model_has_none_of_its_seats_settings(llm_games):
    plan = planned_with("auc-arena", "rational")
    planning = next(game for game in plan.games if game.label == "more or less planning")
    assert {seat.name for seat in planning.seats} == {"rational"}
    assert planning.ignored == "not used by rational, which asks no model: strategy, name"
    assert [game.ignored for game in plan.games if game is not planning] == ["", ""]
    assert "ignored" not in planning.model_dump()
    players(plan)
    _, out, _ = llm_games("run", "auc-arena", "--seat", "rational", "--dry-run")
    assert f"more or less planning: {planning.ignored}" in " ".join(out.split())
    asked = planned_with("auc-arena", "tiny").games[1]
    assert [seat.settings["strategy"] for seat in asked.seats] == ["none", "static", "adaptive"]
    assert asked.ignored == ""


SOURCES = [f"{group}/{name}" for group, names in experiments().items() for name in names]


@each_row("name", SOURCES)
def test_rational_can_be_seated_in_every_experiment(name):
    players(planned_with(name, "rational"))


KEY = "sk-verysecretkey1234567890"
SECRET = [
    f'headers = {{ authorization = "Bearer {KEY}" }}',
    f'headers = {{ x = 5, authorization = "{KEY}" }}',
    f'headers = "{KEY}"',
    f'base_url = "http://user:{KEY}@127.0.0.1/v1"',
    f'api_key = "{KEY}"',
    f'apiKey = "{KEY}"',
]


@each_row("line", SECRET)
def test_an_error_shows_no_secret(line):
    text = f'seats = ["openai:m"]\n[models.m]\n{line}\n[[games]]\ngame = "public_goods"\n'
    with pytest.raises(ConfigError) as caught:
        parse(load(text), "x.toml")
    assert KEY[:12] not in str(caught.value)
