"""What a program reads to play by JSON over HTTP: an OpenAPI document, and the same by curl."""

from __future__ import annotations

from typing import Any

from llm_games.version import __version__

CURL = """\
SEAT=http://127.0.0.1:8640/seat/TOKEN
curl -X POST -H 'content-type: application/json' -d '{}' $SEAT/join
curl "$SEAT/sees?wait=30"
curl -X POST -H 'content-type: application/json' \\
  -d '{"turn": "1.0.0", "reply": {"tokens_contributed": 7}}' $SEAT/act
"""
"""Join, look until it is your turn, answer; the last two again until all is over."""


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split()}


def _text(about: str) -> dict[str, Any]:
    return {"type": "string", "description": about}


SEES = _object(
    "state seat number",
    state={"enum": ["lobby", "waiting", "asked", "over"]},
    seat=_text("the name of the seat"),
    kind={"enum": ["human", "program"]},
    consent=_text("what a person is to agree to"),
    left={"type": "boolean", "description": "join again to come back"},
    pseudonyms={"type": "boolean", "description": "a person is to give one"},
    pseudonym=_text("the person's"),
    number={"type": "integer", "description": "of changes: give it as after to wait for the next"},
    turn=_text("the name of the question, EPISODE.STEP.CALL: hand it back with the answer"),
    seconds_left={"type": ["number", "null"], "description": "null: no limit"},
    messages={
        "type": "array",
        "description": "what a language model in this seat would read",
        "items": _object(
            "role content", role=_text("system, user or assistant"), content=_text("")
        ),
    },
    key=_text("the answer's key"),
    wanted=_text("the legal answers in words"),
    form=_text("the same as JSON with placeholders"),
    schema={"type": "object", "description": "the JSON schema of a legal answer"},
    sum={"type": "number", "description": "what shares must add up to, which no schema can say"},
    longest={"type": "integer", "description": "characters of a speech"},
    most_words={"type": ["integer", "null"], "description": "words of a speech"},
    news=_text("what has happened since"),
    late={"type": "boolean", "description": "the last answer did not come in time"},
    you=_text("the seat's name in the game"),
    waits_for={"type": "array", "items": _text("the name in the game of whose turn it is")},
    missing={"type": "integer", "description": "how many have not joined"},
    results={
        "type": "object",
        "description": "once all is over: payoffs, and moves beside those of theory",
    },
)
TAKEN = _object(
    "turn taken again",
    turn=_text("the question's name"),
    taken=_text("the answer as it is recorded"),
    again={"type": "boolean", "description": "it was the answer already"},
)
ERROR = _object("error", error=_text("what is wrong, and the way out"))


def _answers(schema: str, **refusals: str) -> dict[str, Any]:
    def content(name: str, about: str) -> dict[str, Any]:
        reference = {"$ref": f"#/components/schemas/{name}"}
        return {"description": about, "content": {"application/json": {"schema": reference}}}

    usual = {"404": "no such link", "421": "another host", "403": "another origin"}
    wrong = usual | {code.removeprefix("e"): about for code, about in refusals.items()}
    return {"200": content(schema, "done")} | {
        code: content("Error", about) for code, about in sorted(wrong.items())
    }


def _post(
    name: str, summary: str, body: dict[str, Any], answer: str = "Sees", **refusals: str
) -> dict[str, Any]:
    content = {"application/json": {"schema": body}}
    usual = {"e413": "too large a body", "e415": "no JSON"}
    post = {
        "operationId": name,
        "summary": summary,
        "requestBody": {"required": True, "content": content},
        "responses": _answers(answer, **usual, **refusals),
    }
    return {"parameters": [TOKEN], "post": post}


TOKEN = {"name": "token", "in": "path", "required": True, "schema": {"type": "string"}}


def openapi() -> dict[str, Any]:
    """Return the document, OpenAPI 3.1."""
    wait = {"name": "wait", "in": "query", "schema": {"type": "number", "maximum": 30}}
    after = {"name": "after", "in": "query", "schema": {"type": "integer"}}
    pseudonym, consent = _text("if the lobby asks for one"), {"type": "boolean"}
    reply = {"description": "an object of the schema, a text as a model writes it, or the value"}
    look = {
        "operationId": "sees",
        "summary": "What the seat sees; with wait, once it is asked or that long later",
        "parameters": [wait, after],
        "responses": _answers("Sees", e422="wait or after is no number"),
    }
    join = _post(
        "join",
        "Take the seat; again is fine",
        _object(pseudonym=pseudonym, consent=consent),
        e422="a name or consent is missing",
    )
    act = _post(
        "act",
        "Answer a turn; the same answer again is fine",
        _object("turn reply", turn=_text("as sees has it"), reply=reply),
        "Taken",
        e409="not this turn: another, answered otherwise, or too late",
        e422="no legal answer; the next try is free",
    )
    summary = "Get up: the game's own moves are played until one joins again"
    return {
        "openapi": "3.1.0",
        "info": {"title": "A seat of llm-games", "version": __version__},
        "paths": {
            "/seat/{token}/sees": {"parameters": [TOKEN], "get": look},
            "/seat/{token}/join": join,
            "/seat/{token}/act": act,
            "/seat/{token}/leave": _post("leave", summary, _object()),
        },
        "components": {"schemas": {"Sees": SEES, "Taken": TAKEN, "Error": ERROR}},
    }
