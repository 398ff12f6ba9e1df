"""The checker finds each anomaly in histories made by hand, and none in good ones."""

import edn
import pytest
from checker import check
from footprints import MODELS
from graph import Graph
from history import FAIL, INFO, OK, History
from mutations import MUTATIONS, undetected
from simulated_store import FAULTS, simulate

SEEDS = range(12)


def history_of(*lines):
    """Transactions as text, `client outcome from-to: r x 1 2, append y 3`; lists and registers alike."""
    history = History()
    for line in lines:
        head, _, body = line.partition(":")
        client, outcome, times = head.split()
        began, ended = times.split("-")
        operations = [operation_of(words.split()) for words in body.split(",")]
        history.add(int(client), outcome, operations, int(began), int(ended))
    return history


def operation_of(words):
    name, key, *values = words
    numbers = tuple(map(int, values))
    if name == "r":
        return name, key, numbers
    if name == "rr":
        return "r", key, numbers[0] if numbers else None
    return name, key, numbers[0]


def names(history, model="list-append", level="snapshot", order="realtime"):
    return [anomaly.name.partition(" (")[0] for anomaly in check(history, model, level, order)]


GOOD_LISTS = [
    "0 ok 0-5: append x 1, append y 1",
    "1 ok 1-9: r x, r y",
    "2 ok 6-12: r x 1, append x 2, r x 1 2",
    "3 fail 7-13: r y 1, append x 9",
    "4 info 8-14: append y 2, append y 3",
    "5 info 8-14: append y 4",
    "6 ok 20-21: r x 1 2, r y 1 2 3",
]

LISTS = {
    "G0": ["0 ok 0-9: append x 1, append y 2", "1 ok 0-9: append x 2, append y 1", "2 ok 10-11: r x 1 2, r y 1 2"],
    "G1a": ["0 fail 0-9: append x 1", "1 ok 0-9: r x 1"],
    "G1b": ["0 ok 0-9: append x 1, append x 2", "1 ok 0-9: r x 1"],
    "G1c": ["0 ok 0-9: append x 1, r y 1", "1 ok 0-9: append y 1, r x 1"],
    "G-single": ["0 ok 0-9: append x 1, append y 1", "1 ok 0-9: r x 1, r y", "2 ok 10-11: r x 1, r y 1"],
    "G-nonadjacent": [
        "0 ok 0-9: append x 1",
        "1 ok 0-9: append y 1",
        "2 ok 0-9: r x 1, r y",
        "3 ok 0-9: r x, r y 1",
    ],
    "lost update": ["0 ok 0-9: r x, append x 1", "1 ok 0-9: r x, append x 2", "2 ok 10-11: r x 1 2"],
    "G-single-realtime": ["0 ok 0-1: append x 1", "1 ok 2-3: r x", "2 ok 4-5: r x 1"],
    "G0-realtime": ["0 ok 0-1: append x 1", "1 ok 2-3: append x 2", "2 ok 4-5: r x 2 1"],
    "G1c-realtime": ["0 ok 6-9: append x 1", "1 ok 0-5: r x 1"],
    "internal": ["0 ok 0-9: append x 1, r x", "1 ok 10-11: r x 1"],
    "unwritten value": ["0 ok 0-9: r x 1"],
    "duplicate elements": ["0 ok 0-9: append x 1", "1 ok 10-11: r x 1 1"],
    "incompatible order": ["0 ok 0-9: append x 1", "1 ok 0-9: append x 2", "2 ok 10-19: r x 1 2", "3 ok 10-19: r x 2"],
    "lost append": ["0 ok 0-9: append x 1", "1 ok 10-19: append x 2", "2 ok 20-21: r x 2"],
}

REGISTERS = {
    "G0": [
        "0 ok 0-9: rr x, w x 1, rr y 2, w y 1",
        "1 ok 0-9: rr x 1, w x 2, rr y, w y 2",
    ],
    "G1a": ["0 fail 0-9: w x 1", "1 ok 0-9: rr x 1"],
    "G1b": ["0 ok 0-9: w x 1, w x 2", "1 ok 0-9: rr x 1"],
    "G1c": ["0 ok 0-9: w x 1, rr y 1", "1 ok 0-9: w y 1, rr x 1"],
    "G-single": ["0 ok 0-9: rr x, w x 1, rr y, w y 1", "1 ok 0-9: rr x 1, rr y"],
    "G-nonadjacent": ["0 ok 0-9: w x 1", "1 ok 0-9: w y 1", "2 ok 0-9: rr x 1, rr y", "3 ok 0-9: rr x, rr y 1"],
    "lost update": ["0 ok 0-9: rr x, w x 1", "1 ok 0-9: rr x, w x 2"],
    "G-single-realtime": ["0 ok 0-1: w x 1", "1 ok 2-3: rr x"],
    "internal": ["0 ok 0-9: w x 1, rr x"],
    "unwritten value": ["0 ok 0-9: rr x 1"],
}


@pytest.mark.parametrize("name", LISTS)
def test_each_anomaly_of_lists_is_found(name):
    assert name in names(history_of(*LISTS[name]))


@pytest.mark.parametrize("name", REGISTERS)
def test_each_anomaly_of_registers_is_found(name):
    assert name in names(history_of(*REGISTERS[name]), "register")


def test_a_good_history_has_no_anomaly():
    assert names(history_of(*GOOD_LISTS)) == []


def test_a_good_history_of_registers_has_no_anomaly():
    good = [
        "0 ok 0-5: w x 1, w y 1",
        "1 ok 1-9: rr x, rr y",
        "2 ok 6-12: rr x 1, w x 2, rr x 2",
        "3 info 7-8: w y 3",
        "4 ok 20-21: rr x 2, rr y 3",
    ]
    assert names(history_of(*good), "register") == []


WRITE_SKEW = ["0 ok 0-9: r x, append y 1", "1 ok 0-9: r y, append x 1", "2 ok 10-11: r x 1, r y 1"]


def test_write_skew_is_allowed_under_snapshot_isolation_only():
    assert names(history_of(*WRITE_SKEW)) == []
    assert names(history_of(*WRITE_SKEW), level="serializable") == ["G2-item"]


def test_the_anomaly_of_a_read_only_transaction_is_no_serializable_history():
    # Fekete, O'Neil, O'Neil: the reader sees the deposit without the withdrawal that precedes it in any serial order.
    lines = [
        "0 ok 0-20: r x, r y, append x 1",
        "1 ok 5-8: r y, append y 1",
        "2 ok 9-12: r x, r y 1",
        "3 ok 30-31: r x 1, r y 1",
    ]
    assert names(history_of(*lines)) == []
    assert names(history_of(*lines), level="serializable", order="none") == ["G2-item"]


def test_a_stale_snapshot_is_wrong_only_where_time_counts():
    stale = history_of("0 ok 0-1: append x 1", "1 ok 2-3: r x", "2 ok 4-5: r x 1")
    assert names(stale, order="none") == []
    assert names(stale, order="session") == []
    assert names(stale, order="realtime") == ["G-single-realtime"]
    own = history_of("0 ok 0-1: append x 1", "0 ok 2-3: r x", "2 ok 4-5: r x 1")
    assert names(own, order="session") == ["G-single-session"]


def test_an_unknown_commit_may_take_effect_late_or_never():
    assert names(history_of("0 info 0-1: append x 1", "1 ok 2-3: r x", "2 ok 4-5: r x 1")) == []
    assert names(history_of("0 info 0-1: append x 1", "1 ok 2-3: r x", "2 ok 4-5: r x")) == []
    assert names(history_of("0 info 0-1: append x 1", "1 ok 2-3: r x 1", "2 ok 4-5: r x")) == ["G-single-realtime"]


def test_half_of_an_unknown_commit_is_wrong():
    half = history_of("0 info 0-9: append x 1, append y 1", "1 ok 10-11: r x 1, r y")
    assert names(half) == ["G-single"]


def test_a_rolled_back_transaction_read_from_a_snapshot_too():
    skewed = ["0 ok 0-9: append x 1, append y 1", "1 fail 0-9: r x 1, r y", "2 ok 10-11: r x 1, r y 1"]
    assert names(history_of(*skewed)) == ["G-single"]
    assert names(history_of(*skewed), level="serializable") == []


def test_an_anomaly_is_told_in_words():
    (anomaly,) = check(history_of(*LISTS["G-single"]), "list-append")
    assert str(anomaly).splitlines() == [
        "G-single (read skew)",
        "    T0 client 0 ok: append x 1, append y 1",
        "    T1 client 1 ok: r x [1], r y []",
        "    - T0 -wr-> T1: T1 found [1] in x, the last of it written by T0",
        "    - T1 -rw-> T0: T1 found [] in y, without the 1 of T0",
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("level", ["snapshot", "serializable"])
@pytest.mark.parametrize("model", MODELS)
def test_histories_of_a_correct_store_are_good(model, level, seed):
    assert check(simulate(seed, model, level=level), model, level) == []


@pytest.mark.parametrize("model", MODELS)
def test_a_store_with_snapshots_is_not_serializable(model):
    found = {name for seed in SEEDS for name in names(simulate(seed, model), model, "serializable")}
    assert found == {"G2-item"}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("model", MODELS)
def test_every_broken_store_is_found(model, fault):
    if (model, fault) == ("register", "doubled appends"):
        return  # a register has no elements
    assert any(names(simulate(seed, model, fault), model) for seed in SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("model", MODELS)
def test_every_corruption_of_a_good_history_is_found(model, seed):
    missed, tried = undetected(simulate(seed, model), model, seed)
    assert missed == []
    assert tried == len(MUTATIONS[model])


@pytest.mark.parametrize("model", MODELS)
def test_histories_survive_the_format_of_elle(model, tmp_path):
    history = simulate(1, model, "read committed")
    edn.write(history, tmp_path / "history.edn")
    found = edn.read(tmp_path / "history.edn")
    assert [(t.process, t.outcome, t.began_ns, t.ended_ns) for t in found] == [
        (t.process, t.outcome, t.began_ns, t.ended_ns) for t in history
    ]
    assert [t.operations for t in found if t.outcome == OK] == [t.operations for t in history if t.outcome == OK]
    assert names(found, model) != []


def test_the_format_of_elle(tmp_path):
    history = History()
    history.add(3, OK, [("append", 255, 8), ("r", 253, (1, 3)), ("r", 4, ())], 10, 20)
    history.add(4, FAIL, [("r", 253, (1,))], 15, 16, 'a "quoted"\nerror')
    history.add(5, INFO, [("w", "x", 1), ("r", 7, None)], 30, 40)
    edn.write(history, tmp_path / "history.edn")
    assert (tmp_path / "history.edn").read_text().splitlines() == [
        "{:index 0, :type :invoke, :process 3, :f :txn, :value [[:append 255 8] [:r 253 nil] [:r 4 nil]], :time 10}",
        "{:index 1, :type :invoke, :process 4, :f :txn, :value [[:r 253 nil]], :time 15}",
        '{:index 2, :type :fail, :process 4, :f :txn, :value [[:r 253 [1]]], :time 16, :error "a quoted error"}',
        "{:index 3, :type :ok, :process 3, :f :txn, :value [[:append 255 8] [:r 253 [1 3]] [:r 4 []]], :time 20}",
        '{:index 4, :type :invoke, :process 5, :f :txn, :value [[:w "x" 1] [:r 7 nil]], :time 30}',
        '{:index 5, :type :info, :process 5, :f :txn, :value [[:w "x" 1] [:r 7 nil]], :time 40}',
    ]


def test_the_lightest_cycle_of_each_component():
    graph = Graph()
    for source, target, weight in [(1, 2, 1), (2, 3, 1), (3, 1, 5), (3, 2, 1), (3, 4, 1), (4, 5, 1), (5, 4, 9)]:
        graph.add(source, target, weight, (source, target))
    components = {tuple(sorted(component)): component for component in graph.components()}
    assert set(components) == {(1, 2, 3), (4, 5)}
    assert set(graph.lightest_cycle(components[1, 2, 3], 10)) == {(2, 3), (3, 2)}
