"""A bank: transfers between accounts in transactions.

The sum of all accounts is the same in every snapshot, and a transfer is done and in the book, or neither.

An account without money is deleted, and inserted again by the next transfer to it, so documents, indexes and
counters come and go. Each transfer also inserts into a second collection, the book. At the end the balances
are those of the book, it has each acknowledged transfer, and no transfer that was rolled back.
"""

from clients import persist, transact
from history import FAIL, OK
from pymongo.read_concern import ReadConcern
from workload import Workload

ACCOUNTS = 8
BALANCE = 100
TOTAL = ACCOUNTS * BALANCE
READS = 0.4


class Bank(Workload):
    name = "bank"

    def __init__(self, settings):
        super().__init__(settings)
        self.outcomes, self.done = {}, set()
        self.transfers = [0] * settings.clients
        self.snapshots = 0
        self.views = [self.by_scan, self.by_balance, self.by_owner, self.by_group, self.by_ids]

    def prepare(self, db):
        db.accounts.create_index("balance")
        db.accounts.create_index([("owner", 1), ("balance", 1)])
        db.book.create_index("source")
        db.accounts.insert_many([{"_id": n, "owner": n % 3, "balance": BALANCE} for n in range(ACCOUNTS)])

    def step(self, client):
        if client.chance.random() < READS:
            self.look(client)
        else:
            self.move(client)

    def move(self, client):
        self.transfers[client.number] += 1
        name = f"{client.number}-{self.transfers[client.number]}"
        wrote = []
        outcome, _ = transact(client, lambda session: wrote.append(self.transfer(client, session, name)))
        with self.lock:
            self.outcomes[name] = outcome
            if outcome == OK and any(wrote):
                self.done.add(name)
        if outcome not in (OK, FAIL):
            client.renew()

    def transfer(self, client, session, name):
        """Whether there was money to move."""
        db, chance = client.db, client.chance
        source, target = chance.sample(range(ACCOUNTS), 2)
        account = db.accounts.find_one({"_id": source}, session=session)
        amount = chance.choice([chance.randint(1, 30), account["balance"]]) if account else 0
        if account is None or amount > account["balance"]:
            return False
        db.book.insert_one({"_id": name, "source": source, "target": target, "amount": amount}, session=session)
        if amount == account["balance"]:
            db.accounts.delete_one({"_id": source}, session=session)
        elif chance.random() < 0.5:
            db.accounts.update_one({"_id": source}, {"$inc": {"balance": -amount}}, session=session)
        else:
            db.accounts.update_one({"_id": source}, {"$set": {"balance": account["balance"] - amount}}, session=session)
        update = {"$inc": {"balance": amount}, "$setOnInsert": {"owner": target % 3}}
        db.accounts.update_one({"_id": target}, update, upsert=True, session=session)
        return True

    # ---- views: each gives the sum of all balances in its own way

    def by_scan(self, accounts, session):
        return sum(account["balance"] for account in accounts.find({}, session=session))

    def by_balance(self, accounts, session):
        return sum(
            account["balance"] for account in accounts.find({"balance": {"$gt": 0}}, session=session).hint("balance_1")
        )

    def by_owner(self, accounts, session):
        """From an index alone, in two batches."""
        only = {"_id": 0, "balance": 1}
        found = accounts.find({"owner": {"$gte": 0}}, only, session=session, batch_size=3).hint("owner_1_balance_1")
        return sum(account["balance"] for account in found)

    def by_group(self, accounts, session):
        return next(accounts.aggregate([{"$group": {"_id": None, "sum": {"$sum": "$balance"}}}], session=session))[
            "sum"
        ]

    def by_ids(self, accounts, session):
        """One statement for each account, which only one snapshot makes a sum of."""
        found = (accounts.find_one({"_id": n}, session=session) for n in range(ACCOUNTS))
        return sum(account["balance"] for account in found if account)

    def look(self, client):
        sums = {}
        if self.settings.strict_statements and client.chance.random() < 0.3:
            view = client.chance.choice(self.views[:-1])
            accounts = client.db.accounts.with_options(
                read_concern=ReadConcern(client.chance.choice(("majority", "local")))
            )
            sums[f"{view.__name__} outside a transaction"] = persist(lambda: view(accounts, None))
        else:
            views = client.chance.sample(self.views, 2)
            transact(
                client,
                lambda session: sums.update((view.__name__, view(client.db.accounts, session)) for view in views),
                roll_backs=0,
            )
        self.snapshots += 1
        for view, found in sums.items():
            if found != TOTAL:
                self.report("torn snapshot", f"{view}: all accounts together have {found} instead of {TOTAL}: {sums}")

    # ---- the end

    def finish(self, db):
        accounts = persist(lambda: {account["_id"]: account["balance"] for account in db.accounts.find()})
        book = persist(lambda: {entry["_id"]: entry for entry in db.book.find()})
        expected = dict.fromkeys(range(ACCOUNTS), BALANCE)
        for entry in book.values():
            expected[entry["source"]] -= entry["amount"]
            expected[entry["target"]] += entry["amount"]
        expected = {account: balance for account, balance in expected.items() if balance}
        if accounts != expected:
            self.report("wrong balances", f"the accounts are {accounts}, after the book they should be {expected}")
        for name in book:
            if self.outcomes.get(name) == FAIL:
                self.report("G1a (aborted write)", f"transfer {name} was rolled back, and is in the book")
        for name in self.done - book.keys():
            self.report("lost write", f"transfer {name} was acknowledged, and is not in the book")

    def summary(self):
        return f"{sum(outcome == OK for outcome in self.outcomes.values())} transfers, {self.snapshots} snapshots"
