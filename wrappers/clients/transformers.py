"""A client for a local model through ``transformers``: calls that wait together are one batch."""

from __future__ import annotations

import asyncio
import itertools
import queue
import re
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from llm_games.errors import install
from llm_games.facts import check_integer
from llm_games.replies import Finish
from llm_games.wrappers.clients.base import (
    ClientError,
    Completion,
    ContextOverflow,
    Message,
    Request,
)

GATHER = 0.005  # seconds that a batch waits for company
_NEEDED = {
    "config.json": ("config.json",),
    "weights (*.safetensors)": ("*.safetensors", "pytorch_model*.bin"),
    "tokenizer": ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json"),
}
_Job = tuple[Request, "Future[Completion]"]
_Row = tuple[Request, list[int], int]  # what is asked, the prompt's tokens, the most that may come


class TransformersClient:
    """Completes chats with a model on this machine.

    Sampling is by temperature and top-p alone, with noise from each request's own seed:
    a reply does not depend on what else is in its batch. JSON schemas are not enforced.

    Args:
        path: a folder with a model in Hugging Face layout, or the name of one in its local cache.
        device: where it runs, such as ``"cpu"`` or ``"cuda"``.
        dtype: its numbers, such as ``"float32"``; ``"auto"`` as they are stored.
        max_batch: most replies that are sampled together.
        max_tokens: limit of a reply where the request has none.
        download: a model that is not in the cache is fetched from the Hugging Face hub; else the
            network is never used.

    Raises:
        ClientError: a package is missing, or the folder does not hold a model.
    """

    def __init__(
        self,
        path: str | Path,
        device: str = "cpu",
        *,
        dtype: str = "auto",
        max_batch: int = 16,
        max_tokens: int = 512,
        download: bool = False,
    ) -> None:
        if find_spec("torch") is None or find_spec("transformers") is None:
            raise ClientError(f"TransformersClient needs packages: {install('transformers')}")
        check_integer("max_batch", max_batch, 1)
        check_integer("max_tokens", max_tokens, 1)
        self.path = model_path(path)
        self.name = Path(path).name
        self.device, self.dtype, self.download = device, dtype, download
        self.max_batch, self.max_tokens = max_batch, max_tokens
        self.__setstate__({})

    @classmethod
    def of(cls, model: Any, tokenizer: Any, *, max_batch: int, max_tokens: int) -> Self:
        """Return a client of a model that is in memory, as it is whenever it is asked."""
        client = cls.__new__(cls)
        client.path = client.name = str(getattr(model, "name_or_path", "")) or "model"
        client.device, client.dtype, client.download = str(model.device), "auto", False
        client.max_batch, client.max_tokens = max_batch, max_tokens
        client.__setstate__({})
        client._loaded = model, tokenizer
        return client

    def __getstate__(self) -> dict[str, Any]:  # a model is loaded again where it is needed
        return {name: value for name, value in vars(self).items() if name[0] != "_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loaded: tuple[Any, Any] | None = None

    async def complete(self, request: Request) -> Completion:
        """Return one completion; a ClientError: the model cannot be loaded, or not take this."""
        future: Future[Completion] = Future()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._thread.start()
            self._jobs.put((request, future))
        return await asyncio.wrap_future(future)

    async def close(self) -> None:
        """Let go of the model when the waiting calls are done. It is loaded again if needed."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._jobs.put(None)
        if thread is not None:
            await asyncio.to_thread(thread.join)
        self._loaded = None

    def _work(self) -> None:
        waiting: list[_Job | None] = []
        while None not in waiting:  # which ends the work
            waiting = [self._jobs.get()]
            with suppress(queue.Empty):
                while len(waiting) < self.max_batch and waiting[-1] is not None:
                    waiting.append(self._jobs.get(timeout=GATHER))
            jobs = [job for job in waiting if job and job[1].set_running_or_notify_cancel()]
            try:
                self._answer(jobs)
            except Exception as error:  # handed to those who asked
                for _, future in jobs:
                    if not future.done():
                        future.set_exception(self._failure(error))

    def _failure(self, error: Exception) -> ClientError:
        if isinstance(error, ClientError):
            return error
        fault = f"sampling failed: {type(error).__name__}: {_brief(error)}"
        failure = ClientError(f"{self.name}: {fault}")
        failure.__cause__ = error
        return failure

    def _answer(self, jobs: list[_Job]) -> None:
        """Sample all replies of a batch; a chat that cannot be taken fails alone."""
        if not jobs:
            return
        began = time.perf_counter()
        if self._loaded is None:
            self._loaded = load(self.path, self.device, self.dtype, self.download)
        model, tokenizer = self._loaded
        rows: list[_Row] = []
        futures: list[Future[Completion]] = []
        window = getattr(model.config, "max_position_embeddings", None) or 2**31
        for request, future in jobs:
            try:
                ids = encode(tokenizer, request.messages)
                if len(ids) >= window:
                    fault = f"{len(ids)} tokens and the model reads at most {window}"
                    raise ContextOverflow(f"{self.name}: the chat has {fault}")
            except ClientError as error:
                future.set_exception(error)
            else:
                limit = min(request.sampling.max_tokens or self.max_tokens, window - len(ids))
                rows.append((request, ids, limit))
                futures.append(future)
        replies = _sample(model, rows) if rows else []
        latency = time.perf_counter() - began
        ends = model.generation_config.eos_token_id
        ends = {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id}
        for (_, ids, limit), future, tokens in zip(rows, futures, replies, strict=True):
            reply = list(itertools.takewhile(lambda token: token not in ends, tokens[:limit]))
            whole = len(reply) < len(tokens[:limit])  # it did not run into its limit
            text, count = tokenizer.decode(reply, skip_special_tokens=True), len(reply) + whole
            finish: Finish = "stop" if whole else "length"
            future.set_result(Completion(text, finish, len(ids), count, latency, self.name))


def model_path(path: str | Path) -> str:
    """Return a folder that holds a model, or a name for the cache; the network is not touched."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        name = isinstance(path, str) and re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", path)
        if not name or folder.exists():
            raise ClientError(f"there is no folder {folder} with a model in it")
        return str(path)
    for what, patterns in _NEEDED.items():
        if not any(any(folder.glob(pattern)) for pattern in patterns):
            raise ClientError(f"the folder {folder} has no {what}: it must hold a whole model")
    return str(folder)


def load(path: str, device: str, dtype: str, download: bool = False) -> tuple[Any, Any]:
    """Load model and tokenizer; ClientError: that is no model for chats, or not for the device."""
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"local_files_only": not download}
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, **options)
        model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, **options)
    except (OSError, ValueError, SafetensorError) as error:
        hint = ""
        if not Path(path).is_dir():
            fetch = "fetch it: hf download, or download=True"
            fetch = "check the name and the network" if download else fetch
            hint = f"it is no folder here and not in the Hugging Face cache; {fetch}. "
        raise ClientError(f"cannot load the model {path}: {hint}{_brief(error)}") from error
    if tokenizer.chat_template is None:
        raise ClientError(
            f"the model {path} has no chat template: take one tuned for chats (its name often "
            "ends in -Instruct), or put a chat_template.jinja into its folder"
        )
    try:
        return model.to(device).eval(), tokenizer
    except (RuntimeError, AssertionError) as error:
        raise ClientError(f"the model cannot go to device {device!r}: {_brief(error)}") from error


def encode(tokenizer: Any, messages: Iterable[Message], **template_settings: Any) -> list[int]:
    """Return the tokens of a chat and of the cue to reply; ClientError if the template takes none.

    Models that know no system text hear it from the user.
    """
    from jinja2 import TemplateError

    rest = [m for m in messages if m["role"] != "system"]
    texts = [m["content"] for m in messages if m["role"] == "system"]
    texts += [m["content"] for m in rest[:1]]
    for chat in (list(messages), [{"role": "user", "content": "\n\n".join(texts)}, *rest[1:]]):
        try:
            text = tokenizer.apply_chat_template(
                chat, tokenize=False, add_generation_prompt=True, **template_settings
            )
        except TemplateError as error:
            fault = str(error)
        else:
            return list(tokenizer(text, add_special_tokens=False)["input_ids"])
    raise ClientError(f"the model's chat template does not take this chat: {fault}")


def _sample(model: Any, rows: list[_Row]) -> list[list[int]]:
    """Return the new tokens of each row, padding included."""
    import torch
    from transformers import GenerationConfig, LogitsProcessorList

    width = max(len(prompt) for _, prompt, _ in rows)
    ids = [[0] * (width - len(prompt)) + prompt for _, prompt, _ in rows]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for _, prompt, _ in rows]
    config = GenerationConfig(
        max_new_tokens=max(limit for *_, limit in rows),
        do_sample=False,
        pad_token_id=0,
        eos_token_id=model.generation_config.eos_token_id,
    )
    with torch.inference_mode():
        out = model.generate(
            torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            generation_config=config,
            logits_processor=LogitsProcessorList([_noise([request for request, *_ in rows])]),
        )
    return [row[width:] for row in out.tolist()]


def _noise(requests: list[Request]) -> Any:
    """Return a processor whose largest score is a sample: scores / T plus Gumbel noise by row."""
    import torch
    from transformers import LogitsProcessor

    draws = [(torch.Generator().manual_seed(r.seed), r.sampling) for r in requests]

    class RowNoise(LogitsProcessor):
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            noisy = scores.float().clone()
            for row, (source, how) in enumerate(draws):
                warm = 1.0 if how.temperature is None else float(how.temperature)
                if warm > 0:
                    waits = torch.empty(noisy.shape[1]).exponential_(generator=source)
                    cool = _nucleus(noisy[row] / warm, how.top_p)
                    noisy[row] = cool - waits.log().to(noisy.device)
            return noisy

    return RowNoise()


def _nucleus(scores: Any, top_p: float | None) -> Any:
    """Rule out all but the likeliest tokens that together have this probability."""
    import torch

    if top_p is None or top_p >= 1:
        return scores
    ordered, order = scores.sort(descending=True, stable=True)
    chances = ordered.double().softmax(dim=-1)
    allowed = scores.new_full(scores.shape, -torch.inf)
    inside = order[chances.cumsum(dim=-1) - chances < float(top_p)]
    allowed[inside] = scores[inside]
    return allowed


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}…"
