// The Node driver against a server that shows itself as a replica set of one node.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MongoClient } from "mongodb";
import { startServer } from "./server.mjs";

let server;

before(async () => {
  server = await startServer("--persona", "replica-set");
});

after(async () => {
  await server.stop();
});

async function kind(options) {
  const client = new MongoClient(`mongodb://127.0.0.1:${server.port}/${options}`, { serverSelectionTimeoutMS: 3000 });
  try {
    await client.connect();
    await client.db("admin").command({ ping: 1 });
    return client.topology.description.type;
  } finally {
    await client.close();
  }
}

test("every form of connection finds the set", async () => {
  assert.equal(await kind(""), "ReplicaSetWithPrimary");
  assert.equal(await kind("?replicaSet=rs0"), "ReplicaSetWithPrimary");
  assert.equal(await kind("?directConnection=true"), "Single");
});

test("a set of another name is not found", async () => {
  await assert.rejects(kind("?replicaSet=other&serverSelectionTimeoutMS=500"), { name: "MongoServerSelectionError" });
});

test("writes are found by the reads of their session", async () => {
  const client = await new MongoClient(`mongodb://127.0.0.1:${server.port}/?retryWrites=false`).connect();
  const session = client.startSession({ causalConsistency: true });
  const collection = client.db("node").collection("causal");
  await collection.insertOne({ _id: 1 }, { session });
  assert.deepEqual(await collection.findOne({ _id: 1 }, { session }), { _id: 1 });
  assert.ok(session.operationTime);
  await session.endSession();
  await client.close();
});
