"""Corruptions of a good history, each of which the checker must find. Else a clean verdict would mean little.

A mutation takes a copy of a history and a source of chance, and changes it in place. It gives False where the
history has no place for it. The names say which anomalies may be reported for it; the first words of one
suffice.
"""

import random

from checker import check
from history import FAIL, OK


def reads_of(history, least=1):
    """Reads of so many elements at least, by committed transactions: (transaction, position, key, value)."""
    for transaction in history:
        if transaction.outcome == OK:
            for position, (name, key, value) in enumerate(transaction.operations):
                if name == "r" and value is not None and (not isinstance(value, tuple) or len(value) >= least):
                    yield transaction, position, key, value


def writes_of(history):
    """Values that committed transactions wrote: (key, value) to transaction."""
    return {(k, v): t for t in history if t.outcome == OK for name, k, v in t.operations if name != "r"}


def last_of(value):
    return value[-1] if isinstance(value, tuple) else value


def found_from_others(history):
    """Reads of a value that another committed transaction wrote: (reader, position, key, value, writer)."""
    writes = writes_of(history)
    for reader, position, key, value in reads_of(history):
        writer = writes.get((key, last_of(value)))
        if writer is not None and writer is not reader:
            yield reader, position, key, value, writer


def pick(places, chance):
    places = list(places)
    return chance.choice(places) if places else None


def invent_value(history, chance):
    place = pick(reads_of(history), chance)
    if not place:
        return False
    transaction, position, key, value = place
    transaction.operations[position] = ("r", key, (*value, -1) if isinstance(value, tuple) else -1)
    return True


def roll_back_seen_write(history, chance):
    place = pick(found_from_others(history), chance)
    if place:
        place[4].outcome = FAIL
    return bool(place)


def go_on_after_seen_write(history, chance):
    """The writer of a value that was seen wrote a second one after it."""
    place = pick(found_from_others(history), chance)
    if place:
        _, _, key, value, writer = place
        writer.operations.append(
            (next(n for n, k, v in writer.operations if (k, v) == (key, last_of(value)) and n != "r"), key, -1)
        )
    return bool(place)


def forget_own_write(history, chance):
    """A transaction reads what it had found before its own write."""
    places = []
    for transaction in history:
        for position, (name, key, value) in enumerate(transaction.operations):
            if name != "r" and transaction.outcome == OK:
                places.append((transaction, position, key, name))
    place = pick(places, chance)
    if place:
        transaction, position, key, name = place
        transaction.operations.insert(position + 1, ("r", key, () if name == "append" else None))
    return bool(place)


def change_mind(history, chance):
    """A second read of one key within a transaction gives another version."""
    place = pick(reads_of(history), chance)
    if place:
        transaction, position, key, value = place
        other = value[:-1] if isinstance(value, tuple) else None
        transaction.operations.insert(position + 1, ("r", key, other))
    return bool(place)


def read_stale(history, chance):
    """A transaction does not see a write that was acknowledged before it began."""
    places = [
        place for place in found_from_others(history) if place[4].ended_ns < place[0].began_ns and is_first_read(place)
    ]
    place = pick(places, chance)
    if place:
        reader, position, key, value, writer = place
        while isinstance(value, tuple) and value and any((key, value[-1]) == (k, v) for _, k, v in writer.operations):
            value = value[:-1]
        reader.operations[position] = ("r", key, value if isinstance(value, tuple) else None)
    return bool(place)


def is_first_read(place):
    """Whether the transaction has no other micro-operation on the key, so that it does not contradict itself."""
    reader, _, key, _, _ = place
    return sum(1 for _, other, _ in reader.operations if other == key) == 1


def lose_append(history, chance):
    """An acknowledged append is in no list."""
    writes = sorted(writes_of(history))
    if not writes:
        return False
    key, lost = chance.choice(writes)
    for transaction in history:
        for position, (name, other, value) in enumerate(transaction.operations):
            if name == "r" and other == key:
                transaction.operations[position] = ("r", key, tuple(v for v in value if v != lost))
    return True


def double_append(history, chance):
    place = pick(reads_of(history), chance)
    if place:
        transaction, position, key, value = place
        transaction.operations[position] = ("r", key, (*value, chance.choice(value)))
    return bool(place)


def swap_elements(history, chance):
    place = pick(reads_of(history, least=2), chance)
    if place:
        transaction, position, key, value = place
        transaction.operations[position] = ("r", key, (*value[:-2], value[-1], value[-2]))
    return bool(place)


def read_previous(history, chance):
    """A read finds a value that was overwritten before the read began."""
    writes = {}
    for (key, value), transaction in writes_of(history).items():
        writes.setdefault(key, []).append((transaction, value))
    places = []
    for reader, position, key, _ in reads_of(history):
        before = [(writer, value) for writer, value in writes.get(key, []) if writer.ended_ns < reader.began_ns]
        last_begin = max((writer.began_ns for writer, _ in before), default=0)
        places += [(reader, position, key, value) for writer, value in before if writer.ended_ns < last_begin]
    place = pick(places, chance)
    if place:
        reader, position, key, value = place
        reader.operations[position] = ("r", key, value)
    return bool(place)


def read_early(history, chance):
    """A read finds a value that is written only after its end."""
    writes = writes_of(history)
    places = [
        (reader, position, key, value)
        for reader, position, key, _ in reads_of(history)
        for (written, value), writer in writes.items()
        if written == key and reader.ended_ns < writer.began_ns
    ]
    place = pick(places, chance)
    if place:
        reader, position, key, value = place
        reader.operations[position] = ("r", key, value)
    return bool(place)


EVERY_MODEL = {
    invent_value: ("unwritten value", "internal"),
    roll_back_seen_write: ("G1a",),
    go_on_after_seen_write: ("G1b", "internal"),
    forget_own_write: ("internal",),
    change_mind: ("internal",),
    read_stale: ("G-single", "G0", "G1c", "G-nonadjacent", "lost update", "lost append"),
}
MUTATIONS = {
    "register": EVERY_MODEL,
    "list-append": {
        **EVERY_MODEL,
        lose_append: ("lost append", "internal"),
        double_append: ("duplicate elements", "internal"),
        swap_elements: ("incompatible order", "internal", "G0", "G1b", "G1c", "G-single"),
    },
    "linearizable-register": {
        invent_value: ("unwritten value",),
        roll_back_seen_write: ("G1a",),
        read_stale: ("not linearizable",),
        read_previous: ("not linearizable",),
        read_early: ("read of the future",),
    },
}


def undetected(history, model, seed, level="snapshot"):
    """Mutations of this history that the checker does not find or calls by a wrong name, and how many were tried."""
    missed, tried = [], 0
    for mutate, expected in MUTATIONS[model].items():
        mutated = history.copy()
        if not mutate(mutated, random.Random(f"{seed} {mutate.__name__}")):
            continue
        tried += 1
        names = [anomaly.name for anomaly in check(mutated, model, level)]
        if not any(name.startswith(expected) for name in names):
            missed.append(f"{mutate.__name__}: found {names or 'no anomaly'}")
    return missed, tried
