// The Node driver over TLS, with and without a certificate of its own.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { MongoClient } from "mongodb";
import selfsigned from "selfsigned";
import { startServer } from "./server.mjs";

let folder;
let files;
let server;

// A file with a certificate and its key. The issuer's own is made without one.
async function issue(name, extensions, issuer) {
  const options = { keyType: "ec", algorithm: "sha256", extensions, ...(issuer && { ca: { key: issuer.private, cert: issuer.cert } }) };
  const made = await selfsigned.generate([{ name: "commonName", value: name }], options);
  const file = path.join(folder, `${name}.pem`);
  writeFileSync(file, made.cert + "\n" + made.private, { mode: 0o600 });
  return { ...made, file };
}

before(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "pando-node-tls-"));
  const issuer = await issue("issuer", [{ name: "basicConstraints", cA: true }]);
  const names = [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }, { type: 7, ip: "127.0.0.1" }] }];
  const [own, app] = [await issue("server", names, issuer), await issue("app", names, issuer)];
  const ca = path.join(folder, "ca.pem");
  writeFileSync(ca, issuer.cert);
  files = { ca, app: app.file };
  server = await startServer("--tls-mode", "allowTLS", "--tls-certificate-key-file", own.file, "--tls-ca-file", ca, "--tls-allow-connections-without-certificates");
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
