import type { Command } from "commander";
import type { Config } from "../../config.ts";
import type { Act } from "../act.ts";
import { printJson, printLine, printNote } from "../print.ts";
import { type ClientOptions, targetOf, withClientOptions } from "../target.ts";
import { EXIT, UsageError } from "../usage.ts";
import { type Check, type Outcome, runChecks } from "./check.ts";
import { type Child, startChild } from "./child.ts";
import { startProxy } from "./proxy.ts";
import { SERVER_CHECKS } from "./server-checks.ts";
import { SERVER_REFUSALS } from "./server-refusals.ts";
import { type Stage, withStage } from "./stage.ts";
import { WORKER_CHECKS } from "./worker-checks.ts";

type Options = ClientOptions & {
  worker?: true;
  otherKey?: string;
  listen: string;
  run?: string;
  patience: string;
  environment: Readonly<Record<string, string | undefined>>;
};

/** Holds a server, or a worker of any language, against the protocol of remote workers. */
export function conformanceCommand(
  program: Command,
  act: Act,
  environment: Readonly<Record<string, string | undefined>>,
): void {
  withClientOptions(
    program.command("conformance").description("check a server, or a worker, against the protocol of remote workers"),
  )
    .option("--other-key <key>", "the key of a worker of another tenant, to check that it gets nothing")
    .option("--worker", "check a worker: docs/remote-workers.md says which jobs it must have")
    .option("--run <command>", "start this worker, one command, with PUNCTUAL_URL and PUNCTUAL_KEY (implies --worker)")
    .option("--listen <port>", "where a worker that is started elsewhere finds us (0: any free port)", "0")
    .option("--patience <seconds>", "how long a worker may take for each step", "30")
    .addHelpText(
      "after",
      `
It needs the key of an owner: it makes a key for a worker, runs of jobs that nobody else has, and revokes the key. It takes
less than a minute. Exits with 1 where a check fails.
Some of these runs fail on purpose. Their dead letters are dismissed at the end, but the tenant's webhooks may hear of them
and its numbers show them: use a tenant of its own.

Examples:
  punctual conformance
  punctual conformance --run "python3 ops/examples/python/conformance_jobs.py"
  punctual conformance --worker --listen 4010        # and start your worker with http://127.0.0.1:4010`,
    )
    .action(act((config: Config, options: Options) => conform(config, { ...options, environment })));
}

async function conform(config: Config, options: Options): Promise<number> {
  const target = targetOf(options, config);
  const outcomes = await withStage(target, options.otherKey, (stage) =>
    options.worker || options.run !== undefined
      ? checkWorker(stage, options)
      : runChecks([...SERVER_CHECKS, ...SERVER_REFUSALS], stage, options.json === true),
  );
  const failed = outcomes.filter((one) => one.outcome === "fail").length;
  if (options.json) printJson({ checks: outcomes, failed });
  else printLine(failed === 0 ? "It conforms." : `${failed} of ${outcomes.length} checks failed.`);
  return failed === 0 ? EXIT.ok : EXIT.failed;
}

async function checkWorker(stage: Stage, options: Options): Promise<Outcome[]> {
  const proxy = await startProxy(stage.url, readNumber("--listen", options.listen, 65_535));
  const patienceMs = readNumber("--patience", options.patience, 3_600) * 1_000;
  printNote(`The worker's PUNCTUAL_URL is ${proxy.url}`);
  const child =
    options.run === undefined
      ? undefined
      : startChild(options.run, { ...options.environment, PUNCTUAL_URL: proxy.url, PUNCTUAL_KEY: stage.workerKey });
  try {
    const checks = child === undefined ? WORKER_CHECKS : WORKER_CHECKS.map((one) => endingWith(child, one));
    return await runChecks(checks, { ...stage, proxy, child, patienceMs }, options.json === true);
  } finally {
    child?.terminate();
    await child?.exit(5_000).catch(() => undefined);
    await proxy.close();
  }
}

/** The same check, failed at once where there is no worker any more. */
function endingWith<S>(child: Child, { name, run }: Check<S>): Check<S> {
  return { name, run: (stage) => Promise.race([run(stage), child.untimely]) };
}

function readNumber(option: string, text: string, most: number): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= most) return Number(text);
  throw new UsageError(`${option}: found "${text}"; allowed: a whole number up to ${most}`);
}
