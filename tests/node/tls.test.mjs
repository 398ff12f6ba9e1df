// The Node driver over TLS, with and without a certificate of its own.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { MongoClient } from "mongodb";
import { makeCertificates } from "./certificates.mjs";
import { startServer } from "./server.mjs";

let folder;
let files;
let server;

before(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "pando-node-tls-"));
  files = await makeCertificates(folder);
  server = await startServer("--tls-mode", "allowTLS", "--tls-certificate-key-file", files.own, "--tls-ca-file", files.ca, "--tls-allow-connections-without-certificates");
});

after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

for (const [title, options] of [
  ["without a certificate of its own", () => ({ tls: true, tlsCAFile: files.ca })],
  ["with a certificate of its own", () => ({ tls: true, tlsCAFile: files.ca, tlsCertificateKeyFile: files.app })],
  ["without TLS at the same port", () => ({})],
]) {
  test(`documents of every size go and come ${title}`, async () => {
    const client = await new MongoClient(server.uri, options()).connect();
    const things = client.db("node").collection("things");
    await things.deleteMany({});
    await things.insertMany(Array.from({ length: 200 }, (_, number) => ({ _id: number, text: "x".repeat(number * 500) })));
    const lengths = await things.find({}, { batchSize: 7 }).sort({ _id: 1 }).map((found) => found.text.length).toArray();
    assert.deepEqual(lengths, Array.from({ length: 200 }, (_, number) => number * 500));
    await things.insertOne({ _id: -1, text: "y".repeat(12_000_000) });
    assert.equal((await things.findOne({ _id: -1 })).text.length, 12_000_000);
    await client.close();
  });
}

test("a server of an issuer that is not trusted is refused", async () => {
  const client = new MongoClient(server.uri, { tls: true, serverSelectionTimeoutMS: 1000 });
  await assert.rejects(client.connect(), /certificate/);
  await client.close();
});
