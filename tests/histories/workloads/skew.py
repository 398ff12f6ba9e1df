"""Write skew and phantoms under load: decisions from what a transaction reads, where two decide at once.

- Doctors: of each pair at least one is on call. A doctor leaves only where the transaction saw the other one
  on call.
- Bookings: each room has one booking at most. A transaction books where it found no booking, by a range of an
  index.

Snapshot isolation allows both rules to be broken, so there the breaches are only counted. At the level
`serializable` each is an anomaly.
"""

from clients import persist, transact
from history import FAIL, OK
from workload import Workload

PAIRS = 3
ROOMS = 3


class Skew(Workload):
    name = "skew"

    def __init__(self, settings):
        super().__init__(settings)
        self.breaches = 0
        self.committed = 0

    def prepare(self, db):
        db.doctors.create_index("pair")
        db.doctors.create_index([("on", 1), ("pair", 1)])
        db.bookings.create_index([("room", 1), ("hour", 1)])
        db.doctors.insert_many(
            [{"_id": f"{pair}-{side}", "pair": pair, "on": True} for pair in range(PAIRS) for side in "ab"]
        )

    def step(self, client):
        act = client.chance.choice([self.change_duty, self.change_booking])
        breaches = []
        outcome, _ = transact(client, lambda session: act(client, session, breaches))
        if outcome == OK:
            with self.lock:
                self.committed += 1
                self.breaches += len(breaches)
            # Only a transaction that has committed counts: others may have read anything at this level.
            for breach in breaches if self.settings.level == "serializable" else ():
                self.report("serializability broken", breach)
        elif outcome != FAIL:
            client.renew()

    def change_duty(self, client, session, breaches):
        pair = client.chance.randrange(PAIRS)
        doctors = list(client.db.doctors.find({"pair": pair}, session=session).hint("pair_1"))
        on = [doctor["_id"] for doctor in doctors if doctor["on"]]
        off = [doctor["_id"] for doctor in doctors if not doctor["on"]]
        if len(doctors) != 2:
            self.report("wrong documents", f"pair {pair} has the doctors {doctors}")
        if not on:
            breaches.append(f"nobody of pair {pair} is on call")
        if len(on) == 2:
            client.db.doctors.update_one({"_id": client.chance.choice(on)}, {"$set": {"on": False}}, session=session)
        else:
            client.db.doctors.update_many({"_id": {"$in": off}}, {"$set": {"on": True}}, session=session)

    def change_booking(self, client, session, breaches):
        room, hour = client.chance.randrange(ROOMS), client.chance.randrange(24)
        day = {"room": room, "hour": {"$gte": 0, "$lt": 24}}
        bookings = list(client.db.bookings.find(day, session=session).hint("room_1_hour_1"))
        if len(bookings) > 1:
            breaches.append(f"room {room} has the bookings {bookings}")
        if bookings:
            client.db.bookings.delete_many(day, session=session)
        else:
            client.db.bookings.insert_one({"room": room, "hour": hour, "by": client.number}, session=session)

    def finish(self, db):
        doctors = persist(lambda: list(db.doctors.find()))
        if len(doctors) != 2 * PAIRS:
            self.report("wrong documents", f"there are {len(doctors)} doctors, {2 * PAIRS} expected")

    def summary(self):
        return f"{self.committed} decisions, {self.breaches} breaches seen"
