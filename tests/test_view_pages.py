"""The pages of an episode and of a decision, without a browser."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from playing import each_row, every, legal_actions
from test_planning import legal

import llm_games as lg
from llm_games import game_rooms as rooms
from llm_games.baselines.hindsight import hindsight
from llm_games.baselines.players import PLAYERS, Kind, llm_player
from llm_games.baselines.regret import deviation, has_deviation
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.show.view import decision_page, episode_page, replayed
from llm_games.benchmarks.show.view.render import render
from llm_games.benchmarks.show.view.texts import SHOWN, piece, visible
from llm_games.charts import seat_chart
from llm_games.pictures import Drawing
from llm_games.registry import rulebook
from llm_games.wrappers.clients.base import Completion
from llm_games.wrappers.clients.scripted import ScriptedClient

OLD = Path(__file__).parent / "data" / "recorded_0_1_0" / "recorded_0_1_0.db"
HOSTILE = "<script>boom()</script><svg onload=boom()> \u202egnp.exe\u202c e" + "\u0301" * 50
LONG = "x" * 150_000


def goods(request):
    """Answer in three ways by round: a legal one with thoughts, a hostile one first, a long one."""
    if request.kind == "speech":
        return json.dumps({"speech": f"Let us all give {HOSTILE}" if request.who.seat else ""})
    asked = request.messages[-1]["content"]
    if "Round 1" in asked:
        return Completion('{"tokens_contributed": 3}', thoughts="Giving less is better.")
    if "Round 2" in asked and "again" not in asked and "not" not in asked[-300:]:
        return HOSTILE
    return f'{LONG} {{"tokens_contributed": 5}}'


def bidder(request):
    answer = legal(request)
    if request.kind == "belief" and request.seed % 2:
        said = json.loads(answer)
        answer = json.dumps(said | {"remaining_budget": said["remaining_budget"] - 1})
    return answer


def who(request):
    if request.messages[-1]["role"] == "tool":
        return '{"tokens_contributed": 2}'
    calls = [{"name": "calculator", "arguments": {"expression": "6 * 7"}},
             {"name": "oracle", "arguments": "</pre><script>boom()</script>"}]  # fmt: skip
    return Completion("Let me work it out.", tool_calls=calls, finish="tool_calls")


GAMES = [
    {"game": "public_goods", "params": {"players": 3, "rounds": 3},
     "seats": ["goods:m", "random", "random"]},
    {"game": "public_goods", "params": {"players": 3, "rounds": 1}, "label": "talking",
     "seats": ["goods:m"], "talk": {"turns": 1}},
    {"game": "english_auction", "params": {"players": 2, "items": "items_2"},
     "seats": [{"player": "bidder:m", "strategy": "adaptive", "correct_belief": False}]},
    {"game": "emergency_evacuation", "params": {"layout": "small", "players": 20, "max_rounds": 3},
     "seats": ["random"]},
    {"game": "public_goods", "params": {"players": 2, "rounds": 1}, "label": "calling",
     "seats": [{"player": "caller:m", "tools": ["calculator"]}, "random"]},
]  # fmt: skip


def play(path):
    for name, script in (("goods", goods), ("bidder", bidder), ("caller", who)):
        PLAYERS[name] = Kind(
            "for tests",
            value="<model>",
            model=lambda _, client, settings, s=script: llm_player(ScriptedClient(s), settings),
        )
    try:
        lg.run({"title": "Pages", "episodes": 1, "order": "fixed", "games": GAMES}, db=str(path))
    finally:
        del PLAYERS["goods"], PLAYERS["bidder"], PLAYERS["caller"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("view") / "run.db"
    play(path)
    return path


@pytest.fixture
def records(run):
    with Records.open_readonly(run) as found:
        yield found


def page(kind, shown):
    return render(kind, page=shown, title=shown.title, crumbs=shown.crumbs, live="")


def test_an_episode_has_its_rounds_moves_payoffs_and_regrets(records):
    shown = episode_page.page(replayed.read(records, 1), "/run/x")
    assert [r.number for r in shown.rounds] == [1, 2, 3]
    assert shown.across
    steps, [first] = records.steps(1), shown.rounds[0].rows
    moves = {d.seat: d.action for d in records.decisions(1) if d.step == 0}
    for seat, cell in first.cells.items():
        assert cell.move == str(moves[seat])
        assert cell.decision.reward == pytest.approx(steps[0].rewards[seat], rel=1e-5)
        assert cell.regret == pytest.approx(moves[seat] / 3, rel=1e-5)  # ratio 2, 3 seats
    paid = np.sum([step.rewards for step in steps], axis=0)
    assert [s.payoff for s in shown.seats] == pytest.approx(paid, rel=1e-5)
    second = shown.rounds[1].rows[0].cells[0]
    assert second.again == 1  # its first reply was none
    assert shown.rounds[0].rows[0].cells[0].thinking
    assert shown.rounds[0].picture == 1
    html = page("episode", shown)
    assert html.count('href="/run/x/decision/1/') == 9
    assert 'src="/run/x/episode/1/picture/0"' in html


def test_talk_is_a_conversation_before_the_moves(records):
    shown = episode_page.page(replayed.read(records, 2), "/run/x")
    said = shown.rounds[0].rows[0].talk
    spoken = {d.seat: visible(d.action) for d in records.decisions(2) if d.phase == "talk"}
    assert {m.message.seat: m.words for m in said} == spoken
    for m in said:
        assert (m.message.seat > 0, m.hearers) == ((True, "all") if m.words else (False, "nobody"))
    html = page("episode", shown)
    assert html.count("Talk before this move") == 1
    assert html.count("(silence)") == list(spoken.values()).count("")
    [spoke, *_] = [m for m in said if m.words]
    one = decision_page.page(records, 2, spoke.message.step, spoke.message.seat, "/run/x")
    assert one.phase == "talk"
    assert one.hearers == "all"
    assert one.better is None
    assert "What it said" in page("decision", one)


def test_a_decision_shows_what_was_sent_and_answered_and_how_it_was_read(records):
    shown = decision_page.page(records, 1, 1, 0, "/run/x")
    first, second = shown.calls
    sent = records.messages(records.attempts(1, 1)[0].prompt)
    assert [(p.role, p.piece.text) for p in first.sent] == [
        (m["role"], visible(m["content"])) for m in sent
    ]
    assert first.attempt.outcome == "unparsable"
    assert first.attempt.why
    assert second.repeated == len(sent) - 1  # these stand above
    assert first.attempt.why in second.sent[-1].piece.text  # it was asked again, and told why
    assert second.attempt.outcome == "valid"
    assert second.reply.piece.left > 100_000
    assert shown.move.piece.text == "5"
    html = page("decision", shown)
    assert "unparsable" in html
    assert first.attempt.why in html.replace("&#34;", '"').replace("&#39;", "'")
    assert f"/run/x/more/1/1/0/reply-1?from={SHOWN}" in html
    assert "/run/x/raw/1/1/0/reply-1" in html
    assert len(html) < 80_000
    before = decision_page.page(records, 1, 0, 0, "/run/x")
    assert before.calls[0].thoughts.piece.text == "Giving less is better."
    assert before.following == "/run/x/decision/1/1/0"
    assert before.previous is None


def test_native_calls_of_tools_stand_with_what_they_were_told(records):
    shown = decision_page.page(records, 5, 0, 0, "/run/x")
    first, second = shown.calls
    assert first.attempt.outcome == "tool"
    assert "there is no tool" in first.attempt.why
    assert first.reply.piece.text == "Let me work it out."
    given = [(name, part.piece.text) for name, part in first.tools]
    assert given == [
        ("calculator", '{\n "expression": "6 * 7"\n}'),
        ("oracle", "</pre><script>boom()</script>"),
    ]
    said = [(part.role, part.piece.text) for part in second.sent]
    assert [role for role, _ in said] == ["assistant", "tool", "assistant", "tool"]
    assert "42" in said[1][1]
    assert "there is no tool" in said[3][1]
    assert second.attempt.outcome == "valid"
    html = page("decision", shown)
    assert "calls calculator" in html
    assert "<script>boom" not in html
    for place, (_, text) in enumerate(given):
        assert decision_page.text(records, 5, 0, 0, f"tool-0-{place}") == text


def test_hostile_text_is_only_text(records):
    html = page("decision", decision_page.page(records, 1, 1, 0, "/run/x"))
    assert "<script>boom" not in html
    assert "<svg" not in html
    assert "&lt;script&gt;boom()&lt;/script&gt;" in html
    assert "\u202e" not in html
    assert "⟨U+202E⟩gnp.exe⟨U+202C⟩" in html
    assert html.count("\u0301") == 4 * html.count("gnp.exe")
    assert "style=" not in html
    assert not re.search(r"\son\w+=", html.partition("<main")[2].replace("onload=boom()&gt;", ""))


def test_the_best_reply_is_told_with_what_it_would_have_earned(records):
    shown = decision_page.page(records, 1, 1, 0)
    better = shown.better
    assert better.best == ["0"]
    assert better.hindsight.regret > 1e-9
    assert better.hindsight.whole
    earned = next(s.rewards[0] for s in records.steps(1) if s.step == 1)
    assert better.hindsight.earned == pytest.approx(earned, rel=1e-5)
    assert better.hindsight.possible == pytest.approx(earned + 5 / 3, rel=1e-5)
    assert better.rational == "0"
    assert "<strong>0</strong> would have" in page("decision", shown)


def test_beliefs_stand_against_facts_beside_plans(records):
    notes = {}
    for note in records.notes(3):
        notes.setdefault(note.kind, []).append(note)
    assert {"belief", "plan"} <= notes.keys()
    seen = []
    for note in notes["belief"]:
        shown = decision_page.page(records, 3, note.step, note.seat)
        [told] = [n for n in shown.notes if n.kind == "belief"][:1]
        facts = {fact.what: fact for fact in told.facts}
        budget = facts["remaining budget"]
        truth, said = note.content["truth"], note.content["belief"]
        assert (budget.fact, budget.belief) == (
            str(truth["remaining_budget"]),
            str(said["remaining_budget"]),
        )
        assert budget.right is (truth["remaining_budget"] == said["remaining_budget"])
        seen.append(budget.right)
        assert "Belief against facts" in page("decision", shown)
    assert seen
    plan = notes["plan"][0]
    shown = decision_page.page(records, 3, plan.step, plan.seat)
    assert any(n.kind == "plan" and "priorities" in n.part.piece.text for n in shown.notes)
    assert {call.attempt.kind for call in shown.calls} >= {"plan"}


def test_many_seats_are_listed_and_drawn(records):
    shown = first = episode_page.page(replayed.read(records, 4), "/run/x")
    assert not shown.across
    assert len(shown.pictures) == 4
    if shown.next_first:
        first = episode_page.page(replayed.read(records, 4), "/run/x", first=shown.next_first)
    assert first.rounds
    assert "<h3" in page("episode", shown)
    svg = ET.fromstring(episode_page.picture(records, 4, 1).svg())
    assert len(svg.findall("{*}circle")) >= 20
    with pytest.raises(replayed.NoSuchPage, match="4 pictures"):
        episode_page.picture(records, 4, 4)


def test_a_kept_episode_needs_no_file_any_more(run):
    with Records.open_readonly(run) as records:
        assert episode_page.page(replayed.read(records, 3)).replayed.why == ""
    with Records.open_readonly(run) as records:
        found = replayed.read(records, 3)
        assert found is replayed.read(records, 3)
    assert len(found.scenes) == len(episode_page.page(found).pictures) > 1
    assert found.picture(1).title == found.scenes[1][1]
    assert found.regret is not None


def places(shown):
    rows = [row for played_round in shown.rounds for row in played_round.rows]
    return [(cell.decision.step, cell.decision.seat) for row in rows for cell in row.cells.values()]


def test_those_who_are_asked_the_same_one_after_another_stand_in_one_row(records):
    shown = episode_page.page(replayed.read(records, 4))
    made = [(d.step, d.seat) for d in records.decisions(4)]
    assert sorted(places(shown)) == made
    for played_round in shown.rounds:
        assert len(played_round.rows) <= 2  # who chooses an exit anew, then a step of each
        moves = [*played_round.rows[-1].cells.values()]
        assert len({cell.decision.step for cell in moves}) == len(moves) > 10


def test_pages_of_rounds_join_without_a_gap(records, monkeypatch):
    whole = places(episode_page.page(replayed.read(records, 4)))
    monkeypatch.setattr(episode_page, "CELLS", 10)
    found, first = [], 1
    while first is not None:
        shown = episode_page.page(replayed.read(records, 4), first=first)
        assert shown.previous_first is None or shown.previous_first < first
        found += places(shown)
        first = shown.next_first
    assert found == whole


def test_whole_texts_are_kept_as_they_were(records):
    [first, second] = records.attempts(1, 1)[:2]
    assert decision_page.text(records, 1, 1, 0, "reply-0") == first.text == HOSTILE
    assert decision_page.text(records, 1, 1, 0, "reply-1") == second.text
    assert decision_page.text(records, 1, 0, 0, "thoughts-0") == "Giving less is better."
    sent = records.messages(first.prompt)
    assert decision_page.text(records, 1, 1, 0, "sent-0-0") == sent[0]["content"]
    everything = json.loads(decision_page.text(records, 1, 1, 0, "all"))
    assert everything["attempts"][0]["prompt"] == sent
    assert everything["decision"]["action"] == 5


@each_row(
    "place",
    [
        (99, 0, 0, "all"), (1, 99, 0, "all"), (1, 0, 9, "all"), (1, 0, 0, "reply-9"),
        (1, 0, 0, "reply--1"), (1, 0, 0, "reply"), (1, 0, 0, "sent-0"), (1, 0, 0, "../x"),
        (1, 0, 0, "tool-0-0"), (1, 0, 0, "note-0"),
    ],
)  # fmt: skip
def test_what_there_is_not_is_said(records, place):
    with pytest.raises(replayed.NoSuchPage, match=r"has no (episode|decision|text)"):
        decision_page.text(records, *place)


def test_a_file_of_an_older_edition_is_shown_as_it_was_recorded(tmp_path):
    path = Path(shutil.copy(OLD, tmp_path / "old.db"))
    with Records.open_readonly(path) as old:
        for row in old.episodes():
            shown = episode_page.page(replayed.read(old, row.id))
            assert "edition" in shown.replayed.why or not shown.replayed.why
            moves = {(d.step, d.seat) for d in old.decisions(row.id)}
            assert {(c.decision.step, c.decision.seat) for r in shown.rounds for s in r.rows
                    for c in s.cells.values()} == moves  # fmt: skip
            assert page("episode", shown)
            at = min(moves)
            assert page("decision", decision_page.page(old, row.id, *at))
        assert any(
            episode_page.page(replayed.read(old, row.id)).replayed.why for row in old.episodes()
        )


def test_pieces_of_a_text_join_to_the_whole():
    text = "a" * 99 + "e" + "\u0301" * 3 + "b" * 300
    parts, begin = [], 0
    while begin < len(text):
        found = piece(text, begin, 100)
        assert found.left == len(text) - found.end
        parts.append(found.text)
        begin = found.end
    assert "".join(parts) == visible(text) == text
    assert all(not part.startswith("\u0301") for part in parts)
    assert piece("", 5) == ("", 0, 0)


@each_row(
    ("text", "shown"),
    [
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\u2067b\u2069", "a⟨U+2067⟩b⟨U+2069⟩"),
        ("tab\tline\r\nend\x00\x1b[0m", "tab\tline\nend⟨U+0000⟩⟨U+001B⟩[0m"),
        ("\ud800", "⟨U+D800⟩"),
        ("e\u0301", "e\u0301"),
        ("e" + "\u0301" * 10, "e" + "\u0301" * 4 + "⟨U+0301 and 5 more marks⟩"),
        ("日本語 ünï", "日本語 ünï"),
        ("zero\u200bwidth\ufeff", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
    ],
)
def test_what_is_unseen_is_shown_as_a_code(text, shown):
    assert visible(text) == shown


@every
def test_a_best_reply_leaves_nothing_to_regret(name, more):
    """What is called best is judged best by theory, and is legal; the own regret is theory's."""
    game, rng = rulebook(name, **more), np.random.default_rng(3)
    state = game.reset(5)
    for _ in range(2):
        if state.over:
            break
        moves = legal_actions(game, state, rng)
        after, outcome = game.step(state, moves)
        seat = int(np.flatnonzero(game.asked(state))[-1])
        found = hindsight(game, state, moves, seat)
        if found is not None:
            own = deviation(game, outcome.record).regret[seat]
            assert found.regret == pytest.approx(own)
            assert found.earned == pytest.approx(outcome.rewards[seat])
            best, again = found.best[0], moves.copy()
            if isinstance(best, tuple):
                again = game.assemble(state, {seat: best})
            else:
                again[seat] = best
            assert not game.breaks(state, again)[seat]
            _, better = game.step(state, again)
            lost = deviation(game, better.record).regret[seat]
            assert lost <= own + 1e-9
            assert lost == pytest.approx(0, abs=1e-6) or not found.whole
            assert better.rewards[seat] == pytest.approx(found.possible)
        state = after
    assert has_deviation(name)


@every
def test_every_game_has_a_picture(name, more):
    """At the start, in play and at the end: sound SVG without style."""
    game, rng = rulebook(name, **more), np.random.default_rng(3)
    state, states = game.reset(5), []
    for _ in range(30):
        states.append(state)
        if state.over:
            break
        state, _ = game.step(state, legal_actions(game, state, rng))
    for state in {id(s): s for s in (states[0], states[len(states) // 2], states[-1])}.values():
        room, shown = rooms.drawing(name), game.picture(state)
        drawing = room.draw(game, state, shown[0]) if room else seat_chart(*shown)
        assert isinstance(drawing, Drawing)
        for dark in (False, True):
            svg = ET.fromstring(drawing.svg(dark))
            assert svg.find("{*}title").text == game.picture(state)[0]
            for part in svg.iter():
                assert part.tag.partition("}")[2] in {
                    "svg", "title", "rect", "circle", "line", "polygon", "text",
                }  # fmt: skip
                assert not {"style", "href"} & part.attrib.keys()
                for name_, value in part.attrib.items():
                    if name_ in ("x", "y", "cx", "cy", "r", "width", "height", "x1", "y2"):
                        assert np.isfinite(float(value))


def test_a_chart_has_bars_by_seat_with_a_legend():
    heads = ["seat", "bid", "money", "note"]
    rows = [["Ann", "3", "1,000", "won"], ["Bob", "-2", "–", ""]]
    svg = ET.fromstring(seat_chart("Bids, round 2", heads, rows).svg())
    texts = [text.text for text in svg.findall(".//{*}text")]
    assert {"Bids, round 2", "bid", "money", "Ann", "Bob", "won", "1000", "-2"} <= {*texts}
    assert len(svg.findall(".//{*}rect")) == 1 + 2 + 3  # ground, legend, three numbers
    assert "note" not in texts


def test_names_in_a_picture_are_only_text():
    drawing = Drawing(10, 10, "<b> & 100 %s")
    drawing.text(0, 0, "<script>%s</script> \u202e", side="middle")
    svg = drawing.svg()
    assert "<script" not in svg
    assert "\u202e" not in svg
    assert ET.fromstring(svg).find("{*}text").text.startswith("<script>%s</script>")


def test_an_auction_says_item_by_item_who_won_for_how_much_and_what_it_was_worth(records):
    shown = episode_page.page(replayed.read(records, 3), "/run/x")
    sold = [line for r in shown.rounds for row in r.rows for line in row.sold]
    assert len(sold) == 2
    rules, state = shown.replayed.episode.rules, [*shown.replayed.states.values()][-1][1]
    for index, line in enumerate(sold):
        buyer, name = int(state.sold_to[index]), rules.item_at(state, index).name
        if buyer < 0:
            assert line == f"{name} is not sold"
        else:
            price, worth = int(state.price[index]), int(state.values[buyer, index])
            sale = f"goes to {rules.names()[buyer]} for {price}, worth {worth} to it"
            assert line == f"{name} {sale}"
        assert line in page("episode", shown)


@pytest.mark.parametrize("game", ["sealed_bid_auction", "budget_auction"])
def test_a_round_of_an_auction_is_a_sale(game, tmp_path):
    config = {"game": game, "params": {"rounds": 2}, "seats": ["random"]}
    lg.run({"games": [config]}, tmp_path / "r.db")
    with Records.open_readonly(tmp_path / "r.db") as records:
        read = replayed.read(records, 1)
        for step, (previous_state, state) in read.states.items():
            [line] = read.sold(step)
            buyer = int(state.winner)
            if buyer < 0:
                assert line == "no sale"
                continue
            caption = read.episode.rules.picture(state)[0]
            assert f"{line.split(' wins for ')[0]} pays" in caption
            worth = float(line.split("worth ")[1].split()[0])
            rules = read.episode.rules
            known = previous_state if game == "sealed_bid_auction" else state
            values = rules.valuation(known) if known is previous_state else known.valuations
            assert worth == pytest.approx(float(values[buyer]) / rules.unit)


def test_who_kept_the_word_is_marked(records):
    shown = episode_page.page(replayed.read(records, 2), "/run/x")
    rows = [(row, r) for r in shown.rounds for row in r.rows]
    assert [cell.word for row, _ in rows for cell in row.cells.values()] == ["", "", ""]
    turn = shown.replayed.turns[0]
    spoken = turn._replace(spoken={0: [turn.talk[0]._replace(seat=0, content="I will give 20.")]})
    row = episode_page._row(shown.replayed, spoken)
    assert row.cells[0].word == "announced 20: not kept"
