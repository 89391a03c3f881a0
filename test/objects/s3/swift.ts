import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { CreateBucketCommand, PutBucketVersioningCommand, S3Client } from "@aws-sdk/client-s3";
import { watchOver } from "../../../src/app/embedded/watchdog.ts";
import type { S3Server } from "./server.ts";

const SERVERS = ["account", "container", "object", "proxy"] as const;

/** Whether this machine has OpenStack Swift (Debian: swift-proxy, swift-account, swift-container, swift-object). */
export const swiftAvailable = SERVERS.every((name) =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, `swift-${name}-server`))),
);

/**
 * OpenStack Swift with its S3 API: strict about signatures and their life, with bucket versions. It has no conditional
 * PutObject. The four servers live no longer than this process.
 */
export async function startSwift(): Promise<S3Server> {
  const folder = mkdtempSync(join(tmpdir(), "punctual-swift-")); // it needs extended attributes, which tmpfs may lack
  mkdirSync(join(folder, "disks", "disk"), { recursive: true });
  const ports = Object.fromEntries(await Promise.all(SERVERS.map(async (name) => [name, await freePort()] as const)));
  writeFileSync(join(folder, "swift.conf"), HASHES);
  for (const name of SERVERS) {
    writeFileSync(join(folder, `${name}.conf`), configuration(name, ports[name]!, folder));
  }
  buildRings(folder, ports);
  const running = SERVERS.map((name) => {
    const child = spawn(`swift-${name}-server`, [join(folder, `${name}.conf`)], { stdio: "ignore", cwd: folder });
    const watchdog = watchOver(child.pid!, {
      ask: "KILL",
      insist: "KILL",
      ...(name === "proxy" ? { discard: folder } : {}),
    });
    return { name, child, watchdog };
  });
  const stop = async () => {
    for (const { child, watchdog } of running) {
      const exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
      watchdog.release();
      await exited;
      await watchdog.gone;
    }
  };
  try {
    await Promise.all(running.map(({ name, child }) => isUp(ports[name]!, () => child.exitCode === null)));
    const options = {
      endpoint: `http://127.0.0.1:${ports.proxy}`,
      region: "us-east-1",
      pathStyle: true,
      credentials: { accessKeyId: "test:tester", secretAccessKey: "testing" },
      bucket: "results",
    };
    const client = new S3Client({ ...options, forcePathStyle: true });
    await client.send(new CreateBucketCommand({ Bucket: options.bucket }));
    const VersioningConfiguration = { Status: "Enabled" } as const;
    await client.send(new PutBucketVersioningCommand({ Bucket: options.bucket, VersioningConfiguration }));
    client.destroy();
    return { options, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const HASHES = `[swift-hash]
swift_hash_path_suffix = test
swift_hash_path_prefix = test
[storage-policy:0]
name = gold
default = yes
`;

function configuration(name: string, port: number, folder: string): string {
  const shared = `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = ${userInfo().username}
swift_dir = ${folder}
devices = ${join(folder, "disks")}
mount_check = false
`;
  if (name !== "proxy") {
    return `${shared}[pipeline:main]
pipeline = healthcheck ${name}-server
[filter:healthcheck]
use = egg:swift#healthcheck
[app:${name}-server]
use = egg:swift#${name}
`;
  }
  const filters = [
    "catch_errors",
    "healthcheck",
    "cache",
    "s3api",
    "tempauth",
    "copy",
    "slo",
    "dlo",
    "versioned_writes",
  ];
  const settings: Record<string, string> = {
    cache: "memcache_servers = 127.0.0.1:1",
    tempauth: "user_test_tester = testing .admin",
    versioned_writes: "allow_object_versioning = true",
  };
  const uses: Record<string, string> = { cache: "memcache" };
  return `${shared}[pipeline:main]
pipeline = ${filters.join(" ")} symlink proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
${[...filters, "symlink"].map((filter) => `[filter:${filter}]\nuse = egg:swift#${uses[filter] ?? filter}\n${settings[filter] ?? ""}\n`).join("")}`;
}

// Starting swift-ring-builder nine times took longer than all the rest.
const RINGS = `
import sys
from swift.common.ring import RingBuilder
for arg in sys.argv[1:]:
    name, port = arg.split(":")
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "weight": 1, "ip": "127.0.0.1", "port": int(port), "device": "disk"})
    builder.rebalance()
    builder.get_ring().save(name + ".ring.gz")
`;

function buildRings(folder: string, ports: Readonly<Record<string, number>>): void {
  const wanted = SERVERS.filter((name) => name !== "proxy").map((name) => `${name}:${ports[name]}`);
  const built = spawnSync("/usr/bin/python3", ["-c", RINGS, ...wanted], { cwd: folder, encoding: "utf8" });
  if (built.status !== 0) throw new Error(`Swift's rings cannot be made: ${built.stderr}`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

async function isUp(port: number, isAlive: () => boolean): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/healthcheck`).catch(() => undefined);
    if (answer?.ok) return;
    if (!isAlive()) throw new Error("a Swift server ended at its start: run it by hand to see why");
    await setTimeout(100);
  }
}
