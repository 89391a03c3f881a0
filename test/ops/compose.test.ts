import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

type Service = {
  image: string;
  build?: { context: string; dockerfile: string };
  command?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test?: string[]; disable?: boolean };
  volumes?: string[];
  ports?: string[];
  stop_grace_period?: string;
  read_only?: boolean;
  cap_drop?: string[];
};

const root = fileURLToPath(new URL("../..", import.meta.url));
const compose: { services: Record<string, Service>; volumes: Record<string, unknown> } = parse(
  readFileSync(`${root}/docker-compose.yml`, "utf8"),
  { merge: true },
);
const dockerfile = readFileSync(`${root}/ops/Dockerfile`, "utf8");
const ours = Object.entries(compose.services).filter(([, service]) => service.image === "punctual:local");
const lastingRoles = ["api", "scheduler", "relay", "sweeper", "sender", "worker"];

/** The Compose specification's own schema, as the linter dclint ships it. */
function composeSchema(): object {
  const packageJson = createRequire(import.meta.url).resolve("dclint/package.json");
  const schema = JSON.parse(readFileSync(packageJson.replace(/package\.json$/, "schemas/compose.schema.json"), "utf8"));
  // Ajv knows draft 7 under its http name only.
  return { ...schema, $schema: "http://json-schema.org/draft-07/schema#" };
}

const validate = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(composeSchema());

function seconds(duration: string): number {
  const [, minutes, rest] = /^(?:(\d+)m)?(?:(\d+)s)?$/.exec(duration) ?? [];
  return Number(minutes ?? 0) * 60 + Number(rest ?? 0);
}

describe("docker-compose.yml", () => {
  it("is what the Compose schema allows", () => {
    validate(compose);
    expect(validate.errors ?? []).toEqual([]);
  });

  it("would be refused with a misspelt key or a wrong type", () => {
    const api = { ...compose.services.api };
    expect(validate({ services: { api: { ...api, stop_grace_periods: "45s" } } })).toBe(false);
    expect(validate({ services: { api: { ...api, depends_on: { redis: { condition: "soon" } } } } })).toBe(false);
  });

  it("has every role, each started with its own command on the one image", () => {
    expect(ours.map(([name]) => name).sort()).toEqual(["migrate", ...lastingRoles].sort());
    for (const [name, service] of ours) {
      const command = name === "worker" ? ["node", "workers/worker.ts"] : ["node", "src/app/main.ts", name];
      expect(service.command, name).toEqual(command);
      expect(service.build, name).toEqual({ context: ".", dockerfile: "ops/Dockerfile" });
    }
  });

  it("migrates once, after PostgreSQL is healthy and before any role starts", () => {
    expect(compose.services.migrate?.depends_on).toEqual({ postgres: { condition: "service_healthy" } });
    for (const name of lastingRoles) {
      expect(compose.services[name]?.depends_on?.migrate?.condition, name).toBe("service_completed_successfully");
    }
  });

  it("asks every lasting role whether it is ready: the API on its own port, the others on the metrics port", () => {
    for (const name of lastingRoles) {
      const service = compose.services[name];
      const port = name === "api" ? service?.environment?.PUNCTUAL_PORT : service?.environment?.PUNCTUAL_METRICS_PORT;
      expect(service?.healthcheck?.test?.join(" "), name).toContain(`http://127.0.0.1:${port}/readyz`);
    }
    expect(compose.services.postgres?.healthcheck?.test).toContain("pg_isready");
    expect(compose.services.redis?.healthcheck?.test).toContain("redis-cli");
  });

  it("gives a stopping worker longer than its own grace of 30 s", () => {
    expect(seconds(compose.services.worker?.stop_grace_period ?? "")).toBeGreaterThan(30);
  });

  it("runs Redis so that it evicts nothing and writes a log, PostgreSQL so that committed is durable", () => {
    expect(compose.services.redis?.command?.join(" ")).toContain("--maxmemory-policy noeviction");
    expect(compose.services.redis?.command?.join(" ")).toContain("--appendonly yes");
    expect(compose.services.postgres?.command).toContain("synchronous_commit=on");
  });

  it("keeps data in named volumes and publishes ports on this machine only", () => {
    const used = Object.values(compose.services).flatMap((service) => service.volumes ?? []);
    const named = used.map((volume) => volume.split(":")[0]).filter((source) => !source?.startsWith("."));
    expect(new Set(named)).toEqual(new Set(Object.keys(compose.volumes)));
    const ports = Object.values(compose.services).flatMap((service) => service.ports ?? []);
    expect(ports.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
    expect([compose.services.postgres?.ports, compose.services.redis?.ports]).toEqual([undefined, undefined]);
  });

  it("gives our containers no rights they do not need", () => {
    for (const [name, service] of ours) {
      expect([name, service.read_only, service.cap_drop]).toEqual([name, true, ["ALL"]]);
    }
  });

  it("sets only variables that the configuration knows", async () => {
    const set = new Set(ours.flatMap(([, service]) => Object.keys(service.environment ?? {})));
    const config = `${root}/src/app/config.ts`;
    const module: { CONFIG_KEYS?: readonly string[] } = existsSync(config) ? await import(config) : {};
    const unknown = [...set].filter((key) =>
      module.CONFIG_KEYS === undefined
        ? !/^(DATABASE_URL|REDIS_URL|PUNCTUAL_[A-Z_]+)$/.test(key)
        : !module.CONFIG_KEYS.includes(key),
    );
    expect(unknown).toEqual([]);
  });
});

describe("ops/Dockerfile", () => {
  const instructions = dockerfile.split("\n").filter((line) => /^[A-Z]+ /.test(line));

  it("runs on Node 24, as nobody special", () => {
    expect(instructions.filter((line) => line.startsWith("FROM ")).every((line) => line.includes("node:24"))).toBe(
      true,
    );
    const user = instructions.findLastIndex((line) => line.startsWith("USER "));
    expect(instructions[user]).toBe("USER node");
    expect(user).toBeGreaterThan(instructions.findLastIndex((line) => line.startsWith("FROM ")));
  });

  it("copies only what exists and what its ignore file lets through", () => {
    const let_through = readFileSync(`${root}/ops/Dockerfile.dockerignore`, "utf8")
      .split("\n")
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1));
    const copied = instructions
      .filter((line) => line.startsWith("COPY ") && !line.includes("--from"))
      .flatMap((line) => line.split(" ").slice(1, -1));
    expect(copied.filter((path) => !let_through.includes(path) || !existsSync(`${root}/${path}`))).toEqual([]);
  });

  it("installs what the lock file says, without development packages", () => {
    expect(dockerfile).toMatch(/RUN npm ci --omit=dev/);
  });
});
