"""Files of strangers: what they say moves no cursor, and what they break ends in one message."""

import io
import json
import re
import shutil
import sqlite3
import zipfile
from contextlib import closing

import numpy as np
import pytest

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
RUN = """
title = "Small"
episodes = 2
seats = ["tiny", "random", "random"]
[[games]]
game = "public_goods"
params = {players = 3, rounds = 2}
talk = {turns = 1}
"""
COMMANDS = [
    ("report", "a.db", "-o", "out", "--no-baselines"),
    ("compare", "a.db", "b.db"),
    ("leaderboard", "a.db"),
    ("analyse", "reliability", "a.db"),
    ("replay", "a.db"),
    ("analyse", "talk", "a.db"),
    ("watch", "a.db"),
    ("export", "a.db", "-o", "out"),
    ("export", "a.db", "--sft", "sft.jsonl"),
    ("resume", "a.db", "--quiet"),
    ("resume", "a.db"),
    ("animate", "a.db", "-o", "a.gif"),
    ("ghost", "fit", "a.db", "-o", "ghost.json"),
    ("analyse", "judge", "a.db"),
    ("analyse", "rate", "a.db", "-o", "rated"),
    ("run", "a.db"),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    from llm_games.benchmarks.run.conduct import play_run, start
    from llm_games.benchmarks.run.plan import plan_of, players

    folder = tmp_path_factory.mktemp("small")
    (folder / "small.toml").write_text(RUN)
    plan = plan_of(str(folder / "small.toml"))
    play_run(lambda: start(plan, folder / "small.db"), plan, players(plan))
    return folder / "small.db"


def columns(path):
    """Yield each table of a run with its columns of text, or of any kind that SQLite lets be."""
    with closing(sqlite3.connect(path)) as run:
        tables = [name for (name,) in run.execute("SELECT name FROM sqlite_master WHERE sql != ''")]
        for table in tables:
            for _, name, kind, *_ in run.execute(f"PRAGMA table_info({table})"):
                if kind in ("TEXT", "ANY"):
                    yield table, name


def spoilt(value):
    """Put the codes into every text of a JSON value that no reader compares with another."""
    if isinstance(value, str):
        return value + ESCAPE
    if isinstance(value, dict):
        return {key: spoilt(each) for key, each in value.items()}
    return [spoilt(each) for each in value] if isinstance(value, list) else value


def change(path, table, name, new):
    """Put a value into a column of all rows, where the table lets it."""
    with closing(sqlite3.connect(path)) as run:
        run.execute("PRAGMA ignore_check_constraints = 1")
        for (old,) in run.execute(f"SELECT DISTINCT {name} FROM {table}").fetchall():
            try:
                run.execute(f"UPDATE {table} SET {name} = ? WHERE {name} = ?", (new(old), old))
            except sqlite3.DatabaseError:
                continue
        run.commit()


def with_codes(old):
    try:
        read = json.loads(old)
    except (TypeError, ValueError):
        return f"{old}{ESCAPE}"
    return json.dumps(spoilt(read)) if isinstance(read, (str, dict, list)) else old


def check(llm_games, arguments):
    code, out, err = llm_games(*arguments)
    assert code in (0, 1, 2), arguments
    assert not BAD.search(out.replace("\r\n", "\n")), (arguments, BAD.search(out))
    assert not BAD.search(err), (arguments, err)
    assert "Traceback" not in err, (arguments, err)
    return err


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda a: "-".join(a[:1]))
def test_titles_labels_and_names_reach_no_terminal_raw(llm_games, small, tmp_path, arguments):
    """Every text that hangs on nothing has escape codes, and the commands still do their work."""
    for name in ("a.db", "b.db"):
        shutil.copy(small, tmp_path / name)
        for table, column in (
            ("run", "title"), ("run", "package"), ("games", "label"), ("attempts", "model"),
            ("attempts", "text"), ("attempts", "why"), ("episodes", "reason"),
            ("messages", "content"), ("spent", "model"), ("spent", "seat"), ("run", "created"),
        ):  # fmt: skip
            change(tmp_path / name, table, column, with_codes)
        with closing(sqlite3.connect(tmp_path / name)) as run:
            run.execute("UPDATE games SET seats = ?", (json.dumps([f"random{ESCAPE}"] * 3),))
            run.commit()
    check(llm_games, arguments)


@pytest.mark.nightly
def test_a_spoilt_column_ends_in_one_message(llm_games, small, tmp_path, night):
    """Of every column of text: escape codes, no JSON, other JSON, deep JSON, nothing, no text."""
    kinds = {
        "codes": with_codes,
        "no JSON": lambda old: "{",
        "a number": lambda old: "7",
        "a list": lambda old: '[[1, "x"], null]',
        "a mapping": lambda old: '{"a": {"b": [1e999, NaN]}}',
        "deep": lambda old: "[" * 100_000,
        "empty": lambda old: "",
        "bytes": lambda old: b"\xff\x00",
        "large": lambda old: "9" * 5000,
    }
    cases = [(t, c, k) for t, c in columns(small) for k in kinds]
    rng = np.random.default_rng(4)
    picked = rng.choice(len(cases), night(25, len(cases)), replace=False)
    for number in picked:
        table, column, kind = cases[number]
        shutil.copy(small, tmp_path / "a.db")
        shutil.copy(small, tmp_path / "b.db")
        change(tmp_path / "a.db", table, column, kinds[kind])
        for at in rng.permutation(len(COMMANDS))[: night(3, 8)]:
            try:
                check(llm_games, COMMANDS[at])
            except BaseException as error:
                error.add_note(f"{table}.{column}: {kind}, {COMMANDS[at]}")
                raise
            for made in ("out", "rated"):
                shutil.rmtree(tmp_path / made, ignore_errors=True)


@pytest.mark.parametrize(
    "text",
    [
        "title = 'a\\u001b[2J'\nseats = ['\\u001b[31m']\n[[games]]\ngame = 'public_goods'",
        'title = "\\u001b[2J"\n[[games]]\ngame = "\\u001b[31m"',
        '"\\u001b[31m" = 1',
        'seats = ["random"]\n[[games]]\ngame = "public_goods"\nparams = {"\\u001b[2J" = 1}',
        'seats = ["random"]\n[[games]]\ngame = "public_goods"\nparams = {rounds = "\\u009b"}',
        "a = " + "[" * 3000,
        "a" * 3_000_000,
        "\x1b[2J = 1",
        "\udcff",
        "episodes = 1" + "0" * 5000,
    ],
)  # fmt: skip
def test_a_stranger_s_toml_ends_in_one_message(llm_games, tmp_path, text):
    (tmp_path / "file.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    check(llm_games, ("run", "file.toml", "--dry-run"))


def zipped(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


NO_FILES = {
    "empty": b"",
    "codes": b"\x1b[2J\x1b]0;owned\x07 = {",
    "deep": b"[" * 200_000,
    "a large number": b"9" * 6000,
    "a mapping": b'{"\\u001b[2J": {"format": 1e999}, "version": 3, "players": ["a"]}',
    "a deep zip": zipped({"player.json": "[" * 200_000, "about.npy": "", "\x1b[2J.npy": ""}),
    "a large zip": zipped({"player.json": "{}", "about.npy": bytes(120_000_000)}),
    "a database": None,
}


def no_file(path, name):
    if name != "a database":
        path.write_bytes(NO_FILES[name])
        return
    with closing(sqlite3.connect(path)) as other:
        other.execute('CREATE TABLE "\x1b[2J" (a)')
        other.execute("CREATE TABLE replies (key, text)")
        other.commit()


@pytest.mark.parametrize("content", NO_FILES)
def test_what_is_no_such_file_ends_in_one_message(llm_games, small, tmp_path, content):
    """Of all kinds of files that are handed on: players, caches, forms, rubrics, line-ups."""
    shutil.copy(small, tmp_path / "a.db")
    no_file(tmp_path / "x.file", content)
    (tmp_path / "forms").mkdir()
    no_file(tmp_path / "forms" / "form_ann.csv", content)
    play = ("run", "small.toml", "--quiet", "--db")
    (tmp_path / "small.toml").write_text(RUN.replace('"tiny", ', '"random", '))
    for number, player in enumerate(("ghost", "tabular", "torch", "sb3", "recorded")):
        said = check(llm_games, (*play, f"{number}.db", "--seat", f"{player}:x.file"))
        if content == "a large zip" and player in ("ghost", "tabular", "sb3"):
            assert "comes to 120,000,000 bytes" in said
    for arguments in (
        (*play, "c.db", "--seat", "tiny", "--cache", "x.file"),
        ("cache", "list", "x.file"),
        ("cache", "prune", "x.file", "--yes"),
        ("ghost", "show", "x.file"),
        ("ghost", "refit", "x.file"),
        ("run", "x.file", "--dry-run"),
        ("report", "x.file", "-o", "page"),
        ("compare", "a.db", "x.file"),
        ("analyse", "judge", "a.db", "--rubric", "x.file", "--seat", "openai:m"),
        ("analyse", "rate", "a.db", "--judge", "ann", "-o", "forms"),
        ("view", "x.file", "--no-open"),
    ):
        check(llm_games, arguments)


def test_other_files_reach_no_terminal_raw(llm_games, small, tmp_path):
    """Names in caches, in ghosts, and those of files."""
    raw = tmp_path / "a\x1b[2J.db"
    shutil.copy(small, tmp_path / "a.db")
    (tmp_path / "small.toml").write_text(RUN)
    check(llm_games, ("run", "small.toml", "--quiet", "--db", "b.db", "--cache", "c.db"))
    for table, column in columns(tmp_path / "c.db"):
        change(tmp_path / "c.db", table, column, with_codes)
    check(llm_games, ("cache", "list", "c.db"))
    check(llm_games, ("run", "small.toml", "--quiet", "--db", "d.db", "--cache", "c.db"))
    check(llm_games, ("ghost", "fit", "a.db", "-o", "a.ghost"))
    change(tmp_path / "a.db", "games", "label", with_codes)
    for ghost in ("a.ghost", "a.db"):
        check(llm_games, ("ghost", "show", ghost))
    for arguments in (("report", raw), ("run", raw), ("compare", raw, raw), ("watch", raw)):
        check(llm_games, arguments)
    raw.write_bytes((tmp_path / "a.db").read_bytes())
    for arguments in (
        ("report", raw, "-o", tmp_path / "\x1b[2J", "--no-baselines"),
        ("compare", raw, raw),
        ("leaderboard", raw),
        ("resume", raw),
        ("watch", raw),
        ("export", raw, "-o", tmp_path / "x\x1b[2J"),
        ("run", "small.toml", "--db", tmp_path / "n\x1b[2J.db"),
        ("run", "small.toml", "--seat", "\x1b[2J"),
        ("show", "\x1b[2J"),
        ("play", "\x1b[2J"),
        ("play", "public_goods", "--param", "\x1b[2J=1"),
    ):
        check(llm_games, arguments)
