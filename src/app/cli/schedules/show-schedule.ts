import type { ChangePreview } from "../../../client/previews.ts";
import type { Schedule } from "../../../client/types.ts";
import { definitionSchema } from "../../../domain/definition.ts";
import { effectSchema } from "../../../domain/effects/definition.ts";
import { printFields, printLine, printTable } from "../print.ts";
import { showCount, showJob, showNext, showRule, showUtc } from "../words.ts";
import { differing, type Fields, isFields, showValue } from "./chosen.ts";
import { changeRows, jobChanges, showJobFields } from "./job-fields.ts";

/** What a definition says of itself, and what is shown by lines of its own. */
const SHOWN_APART = ["rule", "job", "class", "calendars", "effects"];
const FURTHER = Object.keys(definitionSchema.shape).filter((name) => !SHOWN_APART.includes(name));
const NOTHING_CHOSEN: Fields = definitionSchema.parse({
  rule: { kind: "cron", expression: "@daily", zone: "UTC" },
  job: { kind: "function", name: "any" },
});
const PLAIN_EFFECTS: readonly Fields[] = [
  effectSchema.parse({ kind: "email", name: "any", to: ["a@example.com"], subject: "any" }),
  effectSchema.parse({ kind: "webhook", name: "any", url: "https://example.com" }),
];
/** An effect is nothing without these. */
const OF_AN_EFFECT = ["to", "subject", "url"];

export function printSchedule(schedule: Schedule): void {
  printFields({
    schedule: schedule.scheduleId,
    key: schedule.key,
    name: schedule.name,
    status: schedule.status,
    rule: showWholeRule(schedule),
    "next run": showNext(schedule),
    "tried again": showUtc(schedule.fault?.retryAt ?? null),
    job: showJob(schedule.job),
    ...showJobFields(schedule.job),
    payload: JSON.stringify(schedule.payload),
    ...showEffects(schedule),
    class: schedule.class,
    calendars: showCalendars(schedule),
    ...Object.fromEntries(FURTHER.map((name) => [name, showChosen(name, schedule)])),
    labels: showLabels(schedule),
    "dead letters": schedule.deadLetters && schedule.deadLetters.value > 0 ? showCount(schedule.deadLetters) : null,
    notes: schedule.notes,
    revision: String(schedule.revision),
    created: showUtc(schedule.createdAt),
    changed: showUtc(schedule.updatedAt),
  });
}

/** What an edit has made different, field by field; of a field with members, those. */
export function printChanges(before: Schedule, after: Schedule): void {
  const [was, is] = [linesOf(before), linesOf(after)];
  const rows = [
    ...jobChanges(before.job, after.job),
    ...Object.keys({ ...was, ...is }).map((name) => [name, was[name] ?? "", is[name] ?? ""]),
    ...FURTHER.map((name) => {
      const [one, other] = [fieldsOf(before)[name], fieldsOf(after)[name]];
      if (!isFields(one) || !isFields(other)) return [name, showValue(name, one), showValue(name, other)];
      return [name, showValue(name, differing(one, other)), showValue(name, differing(other, one))];
    }),
  ].filter(([, one, other]) => one !== other);
  if (rows.length === 0) printLine("Nothing is different.");
  else printChangeTable(rows);
}

/** Of a change that is only thought of: what the API says would differ. */
export function printFieldChanges({ fields, hasMoreFields }: ChangePreview["diff"]): void {
  if (fields.length === 0) printLine("No field would be different.");
  else printChangeTable(changeRows(fields));
  if (hasMoreFields) printLine("… and more fields");
  printLine("");
}

function printChangeTable(rows: readonly (readonly string[])[]): void {
  printTable(
    ["FIELD", "WAS", "IS"],
    rows.map((row) => row.map((one) => one || "–")),
  );
}

function linesOf(schedule: Schedule): Record<string, string> {
  return {
    name: schedule.name,
    rule: showWholeRule(schedule),
    "next run": showNext(schedule),
    payload: JSON.stringify(schedule.payload),
    ...showEffects(schedule),
    class: schedule.class,
    calendars: showCalendars(schedule),
    labels: showLabels(schedule),
    notes: schedule.notes ?? "",
  };
}

/** A field of the definition as `--set` takes it, where it is not what nobody has to say; of several members, those. */
function showChosen(name: string, schedule: Schedule): string {
  const value = fieldsOf(schedule)[name];
  const usual = NOTHING_CHOSEN[name];
  if (JSON.stringify(value) === JSON.stringify(usual)) return "";
  return showValue(name, isFields(value) && isFields(usual) ? differing(value, usual) : value);
}

function showEffect({ name: _name, kind, ...effect }: { name: string; kind: string } & Fields): string {
  const { kind: _kind, name: _any, ...plain } = PLAIN_EFFECTS.find((one) => one.kind === kind) ?? {};
  const said = Object.fromEntries(OF_AN_EFFECT.flatMap((field) => (field in effect ? [[field, effect[field]]] : [])));
  return `${kind} ${JSON.stringify({ ...said, ...differing(effect, plain) })}`;
}

/** With what else a cron rule says, such as its choices at clock changes. */
function showWholeRule({ rule }: Schedule): string {
  const { kind, expression: _expression, zone: _zone, ...choices } = rule;
  return showRule(rule) + (kind === "cron" && Object.keys(choices).length > 0 ? ` ${JSON.stringify(choices)}` : "");
}

function showEffects({ effects = [] }: Schedule): Record<string, string> {
  return Object.fromEntries(effects.map((one) => [`effect ${one.name}`, showEffect(one)]));
}

function showCalendars({ calendars = [] }: Schedule): string {
  return calendars.map((use) => `${use.name}=${use.onExcluded}`).join(" ");
}

function showLabels({ labels }: Schedule): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

const fieldsOf = (schedule: Schedule): Fields => schedule as unknown as Fields;
