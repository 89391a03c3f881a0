/** Run by process-zone.test.ts under several process time zones: prints the ids whose instants are wrong. */
import { type CronVector, calendarCases, cron, instants, vectorLines } from "./support.ts";

const rows = vectorLines<CronVector>("cron.jsonl");
const cases = calendarCases().run;
const wrong = [
  ...rows
    .filter((row) => String(instants(cron(row.expr, row.tz), row.from, row.count)) !== String(row.expected))
    .map((row) => row.id),
  ...cases
    .filter((row) => String(instants(cron(row.expr, row.tz), row.after, row.expected.length)) !== String(row.expected))
    .map((row) => row.name),
];
const januaryOffsetMinutes = -new Date(2026, 0, 1).getTimezoneOffset();
console.log(JSON.stringify({ checked: rows.length + cases.length, wrong, januaryOffsetMinutes }));
