import type { Command } from "commander";
import type { Rule } from "../../../client/types.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { durationMs, readDuration } from "../duration.ts";
import { UsageError } from "../usage.ts";
import { readJsonObject } from "./json-option.ts";

export type RuleOptions = {
  cron?: string;
  tz?: string;
  every?: string;
  anchor?: string;
  at?: string[];
  afterCompletion?: string;
  rule?: string;
};

/** The ways to say when runs are due; one of them is given. */
const RULE_FLAGS = "--cron, --every, --at, --after-completion or --rule";

export function withRuleOptions(command: Command): Command {
  return command
    .option("--cron <expression>", 'when: five fields, such as "0 9 * * 1-5", or a macro such as @daily')
    .option("--tz <zone>", "whose clock: an IANA zone, such as America/New_York or Etc/UTC")
    .option("--every <duration>", "when: every so much elapsed time, such as 90s, 15m, 6h or 1d")
    .option("--anchor <instant>", "of --every: the first instant (default: now)")
    .option("--at <instant...>", "when: once, or at each of several instants; local times with --tz")
    .option("--after-completion <duration>", "when: so long after the run before has ended")
    .option("--rule <json>", "when: a rule as the API takes it, or @file");
}

/** The rule that options ask for; undefined: none. `current` is what an edit starts from. */
export function readRule(options: RuleOptions, current?: Rule): Rule | undefined {
  const { cron, every, at, afterCompletion, rule, tz, anchor } = options;
  const given = [cron, every, at, afterCompletion, rule].filter((one) => one !== undefined);
  if (given.length > 1) throw new UsageError(`${RULE_FLAGS}: found ${given.length} of them; allowed: one`);
  if (anchor !== undefined && every === undefined) throw new UsageError("--anchor: found without --every");
  if (tz !== undefined && (every ?? afterCompletion ?? rule) !== undefined) {
    throw new UsageError("--tz: found with a rule that has no clock of that kind; allowed: with --cron or --at");
  }
  if (cron !== undefined) return cronRule(cron, tz, current);
  if (every !== undefined) return { kind: "interval", ...readEvery(every), anchorAt: anchor ?? nowText() };
  if (at !== undefined) return atRule(at, tz);
  if (afterCompletion !== undefined) {
    return { kind: "afterCompletion", delayMs: durationMs("--after-completion", afterCompletion) };
  }
  if (rule !== undefined)
    return JSON.parse(readJsonObject("--rule", rule, '{"kind":"once","at":"2027-01-01T09:00:00Z"}'));
  if (tz === undefined) return undefined;
  if (current?.kind === "cron") return { ...current, zone: tz };
  throw new UsageError(`--tz: found without a rule; allowed: with --cron or --at`);
}

function cronRule(expression: string, tz: string | undefined, current: Rule | undefined): Rule {
  // An edit of the expression keeps what else the rule says.
  if (current?.kind === "cron") return { ...current, expression, ...(tz === undefined ? {} : { zone: tz }) };
  if (tz === undefined) throw new UsageError("--tz <zone>: not given, and required with --cron (--help says more)");
  return { kind: "cron", expression, zone: tz };
}

function atRule(at: readonly string[], tz: string | undefined): Rule {
  const zone = tz === undefined ? {} : { zone: tz };
  return at.length === 1 ? { kind: "once", at: at[0], ...zone } : { kind: "dates", at, ...zone };
}

const UNITS = { s: "seconds", m: "minutes", h: "hours", d: "days" } as const;

function readEvery(text: string) {
  const { n, unit } = readDuration("--every", text);
  return { every: { n, unit: UNITS[unit] } };
}

/** To the second: people read it again. */
function nowText(): string {
  return new Date(Math.floor(systemClock.now() / 1000) * 1000).toISOString().replace(".000Z", "Z");
}
