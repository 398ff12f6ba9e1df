// mongosh logs in over TLS: by both SCRAMs, by certificate, and by PLAIN, which it takes for the database $external only.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { MongoClient } from "mongodb";
import { makeCertificates } from "./certificates.mjs";
import { startServer } from "./server.mjs";

const run = promisify(execFile);
const APP = "CN=app";
let folder;
let files;
let server;

before(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "pando-shell-logins-"));
  files = await makeCertificates(folder);
  server = await startServer("--auth", "--tls-mode", "preferTLS", "--tls-certificate-key-file", files.own, "--tls-ca-file", files.ca,
    "--tls-allow-connections-without-certificates", "--auth-plain");
  const first = await new MongoClient(server.uri).connect();
  await first.db("admin").command({ createUser: "ada", pwd: "s\u00e9cret", roles: ["root"] });
  await first.close();
  const ada = await new MongoClient(server.uri, { auth: { username: "ada", password: "s\u00e9cret" } }).connect();
  await ada.db("$external").command({ createUser: APP, roles: [{ role: "root", db: "admin" }] });
  await ada.close();
});

after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Evaluates a script in mongosh, which logs in by these options. */
function mongosh(options, script) {
  const encrypted = ["--tls", "--tlsCAFile", files.ca];
  return run("npx", ["--no-install", "mongosh", "--quiet", "--norc", server.uri, ...encrypted, ...options, "--eval", script], {
    env: { ...process.env, MONGOSH_FORCE_TERMINAL: "0" },
    timeout: 120_000,
  });
}

const password = (mechanism, database = "admin") => [
  "--username", "ada", "--password", "s\u00e9cret", "--authenticationDatabase", database, "--authenticationMechanism", mechanism,
];
for (const [mechanism, options, user] of [
  ["SCRAM-SHA-1", () => password("SCRAM-SHA-1"), "ada"],
  ["SCRAM-SHA-256", () => password("SCRAM-SHA-256"), "ada"],
  ["PLAIN", () => password("PLAIN", "$external"), "ada"],
  ["MONGODB-X509", () => ["--tlsCertificateKeyFile", files.app, "--authenticationMechanism", "MONGODB-X509", "--authenticationDatabase", "$external"], APP],
]) {
  test(`a person logs in by ${mechanism}`, async () => {
    const { stdout } = await mongosh(options(), `
      db.things.insertOne({ by: "${mechanism}" });
      print(db.runCommand({ connectionStatus: 1 }).authInfo.authenticatedUsers[0].user, db.things.countDocuments({ by: "${mechanism}" }));
    `);
    assert.equal(stdout.trim(), `${user} 1`);
  });
}

for (const login of [["SCRAM-SHA-256"], ["PLAIN", "$external"]]) {
  test(`a wrong password is told as such by ${login[0]}`, async () => {
    const options = password(...login).map((option) => (option === "s\u00e9cret" ? "wrong" : option));
    await assert.rejects(mongosh(options, "print(1)"), /Authentication failed/);
  });
}

test("the Node driver logs in by PLAIN", async () => {
  const login = (password) =>
    new MongoClient(server.uri, { tls: true, tlsCAFile: files.ca, auth: { username: "ada", password }, authMechanism: "PLAIN", authSource: "$external" });
  const client = await login("s\u00e9cret").connect();
  const { authInfo } = await client.db("admin").command({ connectionStatus: 1 });
  assert.deepEqual(authInfo.authenticatedUsers, [{ user: "ada", db: "admin" }]);
  await client.close();
  await assert.rejects(login("wrong").connect(), { code: 18 });
});
