"""The house: floors, rooms found by convention, and names that stand in their rooms only."""

import ast
import dataclasses
import re
from functools import cache
from pathlib import Path

import pytest
from playing import each_row

from llm_games import game_rooms as rooms
from llm_games.errors import BadParameter
from llm_games.game_rooms import ROOMS
from llm_games.registry import game_class, rulebook
from llm_games.words import Prompts, versions

ROOT = Path(__file__).parents[1]
FLOORS = ("llm_games", "wrappers", "baselines", "benchmarks")
TRAINING = ("benchmarks/studies/",)


def modules():
    found = {}
    for level, folder in enumerate(FLOORS):
        for file in sorted((ROOT / folder).rglob("*.py")):
            inside = file.relative_to(ROOT / folder)
            if level == 0 and inside.parts[0] in FLOORS:
                continue  # the checkout's links
            parts = ["llm_games", *([folder] if level else []), *inside.with_suffix("").parts]
            name = ".".join(part for part in parts if part != "__init__")
            found[name] = level, file
    return found


MODULES = modules()


def imports(file, at_import_time):
    tree = ast.parse(file.read_text("utf-8"))
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if at_import_time and id(node) in later:
            continue
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name for name in names if name in MODULES}
    return found


def test_every_floor_imports_only_from_below():
    for name, (level, file) in MODULES.items():
        if name == "llm_games":
            continue  # the porch
        for other in imports(file, at_import_time=False):
            assert MODULES[other][0] <= level, f"{name} imports from above: {other}"
            assert not other.endswith(".cases"), f"{name} imports what is for tests alone: {other}"


LAYERS = {
    "llm_games": (
        "version errors files import_names key_values noise arrays speech_forms promises "
        "game_rooms",
        "pictures charts",
        "loose_json answer_spans xml_calls schemas questions replies asides",
        "disguise facts normalisation tracing",
        "rulebook random_end rounds view words foreign_templates plain_blocks table table_batch",
        "talk",
        "number_pairs exact_payoffs games",
        "codecs env",
        "registry envs",
    ),
    "wrappers": (
        "clients",
        "policy player_mixture together seats batch",
        "dialogue mind user_players situations tools llm_policy human guest_seat",
        "guests planning play",
        "learned tabular_player torch_player sb3 sb3_log imported",
        "single_agent vector_loops vector_env team_env async_env grpo_rollout guest_table",
        "tool_rollout",
    ),
    "baselines": (
        "disk_arrays pair_theory payoff_tables mixed_equilibria logit_equilibria reasoning_levels "
        "strategy_mixtures memory_one repeated_dilemma regret play_measures people_data "
        "rules seat_rotation scenarios tiny named_tools talkers players "
        "hindsight graded_questions drawn_games",
        "tree move_chances type_mixtures adaptive_rules played_episodes foretold_moves "
        "quantal_responses beliefs batch_play best_response copies "
        "metagame equilibria alpha_rank crossplay verifiers",
        "games",
        "learner seated",
        "training",
    ),
    "benchmarks": (
        "record",
        "judge",
        "run",
        "ghosts",
        "show.export",
        "show.tables",
        "show.page",
        "papers",
        "show.view",
        "show.guests",
        "show.cli",
        "studies",
    ),
}
"""The rooms of a floor, from below: each imports from its own layer and those before it."""


def layered(floor, module):
    first, _, rest = module.removeprefix("llm_games.").removeprefix(f"{floor}.").partition(".")
    name = f"{first}.{rest.partition('.')[0]}" if first == "show" else first
    return next(i for i, names in enumerate(LAYERS[floor]) if name in names.split())


@pytest.mark.parametrize("floor", LAYERS)
def test_no_arrow_runs_up_on_a_floor(floor):
    modules = {
        name: file
        for name, (level, file) in MODULES.items()
        if FLOORS[level] == floor
        and name not in ("llm_games", f"llm_games.{floor}", "llm_games.benchmarks.show")
    }
    for name, file in modules.items():
        for other in imports(file, at_import_time=False) & modules.keys():
            assert layered(floor, other) <= layered(floor, name), f"{name} imports {other}"


def test_each_room_of_benchmarks_is_a_layer():
    rooms = {name.split(".")[0] for name in " ".join(LAYERS["benchmarks"]).split()}
    assert rooms == {path.parent.name for path in (ROOT / "benchmarks").glob("*/__init__.py")}
    assert all(len(names.split()) == 1 for names in LAYERS["benchmarks"])


CONVENTIONS = "rules surface theory players measures drawing mind metrics page cases __main__"
"""Names of modules that stand in several rooms and mean the same in each."""


def test_no_module_and_no_class_has_the_name_of_another():
    modules, classes = {}, {}
    for module, (_, file) in MODULES.items():
        name = file.stem  # rooms may share theirs: games, tiny
        if name not in (*CONVENTIONS.split(), "__init__") and ".show.cli." not in module:
            assert modules.setdefault(name, module) == module
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                where = f"{module}:{node.lineno}"
                assert classes.setdefault(node.name, where) == where, node.name


def test_nothing_inside_imports_from_the_porch():
    for name, (_, file) in MODULES.items():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "llm_games":
                inside = {
                    alias.name for alias in node.names if f"llm_games.{alias.name}" in MODULES
                }
                taken = {alias.name for alias in node.names} - inside
                assert not taken or name == "llm_games", (name, taken)


def test_no_circle_of_imports():
    arrows = {
        name: imports(file, at_import_time=True) - {name} for name, (_, file) in MODULES.items()
    }
    arrows["llm_games"] = set()
    packages = {name for name in MODULES if any(n.startswith(f"{name}.") for n in MODULES)}
    for name in arrows:  # a package that a module stands in is loaded with it
        arrows[name] -= {p for p in packages if name.startswith(f"{p}.")}
    done, open_ = set(), []

    def walk(name):
        assert name not in open_, " -> ".join([*open_[open_.index(name) :], name])
        if name in done:
            return
        open_.append(name)
        for other in sorted(arrows[name]):
            walk(other)
        done.add(open_.pop())

    for name in arrows:
        walk(name)


@cache
def code_of(file):
    tree = ast.parse(file.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(0)
    return ast.unparse(tree)


@pytest.mark.parametrize("game", sorted(ROOMS))
def test_a_game_is_named_in_its_own_rooms_only(game):
    own = (f"llm_games/games/{game}/", f"baselines/games/{game}/", "benchmarks/papers/", *TRAINING)
    for _, file in MODULES.values():
        path = file.relative_to(ROOT).as_posix()
        if path.startswith(own):
            continue
        named = re.search(rf"\b{game}\b", code_of(file))
        sister = game in SISTERS and any(f"/{name}/" in path for name in SISTERS)
        assert not named or sister, f"{path} names {game}"


SISTERS = ("sealed_bid_auction", "budget_auction")
"""One game that was split in two: the rooms of one may name the other."""


@pytest.mark.parametrize("game", sorted(ROOMS))
def test_a_room_is_complete(game):
    found = game_class(game)
    assert found.name == game
    assert found.title
    assert found.source
    assert versions(game) == ["v1", "v2", "v3", "v4", "v5"]
    for version in versions(game):
        assert Prompts(game, version)
    for preset in found.presets:
        assert rulebook(game, preset=preset)
    for name in ("theory", "players"):
        assert rooms.part(game, name), f"the room of {game} lacks {name}.py"


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what is no dilemma
@each_row("game", sorted(ROOMS))
def test_no_size_is_beyond_what_can_be_played(game):
    """A number that decides how long a game is, is refused, or warned of, before time is spent."""
    for parameter in dataclasses.fields(game_class(game)):
        if isinstance(parameter.default, int) and not isinstance(parameter.default, bool):
            try:
                huge = rulebook(game, **{parameter.name: 999_999_999_999})
            except BadParameter:
                continue
            assert huge.length() == rulebook(game).length(), f"{game}: {parameter.name}"


CLASSICS = "matrix_game minimum_effort money_request travelers_dilemma trust_game bargaining "
CLASSICS += "deal_or_no_deal"
"""Games of many laboratories, whose rules no single paper's code has."""


@each_row("game", sorted(ROOMS))
def test_the_authors_options_are_a_word(game):
    found = game_class(game)
    if not found.__module__.startswith("llm_games."):
        return
    named = [preset for preset in found.presets if preset.endswith("_authors")]
    assert bool(named) == (game not in CLASSICS)
    for preset in named:
        assert rulebook(game, preset=preset).core != rulebook(game)


def test_parameters_say_what_they_are():
    for game in ROOMS:
        for parameter in dataclasses.fields(game_class(game)):
            about = parameter.metadata
            assert about, f"{game}: {parameter.name} is not declared with param"
            assert about["meaning"] or about["choices"], f"{game}: {parameter.name}"
