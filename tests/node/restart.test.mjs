// A server that is stopped and started again under applications at work: drivers try their writes again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MongoClient } from "mongodb";
import { startServer } from "./server.mjs";

const WORKERS = 8;
const RESTARTS = 3;

test("no application sees a restart, and each of its writes is there once", async () => {
  const server = await startServer("--persona", "replica-set");
  const client = await new MongoClient(server.uri).connect();
  const rows = client.db("work").collection("rows");
  let isOver = false;
  const failures = [];
  const begun = Array(WORKERS).fill(0);
  const work = async (worker) => {
    for (let number = 0; !isOver; number++) {
      begun[worker] = number;
      try {
        await rows.insertOne({ worker, number });
        await rows.updateOne({ _id: `sum ${worker}` }, { $inc: { sum: 1 } }, { upsert: true });
      } catch (error) {
        failures.push(`${worker}, ${number}: ${error}`);
        return number;
      }
    }
  };
  // A driver tries a write again once. So the next restart waits until no write is left that met the last one.
  const allHaveGoneOn = async () => {
    const since = [...begun];
    while (failures.length === 0 && since.some((number, worker) => begun[worker] < number + 2)) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const workers = Array.from({ length: WORKERS }, (_, worker) => work(worker));
  for (let restart = 0; restart < RESTARTS; restart++) {
    await allHaveGoneOn();
    await server.restart();
  }
  await allHaveGoneOn();
  isOver = true;
  await Promise.all(workers);
  try {
    assert.deepEqual(failures, []);
    for (let worker = 0; worker < WORKERS; worker++) {
      const numbers = (await rows.find({ worker }).sort({ number: 1 }).toArray()).map((row) => row.number);
      assert.deepEqual(numbers, [...numbers.keys()], `worker ${worker}`);
      assert.equal((await rows.findOne({ _id: `sum ${worker}` })).sum, numbers.length);
    }
  } finally {
    await client.close();
    await server.stop();
  }
});
