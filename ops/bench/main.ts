import { execFileSync } from "node:child_process";
import { cpus, totalmem } from "node:os";
import { BURST, burst } from "./burst.ts";
import { calendar } from "./calendar.ts";
import { FAIR, fair } from "./fair.ts";
import { OUTAGE, outage } from "./outage.ts";
import { peers } from "./peers.ts";

/**
 * `npm run bench -- burst|peers [--runs N] [--tenants N] [--workers N] [--slots N] [--warmup N] [--json]`,
 * `npm run bench -- outage [--schedules N] [--on-time N] [--tenants N] [--workers N] [--slots N] [--json]`.
 * `npm run bench -- fair [--queued N] [--small N] [--seconds N] [--run-ms N] [--workers N] [--slots N] [--json]`,
 * `npm run bench -- calendar [--json]`.
 * Exits 1 when a run was lost, doubled or is unaccounted for.
 */
const [name, ...args] = process.argv.slice(2);
const json = args.includes("--json");

function option(flag: string, fallback: number): number {
  const at = args.indexOf(`--${flag}`);
  return at === -1 ? fallback : Number(args[at + 1]);
}

const options = {
  runs: option("runs", BURST.runs),
  tenants: option("tenants", BURST.tenants),
  workers: option("workers", BURST.workers),
  slots: option("slots", BURST.slots),
  warmup: option("warmup", BURST.warmup),
};

const BENCHES: Record<string, () => Promise<{ ok: boolean }>> = {
  burst: () => burst(options),
  peers: () => peers(options),
  calendar,
  fair: () =>
    fair({
      queued: option("queued", FAIR.queued),
      small: option("small", FAIR.small),
      seconds: option("seconds", FAIR.seconds),
      runMs: option("run-ms", FAIR.runMs),
      workers: option("workers", FAIR.workers),
      slots: option("slots", FAIR.slots),
    }),
  outage: () =>
    outage({
      tenants: option("tenants", OUTAGE.tenants),
      workers: option("workers", OUTAGE.workers),
      slots: option("slots", OUTAGE.slots),
      schedules: option("schedules", OUTAGE.schedules),
      onTime: option("on-time", OUTAGE.onTime),
    }),
};
const bench = BENCHES[name ?? ""];
if (bench === undefined) {
  console.error(`bench: found ${JSON.stringify(name ?? "")}; allowed: ${Object.keys(BENCHES).join(", ")}`);
  process.exit(2);
}
const result = await bench();
const full = {
  ...result,
  machine: { cpus: cpus().length, model: cpus()[0]?.model, memory: totalmem() },
  commit: commit(),
};
if (json) console.log(JSON.stringify(full));
else console.dir(full, { depth: 4 });
process.exit(result.ok ? 0 : 1);

function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
}
