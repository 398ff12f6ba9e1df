"""Clients of a workload: threads with a session each, and transactions with their outcome."""

import random
import threading
import time

from history import FAIL, INFO, OK
from pymongo.errors import ConnectionFailure, CursorNotFound, DuplicateKeyError, PyMongoError
from pymongo.read_concern import ReadConcern

ROLL_BACKS = 0.05
# A client that does not know whether its commit took effect asks again, but not always.
GIVES_UP = 0.3
COMMIT_SECONDS = 20


class Surprise(Exception):
    """An error that is no part of the contract: it fails the run."""


class Client(threading.Thread):
    """Runs steps of its workload until it is over.

    Its `process` changes after each unknown outcome, as Jepsen wants it.
    """

    def __init__(self, workload, mongo, number, seed):
        super().__init__(name=f"client {number}", daemon=True)
        self.workload, self.mongo, self.number = workload, mongo, number
        self.process = number
        self.chance = random.Random(f"{seed} {number}")
        self.surprise = None
        self.session = None
        self.session_ids = []
        self.steps = 0

    @property
    def db(self):
        return self.mongo[self.workload.database]

    def run(self):
        try:
            self.begin_session()
            while not self.workload.is_over.is_set():
                self.workload.step(self)
                self.steps += 1
            self.session.end_session()
        except Exception as error:
            self.surprise = error

    def begin_session(self):
        self.session = self.mongo.start_session()
        self.session_ids.append(self.session.session_id)

    def renew(self):
        """Goes on as a new process with a new session, which must see all that the old one has seen."""
        self.process += self.workload.settings.clients
        old = self.session
        self.begin_session()
        if old.cluster_time is not None:
            self.session.advance_cluster_time(old.cluster_time)
        if old.operation_time is not None:
            self.session.advance_operation_time(old.operation_time)
        old.end_session()

    def end_transaction_after(self, error):
        """Ends the transaction for certain. The abort of PyMongo may have been lost, and others would wait for it."""
        if isinstance(error, ConnectionFailure):
            id = self.session.session_id
            persist(lambda: self.mongo.admin.command("killSessions", [id]))

    def read_concern(self):
        return ReadConcern(self.chance.choice(self.workload.settings.read_concerns))


class IndexBuilder(threading.Thread):
    """Builds and drops indexes of the collections of a workload while transactions on them are open."""

    def __init__(self, workload, mongo, seed):
        super().__init__(name="index builder", daemon=True)
        self.workload, self.mongo, self.db = workload, mongo, mongo[workload.database]
        self.chance = random.Random(f"builds {seed}")
        self.surprise = None
        self.steps = 0

    def run(self):
        try:
            while not self.workload.is_over.is_set():
                self.build_and_drop()
                self.steps += 1
        except Exception as error:
            self.surprise = error

    def build_and_drop(self):
        names = persist(self.db.list_collection_names) or ["created by its index"]
        collection = self.db[self.chance.choice(sorted(names))]
        document = persist(collection.find_one) or {}
        fields = sorted(document.keys() - {"_id"}) or ["missing"]
        key = [(self.chance.choice(fields), -1), ("_id", 1)]
        persist(lambda: collection.create_index(key, name="built meanwhile"))
        time.sleep(self.chance.uniform(0, 0.05))
        persist(lambda: drop_index(collection, "built meanwhile"))


def drop_index(collection, name):
    """Drops an index that may be gone already, by a drop whose reply was lost."""
    if name in collection.index_information():
        collection.drop_index(name)


def transact(client, body, roll_backs=ROLL_BACKS):
    """Runs the body in a transaction; gives its outcome, and the error if it has one.

    After an unknown outcome the caller records it and renews the client.
    """
    session = client.session
    try:
        session.start_transaction(read_concern=client.read_concern())
        body(session)
        if client.chance.random() < roll_backs:
            session.abort_transaction()
            return FAIL, "rolled back on purpose"
    except PyMongoError as error:
        if not is_expected(error):
            raise Surprise(f"in a transaction: {error!r}") from error
        session.abort_transaction()
        client.end_transaction_after(error)
        return FAIL, brief(error)
    return commit(client)


def commit(client):
    give_up = time.monotonic() + COMMIT_SECONDS
    while True:
        try:
            client.session.commit_transaction()
            return OK, ""
        except PyMongoError as error:
            if error.has_error_label("TransientTransactionError"):
                return FAIL, brief(error)
            if not error.has_error_label("UnknownTransactionCommitResult"):
                raise Surprise(f"at commit: {error!r}") from error
            if client.chance.random() < GIVES_UP or time.monotonic() > give_up:
                client.end_transaction_after(error)
                return INFO, brief(error)


def is_expected(error):
    """A transaction may end for a conflict, for a key that another one inserts, or because the server is gone."""
    return error.has_error_label("TransientTransactionError") or isinstance(
        error, (ConnectionFailure, DuplicateKeyError)
    )


def persist(action):
    """The result of an action that is tried again while the server is away or others are in its way."""
    deadline = time.monotonic() + COMMIT_SECONDS
    while True:
        try:
            return action()
        except PyMongoError as error:
            # A cursor ends with its server.
            if not (is_expected(error) or isinstance(error, CursorNotFound)) or time.monotonic() > deadline:
                raise


def brief(error):
    return f"{type(error).__name__} {getattr(error, 'code', None) or ''}: {str(error)[:120]}"
