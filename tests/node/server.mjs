// A real `pando serve` process for tests, on a free port, over a folder of its own.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";

const PANDO = process.env.PANDO;
if (!PANDO) throw new Error("PANDO must name the server's binary");

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function connects(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
}

/** The flags of ENGINE; a store in a TiKV cluster is named after the folder. `tikv-pair` is two servers of one store. */
function engineFlags(folder, isOneOfTwo) {
  const engine = process.env.ENGINE;
  if (!engine) return [];
  if (!engine.startsWith("tikv")) return ["--engine", engine];
  const keyspace = path.basename(folder).toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  const several = isOneOfTwo ? ["--engine-option", "servers=several"] : [];
  return ["--engine", "tikv", "--pd", process.env.PANDO_TIKV_PD, "--keyspace", keyspace, ...several];
}

/** A process that serves a folder on a port, as soon as it accepts connections. */
async function launch(data, port, flags) {
  const child = spawn(PANDO, ["serve", "--data", data, "--listen", `127.0.0.1:${port}`, ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (chunk) => (log += chunk));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  for (let tries = 0; !(await connects(port)); tries++) {
    if (child.exitCode !== null || tries > 3000) throw new Error(`pando did not start:\n${log}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    async terminate() {
      child.kill("SIGTERM");
      const code = await ended;
      if (code !== 0 || log.includes("panicked")) throw new Error(`pando ended with ${code}:\n${log}`);
    },
  };
}

export async function startServer(...options) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "pando-node-"));
  // Two servers that each call themselves the primary of a set are none for a driver.
  const isPair = process.env.ENGINE === "tikv-pair" && !options.includes("--persona");
  const flags = [...engineFlags(folder, isPair), ...options];
  const places = [{ data: path.join(folder, "data"), port: await freePort() }];
  if (isPair) places.push({ data: path.join(folder, "other"), port: await freePort() });
  const launchAll = () => Promise.all(places.map(({ data, port }) => launch(data, port, flags)));
  const terminateAll = (children) => Promise.all(children.map((child) => child.terminate()));
  let children = await launchAll();
  const addresses = places.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return {
    port: places[0].port,
    uri: `mongodb://${addresses}/${isPair ? "" : "?directConnection=true"}`,
    /** Stops it cleanly, and starts it on the same port again. */
    async restart() {
      await terminateAll(children);
      children = await launchAll();
    },
    async stop() {
      try {
        await terminateAll(children);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}
