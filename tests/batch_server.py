"""A server with the batch interfaces of OpenAI and Anthropic, whose answers hang on lines alone."""

import hashlib
import json
import random
import re
import threading
import time
from collections import Counter
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKENS_IN, TOKENS_OUT = 1000, 100  # of every answer


def luck(value):
    return int(hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest(), 16)


class BatchServer:
    """Batches take `seconds`; one line in `fails` fails the first time it comes.

    `refuses` has errors of the next batches, `expires` the numbers of batches that run out of time
    when half is done; `options` are refused by name, line by line.
    """

    def __init__(self, seconds=0.02, fails=50):
        self.seconds, self.fails = seconds, fails
        self.refuses, self.expires, self.options = [], set(), set()
        self.down = 0  # calls that get a 503
        self.slow = 0.0  # seconds between a batch is made and its maker is told
        self.has_batches = True
        self.keeps = True  # answers
        self.files, self.batches, self.seen = {}, [], Counter()
        self.singles = 0
        self.lock = threading.Lock()
        handler = type("BatchHandler", (_Handler,), {"of": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def lines(self):
        """All lines that were answered, by their decision and how often it had failed before."""
        return Counter(key for batch in self.batches for key in batch["keys"])

    def enter(self, kind, lines, metadata=None):
        """Make a batch of lines, each an id and a body."""
        with self.lock:
            number = len(self.batches)
            batch = {
                "id": f"{kind}_{number}", "made": time.time(), "metadata": metadata, "error": None,
                "keys": [], "expired": number in self.expires, "answers": [],
            }  # fmt: skip
            self.batches.append(batch)
            if self.refuses:
                batch["error"] = self.refuses.pop(0)
                return batch
            assert len({name for name, _ in lines}) == len(lines)
            order = list(enumerate(lines))
            random.Random(number).shuffle(order)
            for place, (name, body) in order:
                key = name.partition("-")[2]
                outcome = self._outcome(key, body)
                if batch["expired"] and place >= len(lines) / 2:
                    outcome = "expires"
                batch["answers"].append((name, body, outcome))
                if outcome in ("done", "fails"):
                    batch["keys"].append(f"{key} {self.seen[key]}")
                    self.seen[key] += outcome == "fails"
            return batch

    def _outcome(self, key, body):
        if odd := sorted(self.options & body.keys()):
            return odd[0]
        return "fails" if not self.seen[key] and luck(key) % self.fails == 0 else "done"

    def over(self, batch):
        return time.time() > batch["made"] + self.seconds


def text_for(body):
    number = luck([body["messages"], body.get("seed")])
    return json.dumps({"tokens_contributed": number % 21, "message": f"{number % 97}"})


def chat(body):
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": text_for(body)}}],
        "usage": {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT,
                  "total_tokens": TOKENS_IN + TOKENS_OUT},
    }  # fmt: skip


def message(body):
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
        "content": [{"type": "text", "text": text_for(body)}],
        "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT},
    }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, content, status=200):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, words):
        error = {"type": "not_found_error", "message": words}
        self.send({"type": "error", "error": error}, status)

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["content-length"])))

    def answer(self, content):
        here, path = self.of, self.path.partition("?")[0]
        if here.down:
            here.down -= 1
            return self.refuse(503, "down")
        for pattern, method in ROUTES:
            if match := re.fullmatch(pattern, f"{self.command} {path}"):
                if "batches" in path and not here.has_batches:
                    break
                return getattr(self, method)(content, *match.groups())
        return self.refuse(404, f"no {path} here")

    def models(self, _):
        self.send({"object": "list", "data": [{"id": "m", "object": "model", "created": 1}]})

    def model(self, _, name):
        if name != "m":
            return self.refuse(404, f"no model {name}")
        made = "2026-01-01T00:00:00Z"
        return self.send({"id": "m", "type": "model", "display_name": "M", "created_at": made})

    def single(self, _):
        self.of.singles += 1
        self.refuse(400, "call by call")

    # -- OpenAI
    def upload(self, content):
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        parts = BytesParser(policy=HTTP).parsebytes(head + content).iter_parts()
        named = {part.get_param("name", header="content-disposition"): part for part in parts}
        assert named["purpose"].get_content() == "batch"
        name = f"file_{len(self.of.files)}"
        self.of.files[name] = named["file"].get_payload(decode=True)
        self.send(self.file(name, len(self.of.files[name])))

    def file(self, name, size):
        return {
            "id": name, "object": "file", "bytes": size, "created_at": 1, "filename": name,
            "purpose": "batch", "status": "processed",
        }  # fmt: skip

    def make(self, content):
        asked = json.loads(content)
        assert asked["endpoint"] == "/v1/chat/completions"
        assert asked["completion_window"] == "24h"
        rows = [json.loads(line) for line in self.of.files[asked["input_file_id"]].splitlines()]
        lines = [(row["custom_id"], row["body"]) for row in rows]
        batch = self.of.enter("batch", lines, asked["metadata"])
        time.sleep(self.of.slow)
        self.send(self.shown(batch))

    def shown(self, batch):
        status = "in_progress"
        if self.of.over(batch):
            status = "expired" if batch["expired"] else "completed"
        errors = None
        if batch["error"]:
            status, errors = "failed", {"object": "list", "data": [batch["error"]]}
        over = status in ("completed", "expired")
        return {
            "id": batch["id"], "object": "batch", "endpoint": "/v1/chat/completions",
            "errors": errors, "input_file_id": "file", "completion_window": "24h",
            "status": status, "created_at": int(batch["made"]), "metadata": batch["metadata"],
            "output_file_id": f"out-{batch['id']}" if over else None,
            "error_file_id": f"err-{batch['id']}" if over else None,
        }  # fmt: skip

    def list(self, _):
        data = [self.shown(batch) for batch in reversed(self.of.batches)]
        self.send({"object": "list", "data": data, "has_more": False})

    def one(self, _, name):
        self.send(self.shown(self.batch(name)))

    def batch(self, name):
        return next(batch for batch in self.of.batches if batch["id"] == name)

    def output(self, _, kind, name):
        if not self.of.keeps:
            return self.refuse(404, "no such file")
        rows = []
        for line, body, outcome in self.batch(name)["answers"]:
            row = {"id": "r", "custom_id": line, "response": None, "error": None}
            if outcome == "done":
                row["response"] = {"status_code": 200, "request_id": "r", "body": chat(body)}
            elif outcome == "fails":
                error = {"error": {"message": "oops", "type": "server_error"}}
                row["response"] = {"status_code": 500, "request_id": "r", "body": error}
            elif outcome == "expires":
                row["error"] = {"code": "batch_expired", "message": "too late"}
            elif outcome == "cancelled":
                row["error"] = {"code": "batch_cancelled", "message": "no more"}
            else:
                error = {"error": {"message": f"{outcome} is not supported", "param": outcome}}
                row["response"] = {"status_code": 400, "request_id": "r", "body": error}
            if (kind == "out") == (outcome == "done"):
                rows.append(json.dumps(row).encode() + b"\n")
        return self.send(b"".join(rows))

    # -- Anthropic
    def make_messages(self, content):
        assert self.headers["anthropic-version"]
        rows = json.loads(content)["requests"]
        lines = [(row["custom_id"], row["params"]) for row in rows]
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name, _ in lines)
        batch = self.of.enter("msgbatch", lines)
        if batch["error"]:
            return self.refuse(400, batch["error"]["message"])
        time.sleep(self.of.slow)
        return self.send(self.told(batch))

    def told(self, batch):
        over = self.of.over(batch)
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        counts["succeeded" if over else "processing"] = len(batch["answers"])
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch["made"]))
        return {
            "id": batch["id"], "type": "message_batch", "created_at": made, "expires_at": made,
            "processing_status": "ended" if over else "in_progress", "request_counts": counts,
            "results_url": f"{self.of.url}/v1/messages/batches/{batch['id']}/results"
            if self.of.keeps else None,
        }  # fmt: skip

    def list_messages(self, _):
        data = [self.told(batch) for batch in reversed(self.of.batches)]
        self.send({"data": data, "has_more": False, "first_id": None, "last_id": None})

    def one_of_messages(self, _, name):
        self.send(self.told(self.batch(name)))

    def results(self, _, name):
        rows = []
        for line, body, outcome in self.batch(name)["answers"]:
            result = {"type": "succeeded", "message": message(body)}
            if outcome == "fails":
                error = {"type": "api_error", "message": "oops"}
                result = {"type": "errored", "error": {"type": "error", "error": error}}
            elif outcome == "expires":
                result = {"type": "expired"}
            elif outcome == "cancelled":
                result = {"type": "canceled"}
            elif outcome != "done":
                error = {"type": "invalid_request_error", "message": f"`{outcome}` is unsupported"}
                result = {"type": "errored", "error": {"type": "error", "error": error}}
            rows.append(json.dumps({"custom_id": line, "result": result}).encode() + b"\n")
        self.send(b"".join(rows))


ROUTES = (
    (r"GET /v1/models", "models"),
    (r"GET /v1/models/(.+)", "model"),
    (r"POST /v1/chat/completions|POST /v1/messages", "single"),
    (r"POST /v1/files", "upload"),
    (r"POST /v1/batches", "make"),
    (r"GET /v1/batches", "list"),
    (r"GET /v1/batches/(.+)", "one"),
    (r"GET /v1/files/(out|err)-(.+)/content", "output"),
    (r"POST /v1/messages/batches", "make_messages"),
    (r"GET /v1/messages/batches", "list_messages"),
    (r"GET /v1/messages/batches/([^/]+)", "one_of_messages"),
    (r"GET /v1/messages/batches/([^/]+)/results", "results"),
)
