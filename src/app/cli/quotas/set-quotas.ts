import type { Command } from "commander";
import type { Client } from "../../../client/client.ts";
import type { ClassQuota, TenantQuotas } from "../../../client/quotas.ts";
import type { Act } from "../act.ts";
import { printJson } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { printClassQuotas, printTenantQuotas } from "./print-quotas.ts";

type SetOptions = ClientOptions & Record<string, string | undefined> & { json?: boolean };

/** Options of the tenant's quotas and of a class's, with the fields that they set. */
const TENANT = {
  schedules: "schedules",
  minInterval: "minIntervalMs",
  payloadBytes: "payloadBytes",
  queuedRuns: "queuedRuns",
  runsPerDay: "requestedRunsPerDay",
  apiRate: "apiRatePerSecond",
  apiBurst: "apiBurst",
} as const;
/** What is never without a limit, so that "none" would mean nothing. */
const ALWAYS: ReadonlySet<string> = new Set(["apiRate", "apiBurst", "weight"]);
const CLASS = { maxRunning: "maxRunning", startRate: "startRatePerSecond", weight: "weight" } as const;

export function setQuotasCommand(group: Command, act: Act): void {
  withClientOptions(
    group.command("set").description("set what is given and leave the rest as it is; needs a key of the role admin"),
  )
    .option("--schedules <n>", 'most schedules that are not deleted; "none" for no limit, here and below')
    .option("--min-interval <ms>", "least time between two instants of a schedule; a whole number of milliseconds")
    .option("--payload-bytes <n>", "most bytes of a payload")
    .option("--queued-runs <n>", "most runs that wait, when another is asked for")
    .option("--runs-per-day <n>", "most runs of a UTC day that somebody asked for")
    .option("--api-rate <n>", "most calls a second; there is always a limit")
    .option("--api-burst <n>", "most calls beyond the rate in a minute; there is always a limit")
    .option("--class <class>", "the class that the options below are about")
    .option("--max-running <n>", "most attempts at once")
    .option("--start-rate <n>", "most starts a second")
    .option("--weight <n>", "share of the slots beside other tenants, 1 to 1000; there is always one")
    .option("--on-infeasible <policy>", "of schedules whose runs could not start in time: accept, warn or refuse")
    .action(
      act(async (config, options: SetOptions) => {
        const ofTenant = readNumbers(options, TENANT);
        const ofClass = {
          ...readNumbers(options, CLASS),
          ...(options.onInfeasible === undefined ? {} : { onInfeasible: options.onInfeasible }),
        };
        const isOfClass = Object.keys(ofClass).length > 0;
        if (isOfClass !== (options.class !== undefined)) throw new UsageError(missing(isOfClass));
        if (!isOfClass && Object.keys(ofTenant).length === 0) throw new UsageError("nothing is given to be set");
        const client = clientFor(options, config);
        const answer = {
          ...(Object.keys(ofTenant).length > 0 ? { tenant: await setTenant(client, ofTenant) } : {}),
          ...(isOfClass ? { classes: { [options.class!]: await setClass(client, options.class!, ofClass) } } : {}),
        };
        if (options.json) return printJson(answer);
        if (answer.tenant !== undefined) printTenantQuotas(answer.tenant);
        if (answer.classes !== undefined) printClassQuotas(answer.classes);
      }),
    );
}

function missing(isOfClass: boolean): string {
  return isOfClass
    ? "--class: is missing; --max-running, --start-rate, --weight and --on-infeasible are about one class"
    : "--class: nothing is given to be set for the class; allowed: --max-running, --start-rate, --weight, --on-infeasible";
}

async function setTenant(client: Client, change: object): Promise<TenantQuotas> {
  const { classes: _classes, version, ...current } = await client.quotas.get();
  return client.quotas.set({ ...current, ...change, expectedVersion: version });
}

async function setClass(client: Client, class_: string, change: object): Promise<ClassQuota> {
  const { version = 0, ...current } = (await client.quotas.get()).classes[class_] ?? {};
  return client.quotas.setClass(class_, { ...current, ...change, expectedVersion: version });
}

function readNumbers(options: SetOptions, fields: Readonly<Record<string, string>>): Record<string, number | null> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([option, field]): [string, number | null][] => {
      const text = options[option];
      if (text === undefined) return [];
      if (text === "none" && !ALWAYS.has(option)) return [[field, null]];
      if (/^\d{1,12}$/.test(text)) return [[field, Number(text)]];
      const name = option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      throw new UsageError(
        `--${name}: found "${text}"; allowed: a whole number${ALWAYS.has(option) ? "" : ", or none"}`,
      );
    }),
  );
}
