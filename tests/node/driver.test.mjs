// The Node driver against a real server.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Long, MongoClient, ObjectId } from "mongodb";
import { startServer } from "./server.mjs";

let server;
let client;
let db;

before(async () => {
  server = await startServer();
  client = await new MongoClient(server.uri).connect();
  db = client.db("node");
});

after(async () => {
  await client.close();
  await server.stop();
});

test("a document comes back as it was inserted", async () => {
  const document = { _id: new ObjectId(), n: 1, f: 1.5, l: Long.fromString("9007199254740993"), d: new Date(5), a: [1, { b: null }], s: "é" };
  await db.collection("c").insertOne(document);
  assert.deepEqual(await db.collection("c").findOne({ _id: document._id }, { promoteLongs: false, promoteValues: true }), document);
});

test("bulk writes report what each kind did", async () => {
  const bulk = db.collection("bulk");
  const result = await bulk.bulkWrite([
    { insertOne: { document: { _id: 1 } } },
    { updateOne: { filter: { _id: 1 }, update: { $inc: { n: 2 } } } },
    { updateOne: { filter: { _id: 2 }, update: { $set: { n: 3 } }, upsert: true } },
    { replaceOne: { filter: { _id: 2 }, replacement: { n: 4 } } },
    { deleteOne: { filter: { _id: 1 } } },
  ]);
  assert.deepEqual([result.insertedCount, result.modifiedCount, result.upsertedCount, result.deletedCount], [1, 2, 1, 1]);
  assert.deepEqual(await bulk.find().toArray(), [{ _id: 2, n: 4 }]);
});

test("a cursor goes past one batch, sorted by an index", async () => {
  const many = db.collection("many");
  await many.insertMany(Array.from({ length: 2500 }, (_, i) => ({ _id: i, k: 2500 - i })));
  await many.createIndex({ k: 1 });
  const found = await many.find({}, { batchSize: 100 }).sort({ k: 1 }).map((d) => d._id).toArray();
  assert.deepEqual(found, Array.from({ length: 2500 }, (_, i) => 2499 - i));
  let streamed = 0;
  for await (const _ of many.find({ k: { $gt: 1000 } })) streamed++;
  assert.equal(streamed, 1500);
});

test("a duplicate key is an error with code 11000", async () => {
  const unique = db.collection("unique");
  await unique.createIndex({ email: 1 }, { unique: true });
  await unique.insertOne({ email: "a@b.c" });
  await assert.rejects(unique.insertOne({ email: "a@b.c" }), (error) => error.code === 11000 && error.keyPattern.email === 1);
});

test("aggregates group and sort", async () => {
  const sales = db.collection("sales");
  await sales.insertMany([["a", 1], ["b", 2], ["a", 3]].map(([shop, n]) => ({ shop, n })));
  const totals = await sales.aggregate([{ $group: { _id: "$shop", n: { $sum: "$n" } } }, { $sort: { n: -1 } }]).toArray();
  assert.deepEqual(totals, [{ _id: "a", n: 4 }, { _id: "b", n: 2 }]);
});

test("findOneAndUpdate gives the new document", async () => {
  const counters = db.collection("counters");
  const next = () => counters.findOneAndUpdate({ _id: "n" }, { $inc: { v: 1 } }, { upsert: true, returnDocument: "after" });
  assert.equal((await next()).v, 1);
  assert.equal((await next()).v, 2);
});

test("many operations at once on one client keep their answers apart", async () => {
  const crowd = db.collection("crowd");
  await Promise.all(Array.from({ length: 300 }, (_, i) => crowd.insertOne({ _id: i, v: i * i })));
  const found = await Promise.all(Array.from({ length: 300 }, (_, i) => crowd.findOne({ _id: i })));
  assert.deepEqual(found.map((d) => d.v), Array.from({ length: 300 }, (_, i) => i * i));
});

test("compressed connections work", async () => {
  const compressed = await new MongoClient(server.uri, { compressors: ["zlib"] }).connect();
  await compressed.db("node").collection("z").insertOne({ _id: 1, text: "x".repeat(10000) });
  assert.equal((await compressed.db("node").collection("z").findOne()).text.length, 10000);
  await compressed.close();
});

test("unknown commands are refused with code 59", async () => {
  await assert.rejects(db.command({ nonsense: 1 }), (error) => error.code === 59 && error.codeName === "CommandNotFound");
});
