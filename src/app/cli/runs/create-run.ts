import type { Command } from "commander";
import type { Act } from "../act.ts";
import { printJson, printLine } from "../print.ts";
import { readPayloadFields, readSet } from "../schedules/field-options.ts";
import { JOB_OPTION, JOB_OPTION_IS, readJob } from "../schedules/job-option.ts";
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
    .usage(`${JOB_OPTION} [options]`)
    .option(JOB_OPTION, JOB_OPTION_IS)
    .option("--payload <json>", "what the job is given: a JSON object, or @file")
    .option("--class <class>", "short, long or memory")
    .option("--set <json>", "further fields as the API takes them, such as retry; or @file")
    .option("--idempotency-key <key>", "a second call with this key answers the run that the first one made")
    .action(
      act(async (config, options: CreateOptions) => {
        if (options.job === undefined) throw new UsageError(`${JOB_OPTION}: not given, and required`);
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
