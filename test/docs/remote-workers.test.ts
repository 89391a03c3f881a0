import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { PROBLEMS } from "../../src/api/problems/catalogue.ts";
import { ROUTES } from "../../src/api/table.ts";
import { grantSchema } from "../../src/api/worker/grants.ts";
import { WORKER_CHECKS } from "../../src/app/cli/conformance/worker-checks.ts";
import { reports } from "./reports-worker.ts";
import { codeIn, root, tableIn } from "./table.ts";

const PAGE = "docs/remote-workers.md";
const page = readFileSync(`${root}/${PAGE}`, "utf8");
const namesIn = (heading: string) => tableIn(PAGE, heading).flatMap(([name]) => codeIn(name));

it("docs/remote-workers.md has every call of the protocol", () => {
  const calls = ROUTES.filter(({ path }) => path.startsWith("/v1/worker/")).map(({ path }) => path.slice(11));
  const told = namesIn("call").map((name) => name.replace(/^PUT |\?.*$/g, ""));
  expect([...new Set(told)].toSorted()).toEqual([...new Set(calls)].toSorted());
});

it("docs/remote-workers.md has every field of a grant, and refusals by their status", () => {
  expect(namesIn("field").toSorted()).toEqual(Object.keys(grantSchema.shape).toSorted());
  for (const [refusal = ""] of tableIn(PAGE, "refusal")) {
    const [, status, code] = /^(\d+) `([\w-]+)`$/.exec(refusal)!;
    expect([code, PROBLEMS[code as keyof typeof PROBLEMS].status]).toEqual([code, Number(status)]);
  }
});

it("docs/remote-workers.md quotes a worker that compiles, and the jobs that conformance asks for", () => {
  const example = readFileSync(`${root}/test/docs/reports-worker.ts`, "utf8").replaceAll(
    "../../src/client/",
    "./punctual/",
  );
  expect(page).toContain(`\`\`\`ts\n${example}\`\`\``);
  expect(reports.running).toBe(0);
  const jobs = readFileSync(`${root}/ops/examples/python/conformance_jobs.py`, "utf8");
  const asked = namesIn("job");
  expect(asked).toHaveLength(3);
  for (const job of asked) expect(jobs).toContain(`"${job}"`);
  expect(WORKER_CHECKS.length).toBe(9);
});

it("the files of PunctualWorker that the page has people copy import nothing but each other and Node's own modules", () => {
  const folder = `${root}/src/client`;
  const copied = [...readdirSync(`${folder}/worker`).map((name) => `worker/${name}`), "http.ts", "errors.ts"];
  expect(page).toContain("src/client/{worker,http.ts,errors.ts} punctual/");
  for (const name of copied) {
    const imports = readFileSync(`${folder}/${name}`, "utf8").matchAll(/ from "([^"]+)";$/gm);
    for (const [, from = ""] of imports) {
      if (from.startsWith("node:")) continue;
      expect(copied, `${name} imports ${from}`).toContain(join(dirname(name), from));
    }
  }
});

it("the worker in Python is short, needs nothing but the standard library, and says what else it needs", () => {
  const worker = readFileSync(`${root}/ops/examples/python/worker.py`, "utf8");
  expect(worker.split("\n").length - 1).toBeLessThan(150);
  const { status, stderr } = spawnSync("python3", ["-B", `${root}/ops/examples/python/worker.py`], {
    env: { PATH: process.env.PATH ?? "" },
  });
  if (status !== null)
    expect([status, String(stderr)]).toEqual([
      1,
      expect.stringMatching(/^PUNCTUAL_URL and PUNCTUAL_KEY are needed: .*\n$/),
    ]);
  const modules = [...worker.matchAll(/^import (.*)$/gm)].flatMap(([, names]) => names!.split(/, /));
  const standard = ["http", "json", "os", "random", "signal", "socket", "threading", "time", "uuid", "urllib"];
  expect([...new Set(modules.map((name) => name.split(".")[0]!))].toSorted()).toEqual(standard.toSorted());
});
