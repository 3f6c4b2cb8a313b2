"""Runs in isomorphs: what is recorded, played again and told of how much the surface matters."""

from __future__ import annotations

import json
import re
import sqlite3

import numpy as np
import pytest
from typer.testing import CliRunner

import llm_games as lg
from llm_games.benchmarks.judge.surface_shares import share_sd, surface_power, surface_share
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.replay import Replay, replay
from llm_games.benchmarks.run.resume import prolong
from llm_games.benchmarks.show.cli import app
from llm_games.disguise import Disguise
from llm_games.errors import BadParameter
from llm_games.registry import game_class

BAR = {"game": "el_farol_bar", "params": {"players": 4, "rounds": 2}}
PIRATES = {"game": "pirate_game", "params": {"players": 4}}


async def first_of_form(request):
    """Take the option that the form names first, or the largest number that it allows."""
    text = request.messages[-1]["content"]
    form = text[text.rindex("{") :]
    key, option = re.search(r'{"(\w+)"', form)[1], re.search(r'<"(\w+)"', form)
    if key == "speech":
        return '{"speech": ""}'
    return json.dumps({key: option[1] if option else int(re.search(r"to (\d+)", form)[1])})


def _run(path, games=(BAR,), **more):
    settings = {"seed": 3, "episodes": 6, "isomorphs": 3} | more
    seats = [{"client": first_of_form, "name": "first"}, "random", "random", "rational"]
    return lg.run({"seats": seats, "order": "rotate", "games": [*games]} | settings, path)


def _replayed(path) -> Replay:
    with Records.open_readonly(path) as records:
        return replay(records)


def _command(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    goods = {"game": "public_goods", "params": {"players": 4, "rounds": 2}}
    talking = BAR | {"label": "talk", "talk": {"turns": 1}}
    return _run(tmp_path_factory.mktemp("surface") / "a.db", [BAR, goods, talking]).path


def _of(path, label="el_farol_bar"):
    with Records.open_readonly(path) as records:
        return [row for row in records.episodes() if row.game.label == label]


def test_the_record_says_which_instance_an_episode_was(run):
    seeds = [row.isomorph for row in _of(run)]
    assert [*np.repeat([*dict.fromkeys(seeds)], 2)] == seeds
    assert len({*seeds}) == 3
    assert seeds == [row.isomorph for row in _of(run, "public_goods")]
    surface = game_class("el_farol_bar").surface
    words = [Disguise("el_farol_bar", seed, surface).words["go"] for seed in seeds]
    with sqlite3.connect(run) as file:
        texts = [text for (text,) in file.execute("SELECT content FROM messages")]
    assert all(any(f"to {word} to a" in text for text in texts) for word in words)


def test_it_is_played_again_without_a_difference(run):
    again = _replayed(run)
    assert not again.differences
    assert again.completions > 0
    with sqlite3.connect(run) as file:
        assert dict(file.execute("SELECT outcome, count(*) FROM attempts GROUP BY 1")).keys() == {
            "valid"
        }


def test_rule_players_move_as_in_the_plain_run(tmp_path):
    paths = [tmp_path / "plain.db", tmp_path / "other.db"]
    for path, count in zip(paths, (None, 3), strict=True):
        more = {} if count is None else {"isomorphs": count}
        seats = ["random", "best_response", "cooperative", "rational"]
        lg.run({"seats": seats, "episodes": 6, "seed": 3, "games": [BAR]} | more, path)
    tables = []
    for path in paths:
        with sqlite3.connect(path) as file:
            tables.append(file.execute("SELECT * FROM decisions ORDER BY 1, 2, 3").fetchall())
    assert tables[0] == tables[1]


def test_what_is_announced_is_read_in_the_same_words(tmp_path):
    told = []
    for count in (None, 3):
        game = {"game": "public_goods", "params": {"rounds": 3, "players": 3}, "talk": {"turns": 1}}
        seats = ["announcer:best_response", "liar:best_response", "announcer:random"]
        settings = {"seats": seats, "episodes": 3, "seed": 3, "games": [game]}
        path = tmp_path / f"{count}.db"
        lg.run(settings | ({"isomorphs": count} if count else {}), path)
        told.append(json.loads(_command("analyse", "talk", path, "--json")))
    assert told[0] == told[1]
    assert "1.0" in str(told[0])


def test_report_and_comparison_tell_the_share(run, tmp_path):
    _command("report", run, "--out", tmp_path / "page", "--no-baselines")
    page = (tmp_path / "page" / "report.html").read_text()
    assert "intraclass correlation" in page
    told = json.loads(_command("compare", run, run, "--json"))["surface"]["A"]
    assert {row["isomorphs"] for row in told} == {3}
    assert "first" in {row["player"] for row in told}


def test_a_run_is_prolonged_by_whole_rounds_of_instances(tmp_path):
    path = _run(tmp_path / "a.db", seats=["random"]).path
    with pytest.raises(ConfigError, match="a multiple of 3, such as 3"):
        prolong(path, 8)
    _command("resume", path, "--episodes", 9)
    seeds = [row.isomorph for row in _of(path)]
    assert sorted(map(seeds.count, {*seeds})) == [3, 3, 3]


def test_an_older_file_is_prolonged(tmp_path):
    path = lg.run({"seats": ["random"], "games": [BAR]}, tmp_path / "a.db").path
    with sqlite3.connect(path) as file:
        file.execute("ALTER TABLE episodes DROP COLUMN isomorph")
    assert _of(path)[0].isomorph is None
    _command("resume", path, "--episodes", 2)
    assert [row.isomorph for row in _of(path)] == [None, None]


def test_a_branch_goes_on_in_the_same_words(run, tmp_path):
    seed = _of(run)[2].isomorph
    branch = lg.branch(run, "el_farol_bar/2/1", tmp_path / "b.db", seats={1: "rational"})
    assert [row.isomorph for row in _of(branch.path)] == [seed]
    assert not _replayed(branch.path).differences


def test_a_dry_run_tells_the_power(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('episodes = 50\n[[games]]\ngame = "el_farol_bar"\nparams = {players = 3}\n')
    asked = ("run", file, "--isomorphs", 10, "--dry-run", "--seat", "random")
    assert "Chance of the F test (5 %)" in _command(*asked)
    rows = json.loads(_command(*asked, "--json"))["surface"]
    [planned] = [row for row in rows if row["isomorphs"] == 10]
    assert planned["finds 20%"] == pytest.approx(0.505, abs=0.01)
    assert [row["isomorphs"] for row in rows] == [5, 10, 20, 25]


PEEK = lg.Tool("peek", "tells the own observation", lambda view, arguments: str(view.numbers))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"games": [{"game": "pirate_game", "params": {"players": 4}}]},
            "pirate_game cannot be renamed",
        ),
        ({"episodes": 7}, "7 episodes cannot be divided evenly among 3 isomorphs.* such as 9"),
        ({"games": [BAR | {"series": True}]}, "a series is recalled in one wording"),
        ({"seats": [lg.LLMPolicy(first_of_form, tools=[PEEK])]}, "peek would speak in plain units"),
        ({"seats": ["human"]}, "human sees the plain table"),
        ({"isomorphs": 0}, "isomorphs"),
    ],
)
def test_what_cannot_be_renamed(tmp_path, change, says):
    with pytest.raises((ConfigError, BadParameter), match=says):
        _run(tmp_path / "a.db", **change)
    assert not (tmp_path / "a.db").exists()


def test_a_wording_of_ones_own_is_refused_before_play(tmp_path):
    (tmp_path / "el_farol_bar").mkdir()
    blocks = ("rules", "report", "request")
    text = "".join(f"{{% block {name} %}}A bar.{{% endblock %}}" for name in blocks)
    (tmp_path / "el_farol_bar" / "mine.j2").write_text(text)
    player = {"prompts": "mine", "prompt_folder": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"mine\.j2 cannot be renamed: it says 'bar'"):
        _run(tmp_path / "a.db", player=player)


# -- statistics ------------------------------------------------------------------------------------
def test_a_share_by_hand():
    """Mean squares of Shrout and Fleiss (1979), table 2: 11.24 and 6.26, ICC(1) = .17."""
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    share = surface_share(np.array(ratings))
    assert share.share == pytest.approx(0.166, abs=5e-4)
    assert share.interval.low == pytest.approx(-0.133, abs=5e-4)
    assert share.interval.high == pytest.approx(0.723, abs=5e-4)
    assert share.p == pytest.approx(0.165, abs=5e-4)


def _covered(n, k, rho, samples, draw=None, seed=1):
    """Return how often the interval holds the share, and how often the test finds one."""
    rng = np.random.default_rng([seed, n, k, int(100 * rho)])
    draw = draw or (lambda shape: rng.normal(0, np.sqrt(1 - rho), shape))
    held = found = 0
    for _ in range(samples):
        share = surface_share(rng.normal(0, np.sqrt(rho), (n, 1)) + draw((n, k)))
        held += share.interval.low <= rho <= share.interval.high
        found += share.p < 0.05
    return held / samples, found / samples


def test_intervals_cover_and_false_alarms_are_as_many_as_said():
    assert 0.04 < _covered(10, 5, 0.0, 3000)[1] < 0.06
    for n, k, rho in ((10, 5, 0.0), (10, 5, 0.2), (20, 5, 0.5)):
        assert 0.93 < _covered(n, k, rho, 1500)[0] < 0.97


@pytest.mark.nightly
@pytest.mark.parametrize("n", [5, 10, 20])
@pytest.mark.parametrize("k", [2, 5, 10])
def test_intervals_cover_everywhere(n, k):
    for rho in (0.0, 0.05, 0.2, 0.5, 0.8):
        held, found = _covered(n, k, rho, 8000)
        assert 0.94 < held < 0.96
        assert abs(found - surface_power(n, k, rho)) < 0.02


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["normal", "skewed", "wins"])
@pytest.mark.parametrize(("n", "k"), [(10, 5), (10, 10), (20, 5)])
def test_false_alarms_everywhere(kind, n, k):
    rng = np.random.default_rng(2)
    draw = {
        "normal": rng.standard_normal,
        "skewed": lambda shape: 100 * rng.beta(9, 1, shape),
        "wins": lambda shape: rng.binomial(1, 0.3, shape).astype(float),
    }[kind]
    assert 0.04 < _covered(n, k, 0.0, 20_000, draw)[1] < 0.06


@pytest.mark.parametrize(
    ("n", "k", "share", "power"),
    [(10, 5, 0.2, 0.51), (10, 10, 0.2, 0.83), (20, 10, 0.2, 0.96), (10, 10, 0.05, 0.25)],
)
def test_power(n, k, share, power):
    assert surface_power(n, k, share) == pytest.approx(power, abs=0.015)
    assert surface_power(n, k, 0.0) == pytest.approx(0.05)


def test_the_spread_of_an_estimate():
    assert [round(share_sd(10, 10, share), 2) for share in (0, 0.05, 0.2, 0.5)] == [
        0.05, 0.07, 0.11, 0.14,
    ]  # fmt: skip


@pytest.mark.parametrize("values", [np.zeros((1, 5)), np.zeros((5, 1)), np.full((3, 3), np.nan)])
def test_values_that_have_no_share(values):
    with pytest.raises(BadParameter, match="2 isomorphs or more"):
        surface_share(values)


def test_episodes_that_are_all_the_same():
    share = surface_share(np.repeat([[1.0], [2.0]], 3, axis=1))
    assert (share.share, share.interval) == (None, None)
    assert share.why.startswith("not identified")
