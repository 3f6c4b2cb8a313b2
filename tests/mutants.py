"""Seeded mutants of the source, and which tests kill them: shows that removed tests lose nothing.

    python tests/mutants.py pick TREE FOLDER          candidates, into FOLDER/candidates.jsonl
    python tests/mutants.py instrument TREE FOLDER    TREE, a copy, notes who reaches them
    PYTHONPATH=TREE:TREE/tests pytest -p mutants      in TREE, once
    python tests/mutants.py choose FOLDER             covered ones, into FOLDER/mutants.jsonl
    python tests/mutants.py judge TREE FOLDER NAME    a copy again; into FOLDER/NAME.jsonl; resumes

A mutant is named by file, function and code, so that it is found again in a later tree, where the
function may have moved or its variables been renamed. `judge` runs at most `TESTS` of the tests
that reach the line, cheapest functions first, as long as they take `SECONDS` together in
the whole run; a survivor may thus be killed by dearer tests.
"""

import ast
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

SIZES = {"games": 80, "wrappers": 40, "benchmarks": 40}
CANDIDATES = 2.5  # by mutant wanted
TESTS, SECONDS, TIMEOUT = 25, 40, 150
COMPARISONS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "&": "|", "|": "&"}
SEEN = """import os
pairs = set()
def at(mutant):
    pair = mutant, os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" (", 1)[0]
    if pair not in pairs:
        pairs.add(pair)
        with open(f"{FOLDER}/{os.getpid()}.seen", "a", encoding="utf-8") as file:
            file.write(f"{mutant}\\t{pair[1]}\\n")
"""


def group_of(path):
    """The group of a source file, "" for none."""
    room = re.match(r"(llm_games|baselines)/games/\w+/(rules|theory|players|metrics)\.py$", path)
    studies = ("benchmarks/studies", "benchmarks/learning", "benchmarks/speed")
    top = path.split("/")[0]
    if room or path.startswith(studies):
        return "games" if room else ""
    return top if top in ("wrappers", "benchmarks") else ""


def sources(tree):
    """Paths and texts of source files."""
    for top in ("llm_games", "baselines", "wrappers", "benchmarks"):
        for path in sorted((Path(tree) / top).rglob("*.py")):
            name = path.relative_to(tree).as_posix()
            if not re.match(r"llm_games/(baselines|wrappers|benchmarks)/", name):
                yield name, path.read_text(encoding="utf-8")


def statements(text):
    """Qualified name of the function and the node of each statement in one: (name, node)."""

    def walk(node, name, is_function):
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            if named:
                yield from walk(child, [*name, child.name], not isinstance(child, ast.ClassDef))
            else:
                if is_function and isinstance(child, ast.stmt):
                    yield ".".join(name), child
                yield from walk(child, name, is_function)

    yield from walk(ast.parse(text), [], False)


def head(statement):
    """The nodes of a statement itself, without the statements inside it, in order."""
    pending = [statement]
    while pending:
        node = pending.pop(0)
        yield node
        inside = (ast.stmt, ast.excepthandler, ast.match_case, ast.JoinedStr)
        pending += [n for n in ast.iter_child_nodes(node) if not isinstance(n, inside)]


def changes(statement, lines):
    """The changes of a statement: (line, from, to, new text, kind), columns in characters."""

    def between(left, right, table, kind):
        if left.end_lineno != right.lineno:
            return
        line = lines[left.end_lineno - 1]
        start = len(line.encode()[: left.end_col_offset].decode())
        end = len(line.encode()[: right.col_offset].decode())
        sign = re.fullmatch(r"([\s)]*)(.*?)([\s(]*)", line[start:end])
        if sign and sign[2] in table:
            first = start + len(sign[1])
            yield left.end_lineno, first, first + len(sign[2]), table[sign[2]], kind

    for node in head(statement):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from between(node.left, node.comparators[0], COMPARISONS, "comparison")
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, ARITHMETIC, "arithmetic")
        elif isinstance(node, ast.BoolOp):
            table = {"and": "or", "or": "and"}
            yield from between(node.values[0], node.values[1], table, "boolean")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            text = str(not node.value if type(node.value) is bool else node.value + 1)
            line = lines[node.lineno - 1].encode()
            start = len(line[: node.col_offset].decode())
            end = len(line[: node.end_col_offset].decode())
            yield node.lineno, start, end, text, "constant"
        elif isinstance(node, ast.Return) and node.value and node.lineno == node.end_lineno:
            line = lines[node.lineno - 1]
            start = len(line) - len(line.lstrip())
            if line.lstrip().startswith("return ") and "return None" not in line:
                yield node.lineno, start, len(line), "return None", "return"


def code_of(statement, *, anonymous=False):
    """The text of a statement's head; anonymous: without the names of its variables."""
    if getattr(statement, "body", None):
        heads = [
            n for n in ast.iter_child_nodes(statement) if isinstance(n, (ast.expr, ast.withitem))
        ]
        text = type(statement).__name__ + " " + "; ".join(map(ast.unparse, heads))
    else:
        text = ast.unparse(statement)
    return re.sub(r"(?<![\w.'\"])[a-z_]\w*", "_", text) if anonymous else text


def pick(tree, folder):
    """Write the candidates: one change of each chosen statement."""
    by_group = defaultdict(list)
    for path, text in sources(tree):
        lines = text.splitlines()
        for function, statement in statements(text) if group_of(path) else ():
            line = lines[statement.lineno - 1]
            indented = len(line) - len(line.lstrip()) == statement.col_offset
            options = list(changes(statement, lines))
            if indented and not line.lstrip().startswith("elif") and options:
                by_group[group_of(path)].append((path, function, statement, lines, options))
    generator, rows = random.Random(24), []
    for group, size in SIZES.items():
        for path, function, statement, lines, options in generator.sample(
            by_group[group], int(CANDIDATES * size)
        ):
            index = generator.randrange(len(options))
            number, start, end, new, kind = options[index]
            line = lines[number - 1]
            rows.append(
                {
                    "mutant": len(rows),
                    "group": group,
                    "kind": kind,
                    "file": path,
                    "function": function,
                    "code": code_of(statement),
                    "anonymous": code_of(statement, anonymous=True),
                    "index": index,
                    "line": statement.lineno,
                    "before": line.strip(),
                    "after": (line[:start] + new + line[end:]).strip(),
                }
            )
    write(folder, "candidates", rows)


def instrument(tree, folder):
    """Make each candidate's statement of a tree note the test that reaches it."""
    seen = f"FOLDER = {str(Path(folder).resolve())!r}\n{SEEN}"
    (Path(tree) / "llm_games" / "mutant_seen.py").write_text(seen, encoding="utf-8")
    by_file = defaultdict(list)
    for row in read(folder, "candidates"):
        by_file[row["file"]].append((row["line"], row["mutant"]))
    for file, places in by_file.items():
        path = Path(tree) / file
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, mutant in sorted(places, reverse=True):
            line = lines[number - 1]
            note = f"import llm_games.mutant_seen as _s; _s.at({mutant})"
            lines.insert(number - 1, line[: len(line) - len(line.lstrip())] + note)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def pytest_runtest_logreport(report):
    """As a plugin of pytest: write the seconds of each test beside what was seen."""
    folder = os.environ.get("MUTANTS_FOLDER")
    if folder and report.when == "call" and "PYTEST_XDIST_WORKER" not in os.environ:
        with (Path(folder) / "seconds.jsonl").open("a", encoding="utf-8") as file:
            row = {"test": report.nodeid, "seconds": report.duration, "passed": report.passed}
            file.write(json.dumps(row) + "\n")


def choose(folder):
    """Keep as many covered candidates of each group as wanted, with their tests, cheapest first."""
    seconds = {row["test"]: row["seconds"] for row in read(folder, "seconds") if row["passed"]}
    tests = defaultdict(set)
    for path in Path(folder).glob("*.seen"):
        for line in path.read_text(encoding="utf-8").splitlines():
            mutant, test = line.split("\t", 1)
            if test in seconds:
                tests[int(mutant)].add(test)
    count, rows = defaultdict(int), []
    for row in read(folder, "candidates"):
        covering = sorted(tests[row["mutant"]], key=lambda test: (seconds[test], test))
        ranks = defaultdict(int)  # an item of each function first, then the second of each

        def rank(test, ranks=ranks):
            ranks[test.split("[")[0]] += 1
            return ranks[test.split("[")[0]]

        covering.sort(key=rank)
        if covering and count[row["group"]] < SIZES[row["group"]]:
            count[row["group"]] += 1
            rows.append(row | {"tests": [[test, round(seconds[test], 3)] for test in covering]})
    write(folder, "mutants", rows)


def match(row, parsed):
    """The statement of a mutant in a tree: (file, statement, lines), None where it is gone.

    Same file, function and code first; then the same code elsewhere, renamed variables last.
    """
    parts = row["function"].rsplit(".", 1)
    for key in ("code", "anonymous"):
        options = [
            (file, name, statement, lines)
            for file, name, statement, lines, codes in parsed
            if codes[key] == row[key]
        ]
        for same in (
            lambda o: o[0] == row["file"] and o[1] == row["function"],
            lambda o: o[1] == row["function"],
            lambda o: o[1].endswith(parts[-1]),
            lambda o: o[0] == row["file"],
            lambda o: True,
        ):
            hits = [option for option in options if same(option)]
            if len(hits) == 1 or (hits and same(options[0]) and key == "code"):
                return hits[0][0], hits[0][2], hits[0][3]
    return None


def selected(row, collected):
    """The tests to run against a mutant: of those that covered it, those that are still there.

    A test whose parameters changed stands for its function.
    """
    functions = defaultdict(list)
    for test in collected:
        functions[test.split("[")[0]].append(test)
    tests, seconds = {}, 0.0
    for test, duration in row["tests"]:
        names = [test] if test in collected else functions[test.split("[")[0]][:3]
        for name in names:
            if name not in tests and len(tests) < TESTS and (not tests or seconds < SECONDS):
                tests[name] = None
                seconds += duration
    killer = row.get("killer")
    return [killer, *(t for t in tests if t != killer)] if killer in collected else list(tests)


def judge(tree, folder, name):
    """Run each mutant that FOLDER/NAME.jsonl lacks; the tests that killed it in `base` first."""
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    environment = os.environ | {"PYTHONPATH": str(Path(tree).resolve()), "COLUMNS": "400"}
    environment.pop("MUTANTS_FOLDER", None)
    settings = {"cwd": tree, "env": environment, "capture_output": True, "text": True}
    listing = subprocess.run([*pytest, "--collect-only", "-n", "0"], check=False, **settings).stdout
    collected = {line: None for line in listing.splitlines() if "::" in line}
    parsed = []
    for file, text in sources(tree):
        lines = text.splitlines()
        for function, statement in statements(text):
            codes = {
                key: code_of(statement, anonymous=key == "anonymous")
                for key in ("code", "anonymous")
            }
            parsed.append((file, function, statement, lines, codes))
    done = {row["mutant"] for row in read(folder, name)}
    base = {row["mutant"]: row.get("killer") for row in read(folder, "base") if name != "base"}
    for row in read(folder, "mutants"):
        if row["mutant"] in done:
            continue
        result = {"mutant": row["mutant"], "outcome": "gone", "killer": None, "tests": 0}
        hit = match(row, parsed)
        tests = selected(row | {"killer": base.get(row["mutant"])}, collected)
        options = list(changes(hit[1], hit[2])) if hit else []
        start = time.monotonic()
        if options and row["index"] < len(options) and tests:
            number, first, end, new, _ = options[row["index"]]
            path, lines = Path(tree) / hit[0], list(hit[2])
            text = path.read_text(encoding="utf-8")
            lines[number - 1] = lines[number - 1][:first] + new + lines[number - 1][end:]
            try:
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")
                run = subprocess.run(
                    [*pytest, "-x", "-n", "0", "-rfE", "--tb=no", *tests],
                    timeout=TIMEOUT,
                    check=False,
                    **settings,
                )
                killers = re.findall(
                    r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", run.stdout, re.MULTILINE
                )
                killed = run.returncode != 0
                result["killer"] = killers[0] if killers else None
                result["outcome"] = "killed" if killed else "survived"
                if killed and not killers:
                    result["note"] = (run.stdout + run.stderr)[-300:]
            except subprocess.TimeoutExpired:
                result["outcome"] = "timeout"
            finally:
                path.write_text(text, encoding="utf-8")
        elif hit:
            result["outcome"] = "untested"
        result |= {"tests": len(tests), "seconds": round(time.monotonic() - start, 1)}
        with (Path(folder) / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


def read(folder, name):
    """The rows of a file of the folder, none where it is not there yet."""
    path = Path(folder) / f"{name}.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def write(folder, name, rows):
    """Write a file of the folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (Path(folder) / f"{name}.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    {"pick": pick, "instrument": instrument, "choose": choose, "judge": judge}[sys.argv[1]](
        *sys.argv[2:]
    )
