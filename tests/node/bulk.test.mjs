// Bulk writes of a whole client, which the Node driver sends as `bulkWrite`.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { MongoClient } from "mongodb";
import { startServer } from "./server.mjs";

const BATCH_MAX = 100_000;
const MEGABYTE = 1024 * 1024;

let server;
let client;
let db;
let sent;

before(async () => {
  server = await startServer("--persona", "replica-set", "--test-commands", "on");
  client = await new MongoClient(server.uri, { monitorCommands: true }).connect();
  client.on("commandStarted", (event) => sent.push(event));
  db = client.db("bulk");
});

beforeEach(async () => {
  sent = [];
  await db.dropDatabase();
});

after(async () => {
  await client.close();
  await server.stop();
});

const sums = (result) =>
  ["insertedCount", "matchedCount", "modifiedCount", "upsertedCount", "deletedCount"].map((name) => result[name]);
const insert = (_id, namespace = "bulk.a") => ({ name: "insertOne", namespace, document: { _id } });
const commandsOf = (name) => sent.filter((event) => event.commandName === name).map((event) => event.command);

test("operations of all kinds on two collections", async () => {
  const models = [
    insert(1),
    insert(2),
    insert(1, "bulk.b"),
    { name: "updateOne", namespace: "bulk.a", filter: {}, update: { $set: { last: true } }, sort: { _id: -1 } },
    { name: "updateMany", namespace: "bulk.a", filter: {}, update: [{ $set: { x: "$$x" } }] },
    { name: "replaceOne", namespace: "bulk.b", filter: { _id: 7 }, replacement: { y: 1 }, upsert: true },
    { name: "deleteOne", namespace: "bulk.b", filter: { _id: 1 }, hint: "_id_" },
    { name: "deleteMany", namespace: "bulk.a", filter: { _id: { $gt: 5 } } },
  ];
  const result = await client.bulkWrite(models, { verboseResults: true, let: { x: 5 } });
  assert.deepEqual(sums(result), [3, 3, 3, 1, 1]);
  assert.deepEqual([...result.insertResults], [[0, { insertedId: 1 }], [1, { insertedId: 2 }], [2, { insertedId: 1 }]]);
  assert.equal(result.updateResults.get(4).modifiedCount, 2);
  assert.equal(result.updateResults.get(5).upsertedId, 7);
  assert.deepEqual([...result.deleteResults].map(([at, { deletedCount }]) => [at, deletedCount]), [[6, 1], [7, 0]]);
  assert.deepEqual(await db.collection("a").find().toArray(), [{ _id: 1, x: 5 }, { _id: 2, last: true, x: 5 }]);
  assert.deepEqual(await db.collection("b").find().toArray(), [{ _id: 7, y: 1 }]);
});

test("failures of ordered and unordered writes", async () => {
  const models = [insert(1), insert(1), insert(2)];
  await assert.rejects(client.bulkWrite(models), (error) => {
    assert.deepEqual([...error.writeErrors].map(([at, { code }]) => [at, code]), [[1, 11000]]);
    return true;
  });
  await assert.rejects(client.bulkWrite([insert(3), insert(3), insert(4)], { ordered: false }), (error) => {
    assert.deepEqual([...error.writeErrors].map(([at, { code }]) => [at, code]), [[1, 11000]]);
    assert.equal(error.partialResult.insertedCount, 2);
    return true;
  });
  assert.deepEqual(await db.collection("a").distinct("_id"), [1, 3, 4]);
});

test("more operations than a batch holds", async () => {
  const result = await client.bulkWrite(Array.from({ length: BATCH_MAX + 1 }, (_, at) => insert(at)));
  assert.equal(result.insertedCount, BATCH_MAX + 1);
  assert.deepEqual(commandsOf("bulkWrite").map((command) => command.ops.length), [BATCH_MAX, 1]);
});

test("results of more than one batch, also in a transaction", async () => {
  const upsert = (letter) => ({
    name: "updateOne",
    namespace: "bulk.a",
    filter: { _id: letter.repeat(8 * MEGABYTE) },
    update: { $set: { x: 1 } },
    upsert: true,
  });
  const result = await client.bulkWrite([upsert("a"), upsert("b")], { verboseResults: true });
  assert.deepEqual([result.upsertedCount, result.updateResults.size, commandsOf("getMore").length], [2, 2, 1]);
  await client.withSession((session) =>
    session.withTransaction(async () => {
      const inside = await client.bulkWrite([upsert("c"), upsert("d")], { verboseResults: true, session });
      assert.deepEqual([inside.updateResults.size, commandsOf("getMore").length], [2, 2]);
    }),
  );
  assert.equal(await db.collection("a").countDocuments({}), 4);
});

test("a lost connection repeats a bulk write under its number", async () => {
  await client.db("admin").command({
    configureFailPoint: "failCommand",
    mode: { times: 1 },
    data: { failCommands: ["bulkWrite"], closeConnection: true },
  });
  const result = await client.bulkWrite([insert(1), { name: "updateOne", namespace: "bulk.a", filter: { _id: 1 }, update: { $inc: { x: 1 } } }]);
  assert.deepEqual(sums(result), [1, 1, 1, 0, 0]);
  const numbers = commandsOf("bulkWrite").map((command) => String(command.txnNumber));
  assert.ok(numbers.length === 2 && numbers[0] === numbers[1], numbers);
});

test("an unacknowledged bulk write takes effect", async () => {
  const result = await client.bulkWrite([insert(1), insert(1), insert(2)], { ordered: false, writeConcern: { w: 0 } });
  assert.equal(result.acknowledged, false);
  for (let tries = 0; (await db.collection("a").countDocuments({})) < 2; tries++) assert.ok(tries < 1000);
});
