import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { punctual } from "./punctual.ts";

const nowhere = { PUNCTUAL_DIR: makeTemporaryFolder("punctual-nowhere-") };
/** Makes Node say that it is one too old for the program, and unable to load it. */
const OLD = `
  import { registerHooks } from "node:module";
  Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } });
  registerHooks({
    load(url, context, next) {
      if (url.endsWith(".ts")) throw new Error("Unknown file extension .ts");
      return next(url, context);
    },
  });`;
const AS_OLD_NODE = ["--import", `data:text/javascript,${encodeURIComponent(OLD)}`];

test("help shows commands and examples, of the program and of a command", async () => {
  const program = await punctual(["--help"]);
  expect(program).toMatchObject({ exitCode: 0, err: "" });
  for (const name of ["up", "worker", "migrate", "doctor", "schedules", "runs"])
    expect(program.out).toMatch(new RegExp(`^  ${name}\\b`, "m"));
  expect(program.out).toContain("Examples:");
  const create = await punctual(["schedules", "create", "--help"]);
  expect(create).toMatchObject({ exitCode: 0, out: expect.stringContaining("Examples:") });
  const options = [...create.out.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => option);
  expect(options.at(0)).toBe("--name");
  const common = ["--json", "--url", "--key", "--tenant", "--help"];
  expect(options.slice(-5), "what every command has comes last").toEqual(common);
  expect(create.out).toMatch(/--set .*\s.*effects/);
  expect(await punctual([])).toMatchObject({ exitCode: 2, out: "", err: expect.stringContaining("Usage: punctual") });
});

test("a Node too old for the program hands over to the one of package.json, exit code and output included", async () => {
  const version = await punctual(["--version"], {}, AS_OLD_NODE);
  expect(version).toMatchObject({ exitCode: 0, err: "", out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  expect(await punctual(["nonsense"], {}, AS_OLD_NODE)).toMatchObject({ exitCode: 2, out: "" });
});

/** Servers and their clients are for commands that have a server: loading them takes longer than most commands do. */
const WITHOUT_SERVERS = `
  import { registerHooks } from "node:module";
  registerHooks({
    load(url, context, next) {
      if (/node_modules\\/(pg|bullmq|ioredis|express|pino|jose|undici|@aws-sdk)\\//.test(url)) throw new Error("loads " + url);
      return next(url, context);
    },
  });`;
const LIGHT = ["--import", `data:text/javascript,${encodeURIComponent(WITHOUT_SERVERS)}`];

test("no command loads what only others need", async () => {
  expect(await punctual(["--help"], {}, LIGHT)).toMatchObject({ exitCode: 0, err: "" });
  const refused = await punctual(["runs", "list"], nowhere, LIGHT);
  expect(refused).toMatchObject({ exitCode: 1, err: expect.stringContaining("nothing of this checkout is running") });
});

/** An address where somebody listened a moment ago. */
async function abandonedUrl(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}`;
}

test("where nothing runs, it says how to start it", async () => {
  const none = await punctual(["runs", "list"], nowhere);
  expect(none).toMatchObject({
    exitCode: 1,
    out: "",
    err: expect.stringMatching(
      /^punctual: nothing of this checkout is running \(PUNCTUAL_DIR is .+\)\. Start it with: npm start/,
    ),
  });
  const url = await abandonedUrl();
  const refused = await punctual(["runs", "list"], {
    ...nowhere,
    PUNCTUAL_URL: url,
    PUNCTUAL_KEY: "pk_x",
  });
  expect(refused).toMatchObject({
    exitCode: 1,
    err: `punctual: nothing answers at ${url}. Is it running? Start it with: npm start\n`,
  });
});

test("where nothing runs, the doctor says so once, what to do, and a command that looks again", async () => {
  const { out, exitCode } = await punctual(["doctor"], nowhere);
  expect(exitCode).toBe(2);
  expect(out).toMatch(/^UNKNOWN {2}the installation to examine: no system of this checkout is running/);
  expect(out).toMatch(/^ +do: npm start, or set DATABASE_URL\n +look again: punctual doctor$/m);
});

test("a setting that makes no sense is named, and a secret in it is not repeated", async () => {
  const { err, exitCode } = await punctual(["runs", "list"], { ...nowhere, PUNCTUAL_KEY: "pk_secret with spaces" });
  expect(exitCode).toBe(1);
  expect(err).toContain("PUNCTUAL_KEY");
  expect(err).not.toContain("secret with");
  const unknown = await punctual(["runs", "list"], { ...nowhere, PUNCTUAL_KYE: "x" });
  expect(unknown.err).toMatch(/PUNCTUAL_KYE: is no setting; did you mean PUNCTUAL_KEY\?$/m);
});

test("a role without a database says what it needs", async () => {
  const { err, exitCode } = await punctual(["worker"], nowhere);
  expect(exitCode).toBe(1);
  expect(err).toMatch(/^punctual: DATABASE_URL: is not set/);
  expect((await punctual(["migrate"], nowhere)).err).toMatch(/^punctual: DATABASE_URL: is not set/);
});
