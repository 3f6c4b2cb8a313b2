"""Text of a chat as the tiny model reads it, equal to its Jinja chat template.

Trained on single turns, it reads only the system text and the last user message; earlier rounds are
dropped here. The template also writes a final reply, which training libraries need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SYSTEM, USER, ASSISTANT, END = "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"
SPECIAL = (END, SYSTEM, USER, ASSISTANT)  # in the order of their ids
TEMPLATE = (
    "{%- set system = messages | selectattr('role', 'equalto', 'system')"
    " | map(attribute='content') | join('\\n') -%}"
    "{%- set users = messages | selectattr('role', 'equalto', 'user')"
    " | map(attribute='content') | list -%}"
    "<|system|>{{ system | trim }}<|end|><|user|>{{ (users | last | default('')) | trim }}<|end|>"
    "{%- if messages and messages[-1]['role'] == 'assistant' -%}"  # what training is on
    "<|assistant|>{{ messages[-1]['content'] | trim }}<|end|>{%- endif -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)

GROWING = (
    "{%- for message in messages -%}<|{{ message.role }}|>{{ message.content | trim }}<|end|>"
    "{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)
"""Another template, which keeps all that was said: it has to be learned."""


def render(messages: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return the prompt in two: the system text, which seats may share, and the last message."""
    system = "\n".join(m["content"] for m in messages if m["role"] == "system")
    last = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
    return f"{SYSTEM}{system.strip()}{END}", f"{USER}{last.strip()}{END}{ASSISTANT}"
