/**
 * One item of a cron field's list. The syntax is checked here, item by item; only what passed goes to cron-parser, which
 * would otherwise read much that nobody should store (random `H`, `@minutely`, Arabic digits, ranges over the end).
 */
import { CronExpressionParser } from "cron-parser";
import { LRUCache } from "lru-cache";
import { refuse } from "../fault.ts";
import type { DayToken, FieldShape } from "./fields.ts";

type Refusal = { readonly message: string; readonly suggestion?: string };
type CronItem = { readonly values: readonly number[] } | { readonly token: DayToken };

/** `base` is a value, a name, a range of these, `*` or `?`. */
const PLAIN = /^(?:([*?])|(\d{1,4}|[A-Z]{3})(?:-(\d{1,4}|[A-Z]{3}))?)(?:\/(\d{1,6}))?$/;

/** Reads one item, upper-cased. Throws `FaultyRule`. */
export function readItem(field: FieldShape, item: string): CronItem {
  const token = readToken(field, item);
  if (token !== undefined) return { token };
  const parts = PLAIN.exec(item);
  if (parts === null) return refuseItem(field, item, unreadable(field, item));
  const [, star, from, to, stepText] = parts;
  const step = stepText === undefined ? undefined : readStep(field, item, Number(stepText));
  if (star !== undefined) return readStar(field, item, star, step);
  const start = readValue(field, item, from!);
  const isDayOfWeek = field.name === "day-of-week";
  if (to === undefined) {
    if (step === undefined) return { values: [isDayOfWeek ? start % 7 : start] };
    if (isDayOfWeek) {
      const suggestion = `${start % 7}-6/${step}`;
      return refuseItem(field, item, { message: "A step in day-of-week needs a range to step through.", suggestion });
    }
    return { values: expand(field, `${start}-${field.max}/${step}`) };
  }
  const end = readEnd(field, item, to, start);
  if (start > end) return refuseWrap(field, item, start, end, step ?? 1);
  return { values: expand(field, `${start}-${end}${step === undefined ? "" : `/${step}`}`) };
}

function readStar(field: FieldShape, item: string, star: string, step: number | undefined): CronItem {
  const isDayField = field.name === "day-of-month" || field.name === "day-of-week";
  if (star === "?" && (!isDayField || step !== undefined)) {
    refuseItem(field, item, {
      message: "? stands alone, and in a day field only.",
      suggestion: item.replace("?", "*"),
    });
  }
  const last = field.name === "day-of-week" ? 6 : field.max;
  return { values: expand(field, `${field.min}-${last}${step === undefined ? "" : `/${step}`}`) };
}

function readStep(field: FieldShape, item: string, step: number): number {
  if (step === 0) refuseItem(field, item, { message: "A step of 0 would never move on." });
  if (step > field.max) {
    const message = `A step of ${step} is wider than the field: it would match once each cycle. For even spacing use an interval rule.`;
    refuseItem(field, item, { message });
  }
  return step;
}

function readValue(field: FieldShape, item: string, text: string): number {
  const value = /^\d/.test(text) ? Number(text) : namedValue(field, text);
  if (value === undefined) return refuseItem(field, item, unreadable(field, text));
  if (value < field.min || value > field.max) {
    return refuseItem(field, item, { message: `${value} is outside ${field.min}-${field.max}.` });
  }
  return value;
}

/** The end of a range; SUN there is 7 where that makes the range run forward (`FRI-SUN`). */
function readEnd(field: FieldShape, item: string, text: string, start: number): number {
  const end = readValue(field, item, text);
  return field.name === "day-of-week" && end === 0 && start > 0 ? 7 : end;
}

function namedValue(field: FieldShape, name: string): number | undefined {
  const index = field.names.indexOf(name);
  return index < 0 ? undefined : field.min + index;
}

function refuseWrap(field: FieldShape, item: string, start: number, end: number, step: number): never {
  const last = field.name === "day-of-week" ? 6 : field.max;
  const first = field.name === "day-of-week" && start === 7 ? 0 : start;
  const cycle = last - field.min + 1;
  const values: number[] = [];
  for (let value = first; value <= end + (first > end ? cycle : 0); value += step) {
    values.push(((value - field.min) % cycle) + field.min);
  }
  const span = (a: number, b: number) => (a === b ? `${a}` : `${a}-${b}`);
  const wraps = first > end && step === 1;
  const suggestion = wraps
    ? `${span(first, last)},${span(field.min, end)}`
    : step === 1
      ? span(first, end)
      : values.join(",");
  refuseItem(field, item, { message: "This range runs over the end of its field; write it as a list.", suggestion });
}

function readToken(field: FieldShape, item: string): DayToken | undefined {
  if (field.name === "day-of-month") {
    if (item === "LW") return { form: "lastWorkday" };
    const last = /^L(?:-(\d{1,2}))?$/.exec(item);
    if (last !== null)
      return { form: "lastDay", before: last[1] === undefined ? 0 : ranged(field, item, last[1], 1, 30) };
    const workday = /^(\d{1,2})W$/.exec(item);
    if (workday !== null) return { form: "workdayNearest", day: ranged(field, item, workday[1]!, 1, 31) };
  }
  if (field.name === "day-of-week") {
    const last = /^(\d|[A-Z]{3})L$/.exec(item);
    if (last !== null) return { form: "lastWeekday", weekday: readValue(field, item, last[1]!) % 7 };
    const nth = /^(\d|[A-Z]{3})#(\d{1,2})$/.exec(item);
    if (nth !== null) {
      return {
        form: "nthWeekday",
        weekday: readValue(field, item, nth[1]!) % 7,
        nth: ranged(field, item, nth[2]!, 1, 5),
      };
    }
  }
  return undefined;
}

function ranged(field: FieldShape, item: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (value < min || value > max) refuseItem(field, item, { message: `${value} is outside ${min}-${max} here.` });
  return value;
}

function unreadable(field: FieldShape, text: string): Refusal {
  if (text === "") return { message: "An item of the list is empty." };
  if (/^H/.test(text))
    return { message: "H stands for a random value, so two readers would disagree; name the value." };
  if (text === "L" && field.name === "day-of-week") {
    return { message: "L needs a day here: the last Friday of the month is 5L.", suggestion: "5L" };
  }
  const name = field.names.find((one) => text.length > 3 && text.startsWith(one));
  if (name !== undefined) return { message: "Names have three letters.", suggestion: name };
  return { message: `${JSON.stringify(text.slice(0, 40))} cannot be read in this field.` };
}

function refuseItem(field: FieldShape, item: string, refusal: Refusal): never {
  refuse({ field: field.name, found: item, allowed: field.allowed, ...refusal });
}

const expanded = new LRUCache<string, readonly number[]>({ max: 2000 });

/** Has cron-parser expand a range that passed every check above. Its iterator is never used: see ../walk.ts. */
function expand(field: FieldShape, range: string): readonly number[] {
  const key = `${field.name} ${range}`;
  const known = expanded.get(key);
  if (known !== undefined) return known;
  const texts = { second: "0", minute: "0", hour: "0", "day-of-month": "1", month: "*", "day-of-week": "*" };
  texts[field.name] = range;
  const { fields } = CronExpressionParser.parse(Object.values(texts).join(" "), {
    currentDate: new Date(0),
    tz: "UTC",
  });
  const all = {
    second: fields.second,
    minute: fields.minute,
    hour: fields.hour,
    "day-of-month": fields.dayOfMonth,
    month: fields.month,
    "day-of-week": fields.dayOfWeek,
  };
  const values = [...all[field.name].values].map(Number);
  expanded.set(key, values);
  return values;
}
