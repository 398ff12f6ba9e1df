// Point queries by the Node driver, as `pando-bench point` makes them; prints what they cost this process.
//
//   node points.mjs URI CLIENTS SECONDS DOCUMENTS
import { createRequire } from "node:module";
import { join } from "node:path";

// Where the driver is installed: a folder with node_modules.
const require = createRequire(join(process.env.DRIVER_FOLDER ?? process.cwd(), "package.json"));
const { MongoClient } = require("mongodb");

const [uri, clients, seconds, documents] = process.argv.slice(2).map((text, place) => (place === 0 ? text : Number(text)));
const client = await new MongoClient(uri, { maxPoolSize: clients, minPoolSize: clients }).connect();
const collection = client.db("sbtest").collection("sbtest1");

let done = 0;
let missed = 0;
async function ask(end) {
  while (performance.now() < end) {
    const document = await collection.findOne({ _id: 1 + Math.floor(Math.random() * documents) }, { projection: { c: 1, _id: 0 } });
    if (document?.c?.length !== 119) missed++;
    done++;
  }
}
const all = (end) => Promise.all(Array.from({ length: clients }, () => ask(end)));

// The pool is filled and the code compiled before anything counts.
await all(performance.now() + 2000);
done = 0;
const before = process.cpuUsage();
const began = performance.now();
await all(began + seconds * 1000);
const { user, system } = process.cpuUsage(before);
const elapsed = (performance.now() - began) / 1000;
console.log(JSON.stringify({ rate: done / elapsed, cpu_us: (user + system) / done, missed }));
await client.close();
