// mongosh against a real server: what a person types.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { startServer } from "./server.mjs";

const run = promisify(execFile);
let server;

before(async () => {
  server = await startServer();
});

after(() => server.stop());

/** Evaluates a script in mongosh and gives what it prints. */
async function mongosh(script) {
  const environment = { ...process.env, MONGOSH_FORCE_TERMINAL: "0", HOME: process.env.HOME };
  const { stdout } = await run("npx", ["--no-install", "mongosh", "--quiet", "--norc", server.uri, "--eval", script], {
    env: environment,
    timeout: 120_000,
  });
  return stdout.trim();
}

test("a person inserts, finds, updates, deletes and counts", async () => {
  const printed = await mongosh(`
    db.people.insertMany([{ _id: 1, name: "Ada" }, { _id: 2, name: "Grace" }]);
    db.people.updateOne({ _id: 1 }, { $set: { born: 1815 } });
    print(EJSON.stringify(db.people.find({ born: { $exists: true } }).toArray()));
    db.people.deleteOne({ _id: 2 });
    print(db.people.countDocuments());
  `);
  assert.deepEqual(printed.split("\n"), ['[{"_id":1,"name":"Ada","born":1815}]', "1"]);
});

test("indexes, explain and aggregates answer", async () => {
  const printed = await mongosh(`
    db.t.insertMany([...Array(500).keys()].map((i) => ({ _id: i, k: i % 10 })));
    print(db.t.createIndex({ k: 1 }));
    print(db.t.find({ k: 3 }).explain().queryPlanner.winningPlan.inputStage.indexName);
    print(EJSON.stringify(db.t.aggregate([{ $match: { k: { $lt: 2 } } }, { $group: { _id: "$k", n: { $sum: 1 } } }, { $sort: { _id: 1 } }]).toArray()));
    print(db.t.find().toArray().length);
  `);
  assert.deepEqual(printed.split("\n"), ["k_1", "k_1", '[{"_id":0,"n":50},{"_id":1,"n":50}]', "500"]);
});

test("show dbs, show collections and stats work", async () => {
  const printed = await mongosh(`
    db.getSiblingDB("shown").things.insertOne({});
    print(db.adminCommand({ listDatabases: 1 }).databases.some((d) => d.name === "shown"));
    print(db.getSiblingDB("shown").getCollectionNames());
    print(db.getSiblingDB("shown").things.stats().count);
    print(db.version().length > 0);
  `);
  assert.deepEqual(printed.split("\n"), ["true", "[ 'things' ]", "1", "true"]);
});

test("its start has nothing to complain about", async () => {
  const environment = { ...process.env, MONGOSH_FORCE_TERMINAL: "0" };
  const shell = run("npx", ["--no-install", "mongosh", "--norc", server.uri], { env: environment, timeout: 120_000 });
  shell.child.stdin.end("print('version', db.version())\nexit\n");
  const { stdout } = await shell;
  assert.match(stdout, /Using MongoDB:\s+8\.0\./);
  assert.match(stdout, /version 8\.0\.\d+/);
  assert.doesNotMatch(stdout, /error|unsupported|unknown/i);
});

test("bulk writes of several collections work", async () => {
  const printed = await mongosh(`
    const models = [
      { name: "insertOne", namespace: "shell.a", document: { _id: 1 } },
      { name: "updateOne", namespace: "shell.b", filter: { _id: 2 }, update: { $set: { x: 1 } }, upsert: true },
    ];
    const result = db.getMongo().bulkWrite(models);
    print(result.insertedCount, result.upsertedCount);
    print(EJSON.stringify(db.getSiblingDB("shell").b.findOne()));
    print(db.getSiblingDB("shell").a.updateOne({}, { $set: { y: 1 } }, { sort: { _id: -1 } }).modifiedCount);
  `);
  assert.deepEqual(printed.split("\n"), ["1 1", '{"_id":2,"x":1}', "1"]);
});
