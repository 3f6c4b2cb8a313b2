"""Workers' files: whoever recorded what, and in whatever order, a run's file comes out the same."""

import llm_games as lg
from llm_games.benchmarks.record.store import Store
from tests.run_rows import written

RAW = {
    "episodes": 3,
    "seats": ["mock"],
    "games": [
        {"game": "public_goods", "params": {"players": 3, "rounds": 2}, "talk": {"turns": 1}},
        {"game": "public_goods", "label": "series", "params": {"players": 2}, "series": True},
    ],
}


def in_order(path):
    with Store.open(path) as store:
        store.put_in_order()
    return written(path)


def test_the_order_of_play_does_not_show(tmp_path):
    one = lg.run({**RAW, "max_tables": 1}, tmp_path / "one.db").path
    many = lg.run(RAW, tmp_path / "many.db").path
    before = written(many)
    rows, others = in_order(one), in_order(many)
    assert before["prompts"] != rows["prompts"]
    del rows["run"], others["run"]  # which name max_tables
    assert rows == others
    assert in_order(many)["prompts"] == others["prompts"]
