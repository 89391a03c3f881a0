import type { Command } from "commander";
import type { CalendarUse, Rule, ScheduleDraft } from "../../../client/types.ts";
import type { ClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { JOB_OPTION, JOB_OPTION_IS, readJob } from "./job-option.ts";
import { readJsonObject } from "./json-option.ts";
import { type RuleOptions, readRule, withRuleOptions } from "./rule-options.ts";
import { addSecrets, withSecretOption } from "./secret-options.ts";

/** What a schedule is made of, as options: shared by create and edit. */
export type FieldOptions = ClientOptions &
  RuleOptions & {
    name?: string;
    job?: string;
    payload?: string;
    secret?: string[];
    class?: string;
    label?: string[];
    calendar?: string[];
    set?: string;
  };

export function withFieldOptions(command: Command): Command {
  const named = withRuleOptions(command.option("--name <name>", "for people"))
    .option(JOB_OPTION, JOB_OPTION_IS)
    .option("--payload <json>", "what the job is given: a JSON object, or @file");
  return withSecretOption(named)
    .option("--class <class>", "short, long or memory")
    .option("--label <name=value...>", "to find it by; may be repeated")
    .option("--calendar <name=choice...>", "on days that calendar excludes: exclude or shift; the first one decides")
    .option("--set <json>", "further fields as the API takes them: effects, overlap, misfire, retry, …; or @file");
}

/** The fields that options ask for. `current` is the rule an edit starts from. */
export function readFields(options: FieldOptions, current?: Rule): Partial<ScheduleDraft> {
  const rule = readRule(options, current);
  return {
    ...(options.set === undefined ? {} : readSet(options.set)),
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(rule === undefined ? {} : { rule }),
    ...(options.job === undefined ? {} : { job: readJob(options.job) }),
    ...(options.class === undefined ? {} : { class: options.class }),
    ...(options.label === undefined ? {} : { labels: readLabels(options.label) }),
    ...(options.calendar === undefined ? {} : { calendars: readCalendars(options.calendar) }),
    ...readPayloadFields(options),
  };
}

/** The payload that options ask for, with its secrets. */
export function readPayloadFields({ payload, secret }: { payload?: string; secret?: string[] }) {
  const payloadJson = addSecrets(payload === undefined ? undefined : readPayload(payload), secret);
  return payloadJson === undefined ? {} : { payloadJson };
}

/** The text is checked and sent as it is: writing it anew would round large numbers before the API could refuse them. */
function readPayload(text: string): string {
  return readJsonObject("--payload", text, '{"period":"last-day"}');
}

export function readSet(text: string): Record<string, unknown> {
  const fields = JSON.parse(readJsonObject("--set", text, '{"overlap":{"policy":"skip"}}')) as Record<string, unknown>;
  if ("payload" in fields) throw new UsageError("--set: found payload; that one is given with --payload");
  return fields;
}

function readLabels(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const equals = text.indexOf("=");
      if (equals < 1) throw new UsageError(`--label: found "${text}"; allowed: name=value`);
      return [text.slice(0, equals), text.slice(equals + 1)];
    }),
  );
}

function readCalendars(texts: readonly string[]): CalendarUse[] {
  return texts.map((text) => {
    const [, name, onExcluded] = /^([^=]+)=(exclude|shift)$/.exec(text) ?? [];
    if (name === undefined) {
      throw new UsageError(`--calendar: found "${text}"; allowed: name=exclude or name=shift`);
    }
    return { name, onExcluded: onExcluded as CalendarUse["onExcluded"] };
  });
}
