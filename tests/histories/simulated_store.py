"""A store in memory with snapshot isolation, and with one of many faults: histories for tests of the checker.

Clients take turns at random, one micro-operation each, so a seed gives the same history every time. With no
fault the history is good at its level. With a fault the store is broken as real stores have been.
"""

import random

from history import FAIL, INFO, OK, History

FAULTS = {
    "lost updates": "no conflict between writers of one key: the last one overwrites",
    "read committed": "each read takes a snapshot of its own",
    "dirty reads": "reads see what others have not committed",
    "torn commits": "some keys of a commit appear later than the others",
    "lost commits": "some acknowledged commits have no effect",
    "leaked rollbacks": "some rollbacks keep a write",
    "doubled appends": "some commits append twice",
    "stale snapshots": "a snapshot may be older than what was acknowledged",
    "blind to itself": "a transaction does not see its own writes",
}


class Conflict(Exception):
    pass


class Store:
    def __init__(self, model, fault, level, chance):
        self.model, self.fault, self.level, self.chance = model, fault, level, chance
        self.versions = {}
        self.now = 0
        self.late = []

    def at(self, key, time):
        value = () if self.model == "list-append" else None
        for committed, version in self.versions.get(key, []):
            if committed <= time:
                value = version
        return value

    def install(self, key, value, time):
        self.versions.setdefault(key, []).append((time, value))
        self.versions[key].sort(key=lambda version: version[0])

    def newest(self, key):
        return max((time for time, _ in self.versions.get(key, [])), default=0)


class Session:
    """One transaction of the simulated store."""

    def __init__(self, store, others):
        self.store, self.others = store, others
        self.snapshot = store.now
        if store.fault == "stale snapshots" and store.chance.random() < 0.3:
            self.snapshot = max(0, store.now - store.chance.randrange(1, 8))
        self.writes, self.reads = {}, set()

    def read(self, key):
        store = self.store
        if key in self.writes and store.fault != "blind to itself":
            return self.writes[key]
        if store.fault == "dirty reads":
            for other in self.others:
                if other is not self and key in other.writes and store.chance.random() < 0.5:
                    return other.writes[key]
        self.reads.add(key)
        return store.at(key, store.now if store.fault == "read committed" else self.snapshot)

    def write(self, key, value):
        store = self.store
        if store.fault != "lost updates":
            held = any(other is not self and key in other.writes for other in self.others)
            if held or store.newest(key) > self.snapshot:
                raise Conflict
        if store.model == "list-append":
            before = self.writes.get(key, store.at(key, self.snapshot))
            value = (*before, value)
        self.writes[key] = value

    def commit(self):
        store, chance = self.store, self.store.chance
        if store.level == "serializable" and any(store.newest(key) > self.snapshot for key in self.reads):
            raise Conflict
        store.now += 1
        if store.fault == "lost commits" and chance.random() < 0.05:
            return
        for position, (key, value) in enumerate(self.writes.items()):
            if store.fault == "doubled appends" and chance.random() < 0.02:
                value = (*value, value[-1])
            torn = store.fault == "torn commits" and position > 0 and chance.random() < 0.3
            store.install(key, value, store.now + (3 if torn else 0))

    def roll_back(self):
        if self.store.fault == "leaked rollbacks" and self.writes and self.store.chance.random() < 0.2:
            self.store.now += 1
            key = next(iter(self.writes))
            self.store.install(key, self.writes[key], self.store.now)


class Client:
    def __init__(self, number):
        self.number = number
        self.session = None


def simulate(seed, model="list-append", fault=None, level="snapshot", transactions=300, clients=6, keys=4):
    """A history of the given store, with a read of every key at its end."""
    chance = random.Random(seed)
    store = Store(model, fault, level, chance)
    run = Run(store, chance, clients, keys)
    while len(run.history) < transactions:
        run.step(chance.choice(run.clients))
    for client in run.clients:
        if client.session is not None:
            run.finish(client)
    store.now += 10
    run.read_all()
    return run.history


class Run:
    def __init__(self, store, chance, clients, keys):
        self.store, self.chance, self.keys = store, chance, keys
        self.history = History()
        self.clients = [Client(number) for number in range(clients)]
        self.time = 0
        self.value = 0

    def tick(self):
        self.time += 1
        return self.time

    def step(self, client):
        if client.session is None:
            client.began, client.operations = self.tick(), []
            client.left = self.chance.randint(1, 5)
            client.session = Session(self.store, self.open_sessions())
        elif client.left == 0:
            self.finish(client)
        else:
            client.left -= 1
            self.operate(client)

    def open_sessions(self):
        """A list that is always up to date, as other transactions see it."""
        return Sessions(self.clients)

    def operate(self, client):
        key = self.chance.randrange(self.keys) + 100 * (self.value // 150)
        try:
            if self.chance.random() < 0.5:
                client.operations.append(("r", key, client.session.read(key)))
            else:
                self.value += 1
                name = "append" if self.store.model == "list-append" else "w"
                client.operations.append((name, key, self.value))
                client.session.write(key, self.value)
        except Conflict:
            self.end(client, FAIL)

    def finish(self, client):
        """Commits, or rolls back at random. Some clients never hear of their commit."""
        outcome = self.chance.choices([OK, INFO, FAIL], [85, 5, 10])[0]
        if outcome != FAIL:
            try:
                client.session.commit()
            except Conflict:
                outcome = FAIL
        self.end(client, outcome)

    def end(self, client, outcome):
        if outcome == FAIL:
            client.session.roll_back()
        self.history.add(client.number, outcome, client.operations, client.began, self.tick())
        client.session = None
        if outcome == INFO:
            client.number += len(self.clients)

    def read_all(self):
        began = self.tick()
        keys = sorted({key for t in self.history for _, key, _ in t.operations})
        operations = [("r", key, self.store.at(key, self.store.now)) for key in keys]
        self.history.add(10**6, OK, operations, began, self.tick())


class Sessions:
    def __init__(self, clients):
        self.clients = clients

    def __iter__(self):
        return (client.session for client in self.clients if client.session is not None)
