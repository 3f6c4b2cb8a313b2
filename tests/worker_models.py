"""A model for workers, which find it by its name: its answers hang on the request alone."""

import asyncio
import os
from dataclasses import replace

from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.wrappers.clients.mock import MockClient


class Counted:
    """Notes each call, as a line of the file that `CALLS_FILE` names, before it takes its time."""

    name = "counted"

    def __init__(self):
        self.inner = MockClient()

    async def complete(self, request):
        with open(os.environ["CALLS_FILE"], "a") as file:
            file.write(f"{request.kind}\n")
        await asyncio.sleep(float(os.environ["CALL_SECONDS"]))
        completion = await self.inner.complete(request)
        tokens = {"tokens_in": request.messages.size // 4, "tokens_out": len(completion.text)}
        return replace(completion, **tokens)

    async def close(self):
        pass


class Faulty(Counted):
    """Has a fault that only a game brings out."""

    name = "faulty"

    async def complete(self, request):
        return 1 / 0 if request.who.run else await super().complete(request)


class Keyed(Counted):
    """Has a key in the environment."""

    name = "keyed"

    def __init__(self):
        super().__init__()
        if "ONLY_HERE" not in os.environ:
            raise ConfigError("set ONLY_HERE")
