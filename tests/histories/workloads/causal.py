"""Causal consistency: a client reads its own writes, never goes back in time, and sees all it was told of.

Each client writes rising numbers to a document of its own, outside transactions and in them. A read by
another client follows after it has been told of a write, with the times that the session of the writer knows,
as programs hand them on.
"""

from clients import is_expected, transact
from history import FAIL, OK
from pymongo.errors import ConnectionFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from workload import Workload


class Causal(Workload):
    name = "causal"

    def __init__(self, settings):
        super().__init__(settings)
        self.tried = [0] * settings.clients
        # Per writer: the newest acknowledged number, with the cluster time and operation time of that moment.
        self.told = {}
        self.seen_by = [[0] * settings.clients for _ in range(settings.clients)]
        self.reads = 0

    def prepare(self, db):
        db.numbers.create_index("number")
        db.numbers.create_index("writer")

    def step(self, client):
        if client.chance.random() < 0.4:
            self.write(client)
        writer = client.number if client.chance.random() < 0.5 else client.chance.randrange(self.settings.clients)
        self.read(client, writer)

    def write(self, client):
        self.tried[client.number] += 1
        number = self.tried[client.number]
        if client.chance.random() < 0.5:
            outcome, _ = transact(client, lambda session: self.set_number(client, session, number), roll_backs=0)
        else:
            outcome = self.write_plainly(client, number)
        if outcome == OK:
            session = client.session
            if not self.told and (session.operation_time is None or session.cluster_time is None):
                self.report("no operationTime", "the reply of a write has no operationTime or no $clusterTime")
            self.told[client.number] = (number, session.cluster_time, session.operation_time)
        elif outcome != FAIL:
            client.renew()

    def write_plainly(self, client, number):
        try:
            self.set_number(client, client.session, number)
            return OK
        except ConnectionFailure:
            return None
        except PyMongoError as error:
            if is_expected(error):
                return FAIL
            raise

    def set_number(self, client, session, number):
        change = {"$set": {"number": number, "writer": client.number, "copy": number}}
        client.db.numbers.update_one({"_id": client.number}, change, upsert=True, session=session)

    def read(self, client, writer):
        told = self.told.get(writer)
        if told and writer != client.number and told[1] is not None and told[2] is not None:
            client.session.advance_cluster_time(told[1])
            client.session.advance_operation_time(told[2])
        least = max(told[0] if told else 0, self.seen_by[client.number][writer])
        found = self.number_of(client, writer)
        if found is None:
            return
        self.reads += 1
        if not least <= found <= self.tried[writer]:
            self.report(
                "not causal",
                f"client {client.number} read {found} of writer {writer}, and knew of {least} before",
            )
        self.seen_by[client.number][writer] = max(found, self.seen_by[client.number][writer])

    def number_of(self, client, writer):
        """The number of a writer, by a random way to read it; None where the server was away."""
        found = []
        try:
            if client.chance.random() < 0.3:
                outcome, _ = transact(
                    client,
                    lambda session: found.append(self.find_number(client, session, client.db.numbers, writer)),
                    roll_backs=0,
                )
                if outcome not in (OK, FAIL):
                    client.renew()
            else:
                numbers = client.db.numbers.with_options(read_concern=ReadConcern("majority"))
                found.append(self.find_number(client, client.session, numbers, writer))
        except PyMongoError as error:
            if not is_expected(error):
                raise
        return found[-1] if found else None

    def find_number(self, client, session, numbers, writer):
        form = client.chance.randrange(4)
        if form == 0:
            documents = numbers.find({"_id": writer}, session=session)
        elif form == 1:
            documents = numbers.find({"writer": writer}, session=session).hint("writer_1")
        elif form == 2:
            documents = numbers.aggregate([{"$match": {"_id": writer}}], session=session)
        else:
            documents = numbers.find({"number": {"$gte": 0}}, session=session).hint("number_1")
        document = next((document for document in documents if document["_id"] == writer), {"number": 0, "copy": 0})
        if document["number"] != document["copy"]:
            self.report("torn document", f"{document}")
        return document["number"]

    def summary(self):
        return f"{sum(self.tried)} writes, {self.reads} reads"
