// Transactions of the Node driver, which sends them to a standalone server as well.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MongoClient } from "mongodb";
import { startServer } from "./server.mjs";

let server;
let client;
let db;

before(async () => {
  server = await startServer();
  client = await new MongoClient(server.uri).connect();
  db = client.db("transactions");
});

after(async () => {
  await client.close();
  await server.stop();
});

test("withTransaction commits all or nothing", async () => {
  await db.collection("a").insertOne({ _id: 1, n: 0 });
  await client.withSession((session) =>
    session.withTransaction(async () => {
      await db.collection("a").updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session });
      await db.collection("b").insertMany([{ _id: 1 }, { _id: 2 }], { session });
      assert.equal(await db.collection("b").countDocuments({}, { session }), 2);
      assert.equal(await db.collection("b").countDocuments({}), 0);
    }),
  );
  assert.deepEqual([await db.collection("a").findOne(), await db.collection("b").countDocuments({})], [{ _id: 1, n: 1 }, 2]);
  await assert.rejects(
    client.withSession((session) =>
      session.withTransaction(async () => {
        await db.collection("a").deleteMany({}, { session });
        throw new Error("no");
      }),
    ),
    /no/,
  );
  assert.equal(await db.collection("a").countDocuments({}), 1);
});

test("a conflict has the label by which the driver runs the transaction again", async () => {
  const counters = db.collection("counters");
  await counters.insertOne({ _id: 1, n: 0 });
  const first = client.startSession();
  const second = client.startSession();
  first.startTransaction();
  second.startTransaction();
  await counters.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session: first });
  await assert.rejects(
    counters.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session: second }),
    (error) => error.code === 112 && error.hasErrorLabel("TransientTransactionError"),
  );
  await first.commitTransaction();
  await second.abortTransaction();
  await first.endSession();
  await second.endSession();
});

test("many clients that increment one counter in transactions lose nothing", async () => {
  const counters = db.collection("counters");
  await counters.insertOne({ _id: 2, n: 0 });
  const one = () =>
    client.withSession((session) =>
      session.withTransaction(async () => {
        const { n } = await counters.findOne({ _id: 2 }, { session });
        await counters.updateOne({ _id: 2 }, { $set: { n: n + 1 } }, { session });
      }),
    );
  await Promise.all(Array.from({ length: 20 }, one));
  assert.deepEqual(await counters.findOne({ _id: 2 }), { _id: 2, n: 20 });
});

test("a cursor of a transaction reads its snapshot to the end", async () => {
  const many = db.collection("many");
  await many.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: i })));
  await client.withSession((session) =>
    session.withTransaction(async () => {
      const cursor = many.find({}, { session, batchSize: 50 });
      await cursor.next();
      await many.deleteMany({});
      assert.equal((await cursor.toArray()).length, 999);
    }, { readConcern: { level: "snapshot" } }),
  );
  assert.equal(await many.countDocuments({}), 0);
});
