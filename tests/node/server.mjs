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

/** The flags of ENGINE; a store in a TiKV cluster is named after the folder. */
function engineFlags(folder) {
  const engine = process.env.ENGINE;
  if (!engine) return [];
  const keyspace = path.basename(folder).toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  return ["--engine", engine, ...(engine === "tikv" ? ["--pd", process.env.PANDO_TIKV_PD, "--keyspace", keyspace] : [])];
}

/** A process that serves a folder on a port, as soon as it accepts connections. */
async function launch(folder, port, options) {
  const flags = ["--data", path.join(folder, "data"), "--listen", `127.0.0.1:${port}`, ...engineFlags(folder), ...options];
  const child = spawn(PANDO, ["serve", ...flags], {
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
  const port = await freePort();
  let child = await launch(folder, port, options);
  return {
    port,
    uri: `mongodb://127.0.0.1:${port}/?directConnection=true`,
    /** Stops it cleanly, and starts it on the same port again. */
    async restart() {
      await child.terminate();
      child = await launch(folder, port, options);
    },
    async stop() {
      try {
        await child.terminate();
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}
