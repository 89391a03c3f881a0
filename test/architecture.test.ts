import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import * as rules from "./architecture/rules.ts";
import { parseSource, readSources } from "./architecture/source.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Per rule: files that must be refused (each on its own), and files that must be let through. */
const RULES: Record<string, { rule: rules.Rule; refuses: Record<string, string>; allows: Record<string, string> }> = {
  "a folder imports only what the table allows": {
    rule: rules.foldersImportOnlyWhatTheTableAllows,
    refuses: {
      "src/kernel/a.ts": 'import type { X } from "../domain/x.ts";',
      "src/domain/a.ts": 'export { x } from "../store/x.ts";',
      "src/store/a.ts": 'export * from "../authority/x.ts";',
      "src/loops/a.ts": 'import { x } from "../dispatch/x.ts";',
      "src/loops/b.ts": 'import { x } from "../store/x.ts";',
      "src/dispatch/a.ts": 'type X = import("../api/x.ts").X;',
      "src/api/routes/runs/get.ts": 'const x = await import("../../../loops/x.ts");',
      "src/api/a.ts": 'import { x } from "../store/endings.ts";',
      "src/handlers/a.ts": 'import "../authority/x.ts";',
      "src/client/a.ts": 'import { x } from "../kernel/x.ts";',
      "src/app/a.ts": 'import { x } from "../../test/support/x.ts";',
      "src/unheard-of/a.ts": 'import { x } from "../kernel/x.ts";',
      "workers/a.ts": 'import { x } from "../src/dispatch/x.ts";',
    },
    allows: {
      "src/kernel/a.ts": 'import { x } from "./x.ts";',
      "src/domain/recurrence/a.ts": 'import { x } from "../../kernel/x.ts";',
      "src/api/a.ts": '// import { x } from "../loops/x.ts";\nimport { x } from "../authority/x.ts";',
      "src/api/b.ts": 'import { x } from "../store/reads/x.ts";',
      "src/app/a.ts": 'import { x } from "../dispatch/x.ts";',
      "workers/a.ts": 'import { x } from "../src/app/x.ts";',
      "test/a.test.ts": 'import { x } from "../src/store/x.ts";',
    },
  },
  "a package is imported only where it is at home": {
    rule: rules.packagesStayAtHome,
    refuses: {
      "src/authority/a.ts": 'import type { Request } from "express";',
      "src/authority/b.ts": 'import pg from "pg";',
      "src/api/a.ts": 'import knex from "knex";',
      "src/dispatch/a.ts": 'import { Worker } from "bullmq";',
      "src/app/a.ts": 'import { Redis } from "ioredis";',
      "src/domain/a.ts": 'import { DateTime } from "luxon";',
      "src/api/b.ts": 'import { CronExpressionParser } from "cron-parser";',
      "src/store/a.ts": 'import { z } from "zod/v4";',
      "src/api/c.ts": 'import { createBullBoard } from "@bull-board/api/bullMQAdapter";',
      "src/kernel/a.ts": 'import left from "left-pad";',
    },
    allows: {
      "src/api/a.ts": 'import express from "express";',
      "src/store/a.ts": 'import pg from "pg";\nimport knex from "knex";',
      "src/hints/a.ts": 'import { Queue } from "bullmq";\nimport { Redis } from "ioredis";',
      "src/handlers/queue.ts": 'import { Queue } from "bullmq";',
      "src/domain/recurrence/a.ts": 'import { DateTime } from "luxon";',
      "src/domain/a.ts": 'import { z } from "zod";\nimport { createHash } from "node:crypto";',
      "test/a.test.ts": 'import pg from "pg";',
    },
  },
  "the domain does no input or output": {
    rule: rules.theDomainDoesNoInputOrOutput,
    refuses: {
      "src/domain/a.ts": 'import { readFileSync } from "node:fs";',
      "src/domain/recurrence/b.ts": 'import { request } from "node:http";',
    },
    allows: {
      "src/domain/a.ts": 'import { createHash } from "node:crypto";',
      "src/objects/a.ts": 'import { readFileSync } from "node:fs";',
    },
  },
  "time, chance and environment are passed in": {
    rule: rules.timeChanceAndEnvironmentArePassedIn,
    refuses: {
      "src/loops/a.ts": "const now = Date.now();",
      "src/loops/b.ts": "const clock = Date.now;",
      "src/api/a.ts": "const now = new Date();",
      "src/api/b.ts": "const now = new globalThis.Date();",
      "src/dispatch/a.ts": "setTimeout(() => {}, 5);",
      "src/dispatch/b.ts": "globalThis.setInterval(() => {}, 5);",
      "src/hints/a.ts": 'import { setTimeout as sleep } from "node:timers/promises";',
      "src/domain/a.ts": "const chance = Math.random();",
      "src/domain/b.ts": 'const chance = Math["random"]();',
      "src/app/main.ts": "const url = process.env.DATABASE_URL;",
      "workers/a.ts": "const url = process.env.DATABASE_URL;",
      "workers/b.ts": 'import { env } from "node:process";',
    },
    allows: {
      "src/kernel/clock.ts": "const now = Date.now();",
      "src/app/config.ts": "const url = process.env.DATABASE_URL;",
      "src/app/embedded/a.ts": "setTimeout(() => {}, 5);",
      "src/api/a.ts": "const at = new Date(5).toISOString(); // not Date.now()",
      "src/api/b.ts": 'const text = "Date.now() and process.env"; clock.setTimeout(() => {});',
      "test/a.test.ts": "const now = Date.now();",
    },
  },
  "there are no default exports": {
    rule: rules.noDefaultExports,
    refuses: { "src/a.ts": "export default 3;", "src/b.ts": "const x = 3; export { x as default };" },
    allows: { "src/a.ts": "export const x = 3;" },
  },
  "there are no enums": {
    rule: rules.noEnums,
    refuses: { "src/a.ts": "enum Color { Red }", "src/b.ts": "export const enum Color { Red }" },
    allows: { "src/a.ts": 'export type Color = "red"; // enum' },
  },
  "there are no barrels": {
    rule: rules.noBarrels,
    refuses: { "src/api/index.ts": "export const x = 3;" },
    allows: { "src/api/server.ts": "export const x = 3;" },
  },
  "every test runs": {
    rule: rules.everyTestRuns,
    refuses: {
      "test/a.test.ts": 'it.only("x", () => {});',
      "test/b.test.ts": 'describe.skip("x", () => {});',
      "test/c.test.ts": 'test.todo("x");',
      "test/d.test.ts": 'it.concurrent.only.each([1])("x", () => {});',
      "test/e.test.ts": 'it("x", { skip: true }, () => {});',
    },
    allows: { "test/a.test.ts": 'it("has no .skip", () => {}); list.skip(3); it.each([1])("x", () => {});' },
  },
  "files stay short": {
    rule: rules.filesStayShort,
    refuses: { "src/a.ts": "\n".repeat(300).concat("1;"), "workers/a.ts": "\n".repeat(20).concat("1;") },
    allows: { "src/a.ts": "\n".repeat(299).concat("1;\n"), "test/a.test.ts": "\n".repeat(400).concat("1;") },
  },
};

describe("the house", () => {
  const sources = readSources(root, ["src", "workers", "test"]);

  it.each(Object.entries(RULES))("%s", (_, { rule }) => {
    expect(rule(sources)).toEqual([]);
  });

  it("has no folder with more than 20 files", () => {
    expect(rules.foldersStaySmall(sources)).toEqual([]);
  });
});

describe("the rules of the house can be broken", () => {
  it.each(Object.entries(RULES))(
    "%s: what breaks it is found, what keeps it passes",
    (_, { rule, refuses, allows }) => {
      for (const [path, text] of Object.entries(refuses)) {
        expect(rule([parseSource(path, text)]), `${path}: ${text}`).toHaveLength(1);
      }
      for (const [path, text] of Object.entries(allows)) {
        expect(rule([parseSource(path, text)]), `${path}: ${text}`).toEqual([]);
      }
    },
  );

  it("a folder of 21 files is found, one of 20 passes", () => {
    const files = Array.from({ length: 21 }, (_, i) => parseSource(`src/api/f${i}.ts`, ""));
    expect(rules.foldersStaySmall(files)).toHaveLength(1);
    expect(rules.foldersStaySmall(files.slice(1))).toEqual([]);
  });
});
