import type { Command } from "commander";
import type { Act } from "../act.ts";
import { printJson, printLine } from "../print.ts";
import { readJob, readPayloadFields, readSet } from "../schedules/field-options.ts";
import { withSecretOption } from "../schedules/secret-options.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";

type CreateOptions = ClientOptions & {
  job?: string;
  payload?: string;
  secret?: string[];
  class?: string;
  set?: string;
  idempotencyKey?: string;
};

export function createRunCommand(group: Command, act: Act): void {
  withSecretOption(withClientOptions(group.command("create").description("run a job once, without a schedule")))
    .usage("--job <name@version> [options]")
    .option("--job <name@version>", "what: a registered job, such as report.run-summary@1")
    .option("--payload <json>", "what the job is given: a JSON object, or @file")
    .option("--class <class>", "short, long or memory")
    .option("--set <json>", "further fields as the API takes them, such as retry; or @file")
    .option("--idempotency-key <key>", "a second call with this key answers the run that the first one made")
    .action(
      act(async (config, options: CreateOptions) => {
        if (options.job === undefined) throw new UsageError("--job <name@version>: not given, and required");
        const draft = {
          ...(options.set === undefined ? {} : readSet(options.set)),
          job: readJob(options.job),
          ...(options.class === undefined ? {} : { class: options.class }),
          ...readPayloadFields(options),
        };
        const made = await clientFor(options, config).runs.create(draft, options.idempotencyKey);
        if (options.json) return printJson(made);
        printLine(`Made ${made.runId} (${made.state}); follow it: punctual runs watch ${made.runId}`);
      }),
    );
}
