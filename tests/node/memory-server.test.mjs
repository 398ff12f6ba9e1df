// mongodb-memory-server, with which Node applications start a server for their tests, over packaging/mongod.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";

import { MongoClient } from "mongodb";
import { MongoMemoryReplSet, MongoMemoryServer } from "mongodb-memory-server-core";

const packaging = process.env.PACKAGING;
if (!packaging) throw new Error("PACKAGING must name the folder with the stand-in for mongod");
const binary = { systemBinary: path.join(packaging, "mongod"), version: "8.0.0" };

test("a server starts, takes documents and stops", async () => {
  const server = await MongoMemoryServer.create({ binary });
  const client = await new MongoClient(server.getUri()).connect();
  await client.db("shop").collection("orders").insertMany([{ _id: 1 }, { _id: 2 }]);
  assert.equal(await client.db("shop").collection("orders").countDocuments(), 2);
  await client.close();
  assert.equal(await server.stop(), true);
});

test("a replica set of one member takes transactions", async () => {
  const set = await MongoMemoryReplSet.create({ binary, replSet: { count: 1 } });
  const client = await new MongoClient(set.getUri()).connect();
  const orders = client.db("shop").collection("orders");
  await orders.insertOne({ _id: 0 });
  await client.withSession((session) => session.withTransaction(() => orders.insertOne({ _id: 1 }, { session })));
  assert.equal(await orders.countDocuments(), 2);
  await client.close();
  assert.equal(await set.stop(), true);
});

test("a replica set with users has access control by its key file", async () => {
  const auth = { enable: true, customRootName: "root", customRootPwd: "secret" };
  const set = await MongoMemoryReplSet.create({ binary, replSet: { count: 1, auth } });
  const stranger = await new MongoClient(set.getUri()).connect();
  await assert.rejects(stranger.db("shop").collection("orders").insertOne({ _id: 1 }), { code: 13 });
  await stranger.close();
  const root = await new MongoClient(set.getUri(), { auth: { username: "root", password: "secret" }, authSource: "admin" }).connect();
  await root.db("shop").collection("orders").insertOne({ _id: 1 });
  await root.close();
  assert.equal(await set.stop(), true);
});

test("a server with users refuses who has not logged in", async () => {
  const server = await MongoMemoryServer.create({ binary, auth: { enable: true, customRootName: "root", customRootPwd: "secret" } });
  const stranger = await new MongoClient(server.getUri()).connect();
  await assert.rejects(stranger.db("shop").collection("orders").insertOne({ _id: 1 }), { code: 13 });
  await stranger.close();
  const root = await new MongoClient(server.getUri(), { auth: { username: "root", password: "secret" }, authSource: "admin" }).connect();
  await root.db("shop").collection("orders").insertOne({ _id: 1 });
  await root.close();
  assert.equal(await server.stop(), true);
});
