// Certificates for tests of TLS: of an issuer, of the server on this machine, and of an application.
import { writeFileSync } from "node:fs";
import path from "node:path";
import selfsigned from "selfsigned";

// Makes the files in a folder; gives their paths: `ca`, and with their keys `own` and `app`.
export async function makeCertificates(folder) {
  const issuer = await issue(folder, "issuer", [{ name: "basicConstraints", cA: true }]);
  const names = [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }, { type: 7, ip: "127.0.0.1" }] }];
  const [own, app] = [await issue(folder, "server", names, issuer), await issue(folder, "app", names, issuer)];
  const ca = path.join(folder, "ca.pem");
  writeFileSync(ca, issuer.cert);
  return { ca, own: own.file, app: app.file };
}

// A file with a certificate and its key. The issuer's own is made without one.
async function issue(folder, name, extensions, issuer) {
  const options = { keyType: "ec", algorithm: "sha256", extensions, ...(issuer && { ca: { key: issuer.private, cert: issuer.cert } }) };
  const made = await selfsigned.generate([{ name: "commonName", value: name }], options);
  const file = path.join(folder, `${name}.pem`);
  writeFileSync(file, made.cert + "\n" + made.private, { mode: 0o600 });
  return { ...made, file };
}
