"""The checker of linearizability finds each fault in histories made by hand, and agrees with a search of all orders."""

import itertools
import random

import edn
import pytest
from checker import LINEARIZABLE, check
from history import FAIL, INFO, OK, History
from mutations import MUTATIONS, undetected

SEEDS = range(12)


def history_of(*lines):
    """Transactions as text, `outcome from-to: r x 1` or `outcome from-to: w x 1`; `r x` has found nothing."""
    history = History()
    for process, line in enumerate(lines):
        head, _, body = line.partition(":")
        outcome, times = head.split()
        began, ended = times.split("-")
        name, key, *values = body.split()
        history.add(process, outcome, [(name, key, int(values[0]) if values else None)], int(began), int(ended))
    return history


def names(history):
    return [anomaly.name for anomaly in check(history, LINEARIZABLE)]


GOOD = {
    "nothing happens": [],
    "reads beside a write find either value": ["ok 0-9: w x 1", "ok 1-2: r x", "ok 3-4: r x 1", "ok 5-6: r x 1"],
    "writes at once take either order": ["ok 0-9: w x 1", "ok 0-9: w x 2", "ok 10-11: r x 1", "ok 12-13: r x 1"],
    "a long read finds what was there at its begin": ["ok 0-1: w x 1", "ok 2-9: r x 1", "ok 3-4: w x 2"],
    "an unknown write may take effect late": ["info 0-1: w x 1", "ok 2-3: r x", "ok 4-5: r x 1"],
    "an unknown write may have no effect": ["info 0-1: w x 1", "ok 2-3: r x", "ok 4-5: r x"],
    "a write that failed is not there": ["fail 0-1: w x 1", "ok 2-3: r x"],
    "registers do not depend on one another": ["ok 0-9: w x 1", "ok 0-9: w y 1", "ok 1-2: r x 1", "ok 3-4: r y"],
}

BAD = {
    "a stale read": ("not linearizable", ["ok 0-1: w x 1", "ok 2-3: w x 2", "ok 4-5: r x 1"]),
    "a read of nothing after a write": ("not linearizable", ["ok 0-1: w x 1", "ok 2-3: r x"]),
    "a value that comes back": (
        "not linearizable",
        ["ok 0-9: w x 1", "ok 0-9: w x 2", "ok 10-11: r x 1", "ok 12-13: r x 2", "ok 14-15: r x 1"],
    ),
    "two readers who see another order": (
        "not linearizable",
        ["ok 0-9: w x 1", "ok 0-9: w x 2", "ok 1-2: r x 1", "ok 3-4: r x 2", "ok 5-6: r x 1"],
    ),
    "a read that goes back beside the write": ("not linearizable", ["ok 0-9: w x 1", "ok 1-2: r x 1", "ok 3-4: r x"]),
    "an unknown write that was seen and is gone": (
        "not linearizable",
        ["info 0-1: w x 1", "ok 2-3: r x 1", "ok 4-5: r x"],
    ),
    "a value of the future": ("read of the future", ["ok 0-1: r x 1", "ok 2-3: w x 1"]),
    "a value that nobody wrote": ("unwritten value", ["ok 0-1: r x 1"]),
    "a value that was rolled back": ("G1a (aborted read)", ["fail 0-1: w x 1", "ok 2-3: r x 1"]),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_linearizable_history_is_good(name):
    assert names(history_of(*GOOD[name])) == []


@pytest.mark.parametrize("name", BAD)
def test_each_fault_is_found(name):
    anomaly, lines = BAD[name]
    assert set(names(history_of(*lines))) == {anomaly}


def test_a_fault_is_told_in_words():
    (anomaly,) = check(history_of("ok 0-1: w x 1", "ok 2-3: w x 2", "ok 4-5: r x 1"), LINEARIZABLE)
    assert str(anomaly).splitlines() == [
        "not linearizable",
        "    T1 client 1 ok: w x 2",
        "    T2 client 2 ok: r x 1",
        "    T0 client 0 ok: w x 1",
        "    - x: T1 ended with 2 before T2 began, with 1",
        "    - x: T0 ended with 1 before T1 began, with 2",
    ]


def simulate(seed, operations=120, clients=5, keys=2):
    """A history of a correct store: each operation takes effect at a random moment between its begin and its end."""
    chance, moments, number = random.Random(seed), [], itertools.count(1)
    for process in range(clients):
        time = 0
        for _ in range(operations // clients):
            began = time + chance.randint(1, 20)
            effect, time = began + chance.randint(1, 40), began + chance.randint(41, 60)
            moments.append((effect + chance.random(), process, began, time))
    history, registers = History(), {}
    for _, process, began, ended in sorted(moments):
        key, outcome = chance.randrange(keys), chance.choices([OK, INFO, FAIL], [90, 5, 5])[0]
        if chance.random() < 0.5:
            history.add(process, OK, [("r", key, registers.get(key))], began, ended)
            continue
        value = next(number)
        history.add(process, outcome, [("w", key, value)], began, ended)
        if outcome == OK or outcome == INFO and chance.random() < 0.5:
            registers[key] = value
    return history


@pytest.mark.parametrize("seed", range(50))
def test_histories_of_a_correct_store_are_good(seed):
    assert check(simulate(seed), LINEARIZABLE) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_every_corruption_of_a_good_history_is_found(seed):
    missed, tried = undetected(simulate(seed), LINEARIZABLE, seed)
    assert missed == []
    assert tried == len(MUTATIONS[LINEARIZABLE])


def random_history(seed):
    """Few operations on one register, with values by chance: some histories are linearizable, others not."""
    chance, history = random.Random(seed), History()
    writes = chance.randint(1, 3)
    for number in range(1, writes + 1):
        began = chance.randrange(10)
        outcome = chance.choices([OK, INFO], [80, 20])[0]
        history.add(number, outcome, [("w", "x", number)], began, began + chance.randint(1, 6))
    for number in range(chance.randint(1, 3)):
        began = chance.randrange(12)
        found = chance.choice([None, *range(1, writes + 1)])
        history.add(9 + number, OK, [("r", "x", found)], began, began + chance.randint(1, 6))
    return history


def has_an_order(history):
    """Whether any order of all operations, with any of the unknown writes, keeps time and explains each read."""
    known = [transaction for transaction in history if transaction.outcome == OK]
    unknown = [transaction for transaction in history if transaction.outcome == INFO]
    return any(
        keeps_time(order) and explains_reads(order)
        for size in range(len(unknown) + 1)
        for chosen in itertools.combinations(unknown, size)
        for order in itertools.permutations([*known, *chosen])
    )


def keeps_time(order):
    return not any(
        later.outcome == OK and later.ended_ns < earlier.began_ns
        for position, earlier in enumerate(order)
        for later in order[position + 1 :]
    )


def explains_reads(order):
    register = None
    for transaction in order:
        name, _, value = transaction.operations[0]
        if name == "w":
            register = value
        elif value != register:
            return False
    return True


def test_the_zones_decide_as_a_search_of_all_orders():
    histories = list(map(random_history, range(3000)))
    verdicts = [(has_an_order(history), check(history, LINEARIZABLE) == []) for history in histories]
    assert all(search == zones for search, zones in verdicts)
    assert 500 < sum(search for search, _ in verdicts) < 2500


def test_histories_survive_the_format_of_elle(tmp_path):
    history = history_of(*BAD["a stale read"][1])
    edn.write(history, tmp_path / "history.edn")
    assert names(edn.read(tmp_path / "history.edn")) == ["not linearizable"]
