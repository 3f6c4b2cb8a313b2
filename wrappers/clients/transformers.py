"""A client for a local model through ``transformers``: calls that wait together are one batch."""

from __future__ import annotations

import asyncio
import queue
import re
import threading
import time
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llm_games.facts import check_integer
from llm_games.wrappers.clients.base import ClientError, Completion, Message, Request, Sampling

GATHER = 0.005  # seconds that a batch waits for company
_NEEDED = {
    "config.json": ("config.json",),
    "weights (*.safetensors)": ("*.safetensors", "pytorch_model*.bin"),
    "tokenizer": ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json"),
}
_Job = tuple[Request, "Future[Completion]"]

Draw = tuple[int, Sampling]
"""A row's seed, and how else it is drawn."""


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
        download: fetch a model that is not in the cache from the Hugging Face hub. Without it
            the network is never used.

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
            raise ClientError(
                "TransformersClient needs packages: pip install 'llm-games[transformers]'"
            )
        check_integer("max_batch", max_batch, 1)
        check_integer("max_tokens", max_tokens, 1)
        self.path = _model_path(path)
        self.name = Path(path).name
        self.device, self.dtype, self.download = device, dtype, download
        self.max_batch, self.max_tokens = max_batch, max_tokens
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loaded: tuple[Any, Any] | None = None

    async def complete(self, request: Request) -> Completion:
        """Return one completion.

        Raises:
            ClientError: the model cannot be loaded, or not take this chat.
        """
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

    # -- in the worker thread --------------------------------------------------------------------

    def _work(self) -> None:
        going = True
        while going:
            jobs, going = self._gather()
            jobs = [job for job in jobs if job[1].set_running_or_notify_cancel()]
            try:
                self._answer(jobs)
            except Exception as error:  # handed to those who asked
                for _, future in jobs:
                    if not future.done():
                        future.set_exception(_as_client_error(self.name, error))

    def _gather(self) -> tuple[list[_Job], bool]:
        """Return the calls of the next batch, and whether to go on after it."""
        jobs: list[_Job] = []
        try:
            while len(jobs) < self.max_batch:
                job = self._jobs.get(timeout=GATHER if jobs else None)
                if job is None:
                    return jobs, False
                jobs.append(job)
        except queue.Empty:
            pass
        return jobs, True

    def _answer(self, jobs: list[_Job]) -> None:
        """Sample all replies of a batch; a chat that cannot be taken fails alone."""
        if not jobs:
            return
        began = time.perf_counter()
        if self._loaded is None:
            self._loaded = _load(self.path, self.device, self.dtype, self.download)
        model, tokenizer = self._loaded
        rows: list[tuple[_Job, list[int], int]] = []
        for request, future in jobs:
            try:
                ids = _encode(tokenizer, request.messages)
                rows.append(((request, future), ids, self._room(model, ids, request)))
            except ClientError as error:
                future.set_exception(error)
        if not rows:
            return
        replies = _sample(
            model,
            [ids for _, ids, _ in rows],
            [limit for *_, limit in rows],
            [(job[0].seed, job[0].sampling) for job, *_ in rows],
        )
        ends, latency = _end_tokens(model, tokenizer), time.perf_counter() - began
        for ((_, future), ids, limit), tokens in zip(rows, replies, strict=True):
            said, finish = _until_end(tokens[:limit], ends)
            text = tokenizer.decode(said, skip_special_tokens=True)
            made = min(len(said) + (finish == "stop"), limit)
            future.set_result(
                Completion(text, finish, len(ids), made, latency, self.name)  # type: ignore[arg-type]
            )

    def _room(self, model: Any, ids: list[int], request: Request) -> int:
        """Return how many tokens this reply may have."""
        most = getattr(model.config, "max_position_embeddings", None) or 2**31
        if len(ids) >= most:
            raise ClientError(
                f"{self.name}: the chat has {len(ids)} tokens and the model reads at most {most}: "
                "give the policy a smaller memory"
            )
        return min(request.sampling.max_tokens or self.max_tokens, most - len(ids))


def _model_path(path: str | Path) -> str:
    """Return a folder that holds a model, or a name for the cache, without touching the network."""
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


def _load(path: str, device: str, dtype: str, download: bool) -> tuple[Any, Any]:
    """Load model and tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"local_files_only": not download}
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, **options)
        model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, **options)
    except (OSError, ValueError) as error:
        hint = ""
        if not Path(path).is_dir():
            fetch = "check the name and the network" if download else "download=True fetches it"
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


def _encode(tokenizer: Any, messages: tuple[Message, ...]) -> list[int]:
    """Return a chat's tokens; models that know no system text hear it from the user."""
    from jinja2 import TemplateError

    for chat in (list(messages), _without_system(messages)):
        try:
            text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            fault = str(error)
        else:
            return list(tokenizer(text, add_special_tokens=False)["input_ids"])
    raise ClientError(f"the model's chat template does not take this chat: {fault}")


def _without_system(messages: tuple[Message, ...]) -> list[Message]:
    system = [m["content"] for m in messages if m["role"] == "system"]
    rest = [m for m in messages if m["role"] != "system"]
    if not rest:
        return [{"role": "user", "content": "\n\n".join(system)}]
    first = "\n\n".join([*system, rest[0]["content"]])
    return [{"role": "user", "content": first}, *rest[1:]]


def _sample(
    model: Any, prompts: list[list[int]], limits: list[int], draws: list[Draw]
) -> list[list[int]]:
    """Return the new tokens of each prompt, padding included."""
    import torch
    from transformers import GenerationConfig, LogitsProcessorList

    width = max(map(len, prompts))
    ids = [[0] * (width - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    config = GenerationConfig(
        max_new_tokens=max(limits),
        do_sample=False,
        pad_token_id=0,
        eos_token_id=model.generation_config.eos_token_id,
    )
    with torch.inference_mode():
        out = model.generate(
            torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            generation_config=config,
            logits_processor=LogitsProcessorList([_noise(draws)]),
        )
    return [row[width:] for row in out.tolist()]


def _noise(draws: list[Draw]) -> Any:
    """Return a processor whose largest score is a sample: scores / T plus Gumbel noise by row."""
    import torch
    from transformers import LogitsProcessor

    heat = [1.0 if how.temperature is None else float(how.temperature) for _, how in draws]
    sources = [torch.Generator().manual_seed(seed) for seed, _ in draws]
    nuclei = [1.0 if how.top_p is None else float(how.top_p) for _, how in draws]

    class RowNoise(LogitsProcessor):
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            noisy = scores.float().clone()
            for row, (warm, source, top_p) in enumerate(zip(heat, sources, nuclei, strict=True)):
                if warm > 0:
                    waits = torch.empty(noisy.shape[1]).exponential_(generator=source)
                    cool = _nucleus(noisy[row] / warm, top_p) if top_p < 1 else noisy[row] / warm
                    noisy[row] = cool - waits.log().to(noisy.device)
            return noisy

    return RowNoise()


def _nucleus(scores: Any, top_p: float) -> Any:
    """Rule out all but the likeliest tokens that together have this probability."""
    import torch

    ordered, order = scores.sort(descending=True, stable=True)
    chances = ordered.double().softmax(dim=-1)
    kept = scores.new_full(scores.shape, -torch.inf)
    inside = order[chances.cumsum(dim=-1) - chances < top_p]
    kept[inside] = scores[inside]
    return kept


def _end_tokens(model: Any, tokenizer: Any) -> set[int]:
    ends = model.generation_config.eos_token_id
    return {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id} - {None}


def _until_end(tokens: list[int], ends: set[int]) -> tuple[list[int], str]:
    """Cut a reply at its end token; without one it ran into its limit."""
    stop = next((i for i, token in enumerate(tokens) if token in ends), None)
    return (tokens, "length") if stop is None else (tokens[:stop], "stop")


def _as_client_error(name: str, error: Exception) -> ClientError:
    if isinstance(error, ClientError):
        return error
    failure = ClientError(f"{name}: sampling failed: {type(error).__name__}: {_brief(error)}")
    failure.__cause__ = error
    return failure


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}…"
