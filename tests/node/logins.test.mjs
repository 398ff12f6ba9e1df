// Logins of the Node driver to a server with access control.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MongoClient } from "mongodb";
import { startServer } from "./server.mjs";

let server;

before(async () => {
  server = await startServer("--auth");
  const first = await new MongoClient(server.uri).connect();
  await first.db("admin").command({ createUser: "ada", pwd: "s\u00e9cret", roles: ["root"] });
  await first.close();
});

after(async () => {
  await server.stop();
});

for (const authMechanism of [undefined, "SCRAM-SHA-1", "SCRAM-SHA-256"]) {
  test(`a user logs in by ${authMechanism ?? "the mechanism that the server names"}`, async () => {
    const client = await new MongoClient(server.uri, { auth: { username: "ada", password: "s\u00e9cret" }, authMechanism }).connect();
    await client.db("node").collection("c").insertOne({ a: 1 });
    const { authInfo } = await client.db("admin").command({ connectionStatus: 1 });
    assert.deepEqual(authInfo.authenticatedUsers, [{ user: "ada", db: "admin" }]);
    await client.close();
  });

  test(`a wrong password is refused by ${authMechanism ?? "the mechanism that the server names"}`, async () => {
    const client = new MongoClient(server.uri, { auth: { username: "ada", password: "wrong" }, authMechanism });
    await assert.rejects(client.connect().then(() => client.db("node").command({ dbStats: 1 })), { code: 18 });
    await client.close();
  });
}

test("a client without a user is told to log in", async () => {
  const client = await new MongoClient(server.uri).connect();
  await assert.rejects(client.db("node").collection("c").findOne(), { code: 13 });
  await client.close();
});
