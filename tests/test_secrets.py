"""A server that repeats keys, in every place and in every way of writing: none shows anywhere."""

import base64
import html
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from llm_games.wrappers.clients.secrets import Secret

KEY, PASSWORD = 'sk-Ab3/d+"x9_Zz12&Q', "Hush-hush-4711"
BASIC = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
RUN = """
title = "Small"
episodes = 1
max_attempts = 2
seats = ["openai:m", "openai:m", "random"]
[models.m]
base_url = "{url}"
api_key_env = "TEAM_KEY"
headers = {{ x-team = "Basic env:TEAM_BASIC" }}
max_wait = 0.1
stream = {stream}
[[games]]
game = "public_goods"
params = {{ players = 3, rounds = 2 }}
talk = {{ turns = 1 }}
"""
RUBRIC = """
shows = "talk"
question = "Did they agree?"
[labels]
yes = "They did."
no = "They did not."
"""


def ways(secret):
    escaped = "".join(f"\\u{ord(c):04x}" for c in secret)
    address = quote(secret, safe="")
    in_base64 = [base64.b64encode(f"{u}{secret}".encode()).decode() for u in ("", "a:", "me:")]
    return [
        *(secret, secret.upper(), secret.lower(), json.dumps(secret), json.dumps(f"{secret!r}")),
        *(escaped, address, address.lower(), quote(address, safe=""), html.escape(secret)),
        *("".join(f"&#{ord(c)};" for c in secret), f"Basic {in_base64[2]}", *in_base64),
    ]


def traces(secret):
    """Return what must be nowhere: each way, but for the ends that hang on what stands beside."""
    return [way.strip('"').removeprefix("Basic ").rstrip("=")[4:-4] for way in ways(secret)]


SAID = " ".join([*ways(KEY), *ways(PASSWORD), BASIC])


@pytest.fixture
def server():
    """A server on a real socket; `mode` says in what it repeats the keys from the third on."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            asked = self.rfile.read(int(self.headers["content-length"])).decode()
            sent = self.headers["authorization"] + self.headers["x-team"]
            assert KEY in sent
            assert BASIC in sent
            self.server.asked += 1
            now = self.server.mode if self.server.asked > 2 else "reply"
            status, headers, body = answer(now, asked)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.mode, server.asked = "reply", 0
    server.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def answer(mode, asked):
    kind = {"content-type": "application/json", "x-key": KEY, "x-request-id": KEY}
    if mode.isdigit():
        fault = {"message": SAID, "type": SAID, "code": SAID, "param": SAID, KEY: KEY}
        return int(mode), kind | {"retry-after": KEY}, json.dumps({"error": fault}).encode()
    if mode == "redirect":
        return 307, kind | {"location": f"http://{quote(KEY, safe='')}.invalid/{KEY}"}, b""
    if mode == "page":
        return 200, kind | {"content-type": "text/html"}, f"<html>{SAID}</html>".encode()
    move = {"label": "yes"} if "agree?" in asked else {"tokens_contributed": 5, "message": SAID}
    text = json.dumps(move) + SAID
    called = {"name": f"add_{KEY}", "arguments": json.dumps({KEY: SAID, "b": [KEY]})}
    message = {
        "role": "assistant", "content": text, "reasoning_content": SAID, "reasoning": SAID,
        "tool_calls": [{"id": KEY, "type": "function", "function": called}] * (mode == "tools"),
    }  # fmt: skip
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, KEY: KEY, "x": KEY}
    whole = {"id": KEY, "model": f"m-{KEY}", "system_fingerprint": KEY, "usage": usage, KEY: KEY}
    choice = {"index": 0, "finish_reason": "stop", "logprobs": KEY}
    if mode != "stream":
        return 200, kind, json.dumps(whole | {"choices": [choice | {"message": message}]}).encode()
    parts = [{k: message[k][i : i + 7] for k in ("content", "reasoning_content")}
             for i in range(0, len(text), 7)]  # fmt: skip
    lines = [
        whole | {"choices": [choice | {"delta": part, "finish_reason": None}]} for part in parts
    ]
    lines.append(whole | {"choices": [choice | {"delta": {}}]})
    stream = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
    return 200, kind | {"content-type": "text/event-stream"}, stream.encode()


def held(seen):
    lost = {t.encode() for secret in (KEY, PASSWORD) for t in traces(secret)}
    return [(name, trace) for name, data in seen for trace in lost if trace in data]


@pytest.mark.parametrize("mode", ["reply", "tools", "stream", "page", "redirect",
                                  "400", "401", "429", "503"])  # fmt: skip
def test_a_key_that_is_repeated_reaches_no_file_and_no_terminal(
    llm_games, server, tmp_path, monkeypatch, caplog, mode
):
    """All bytes of all that a run, its cache, a judge, exports and reports write and print."""
    monkeypatch.setenv("TEAM_KEY", KEY)
    monkeypatch.setenv("TEAM_BASIC", BASIC)
    caplog.set_level(0)
    server.mode = mode
    (tmp_path / "small.toml").write_text(RUN)
    (tmp_path / "rubric.toml").write_text(RUBRIC)
    (tmp_path / "a.toml").write_text(
        RUN.format(url=server.url, stream=str(mode == "stream").lower())
    )
    shown, at = [], ("--seat", "openai:m", "--base-url", server.url)
    client = (
        "client={api_key_env='TEAM_KEY', headers={x-team='Basic env:TEAM_BASIC'}, max_wait=0.1}"
    )
    for arguments in (
        ("run", "a.toml", "--db", "a.db", "--cache", "c.db"),
        ("resume", "a.db"),
        ("analyse", "judge", "a.db", "--rubric", "rubric.toml", *at, "--set", client),
        ("export", "a.db", "-o", "out"),
        ("export", "a.db", "--sft", "sft.jsonl"),
        ("report", "a.db", "-o", "page", "--no-baselines", "--conversations", "9"),
        ("analyse", "talk", "a.db"),
        ("watch", "a.db"),
    ):
        code, out, err = llm_games(*arguments)
        assert code in (0, 1) or "does not answer" in err, (arguments, err)
        assert "Traceback" not in err, (arguments, err)
        shown += [(arguments, out.encode()), (arguments, err.encode())]
    shown.append(("logs", caplog.text.encode()))
    shown += [(path, path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()]
    assert held(shown) == []
    if mode in ("reply", "stream", "401"):
        assert any(b"[key]" in data for _, data in shown)


def test_a_secret_is_masked_however_it_is_written():
    for secret in (KEY, PASSWORD, "abcdefgh12345678"):
        for way in ways(secret):
            masked = Secret(secret).redact(f"x {way} y")
            assert "[key]" in masked, way
            assert not held([("", masked.encode())]), way
    assert Secret(BASIC).redact(f"{PASSWORD} of ann:{PASSWORD}") == "[key] of ann:[key]"
    assert Secret(KEY).redact(f"cut off: {KEY[:12]}") == "cut off: [key]"
    assert Secret("token").redact("a token%20of") == "a [key]%20of"
    text = "what%20is no key: \\u0041 &amp; c2stQWI="
    assert Secret(KEY).redact(text) == text
