import { z } from "zod";
import type { JobContext } from "../context.ts";
import { defineJob } from "../registry.ts";
import { periodInput, resolvePeriod } from "./period.ts";
import { csvHeading, csvLines } from "./run-summary/csv.ts";
import { createZoneFormat, isKnownZone } from "./run-summary/format.ts";
import { type Heading, pageBody, pageHead } from "./run-summary/page.ts";
import { cutIntoBuckets } from "./run-summary/period.ts";
import { addRun, createTally } from "./run-summary/tally.ts";

const runSummaryInput = z
  .strictObject({
    period: periodInput,
    zone: z
      .string()
      .max(100)
      .refine(isKnownZone, { error: "an IANA time zone, such as Europe/Berlin" })
      .default("UTC")
      .describe("Time zone of the report's times"),
    title: z.string().trim().min(1).max(200).default("Run summary"),
  })
  .describe("A report on the tenant's own runs of a period: one HTML file, with the rows as CSV in it");

/**
 * Reports on the tenant's own runs of a period: one self-contained HTML file with charts and tables, and the runs
 * themselves as a CSV inside it. One file, because a run has one canonical result: a second object beside it would be
 * an orphan that cleanup removes.
 */
export const runSummary = defineJob({
  name: "report.run-summary",
  version: 1,
  input: runSummaryInput,
  async run(ctx, { period, zone, title }) {
    const heading = { title, period: resolvePeriod(period, ctx.run.scheduledAt), format: createZoneFormat(zone) };
    return { output: { name: "report.html", mediaType: "text/html; charset=utf-8", bytes: writeReport(ctx, heading) } };
  },
});

/** Browsers carry some 30 MB in a data: address; 50,000 rows are about a third of it. */
export const CSV_ROWS_LIMIT = 50_000;

/** Written while the runs are read, page by page: memory does not grow with their number. */
async function* writeReport(ctx: JobContext, heading: Heading): AsyncGenerator<Uint8Array> {
  const { fromAt, toAt } = heading.period;
  const tally = createTally(cutIntoBuckets(heading.period, heading.format.offsetMs(fromAt)));
  const base64 = createBase64();
  let csvRows = 0;
  yield utf8(pageHead(heading) + base64.write(csvHeading()));
  for await (const runs of ctx.read.runsBetween(ctx.run.tenantId, fromAt, toAt)) {
    ctx.signal.throwIfAborted();
    for (const run of runs) addRun(tally, run);
    const kept = runs.slice(0, CSV_ROWS_LIMIT - csvRows);
    csvRows += kept.length;
    if (kept.length > 0) yield utf8(base64.write(csvLines(kept)));
    ctx.progress({ runs: tally.total });
  }
  yield utf8(base64.end() + pageBody(tally, heading, csvRows));
}

/** Base64 of a text that comes in parts: only whole groups of three bytes are written before the end. */
function createBase64() {
  let rest: Uint8Array = new Uint8Array();
  return {
    write(text: string): string {
      const bytes = Buffer.concat([rest, utf8(text)]);
      const whole = bytes.length - (bytes.length % 3);
      rest = bytes.subarray(whole);
      return bytes.toString("base64", 0, whole);
    },
    end: () => Buffer.from(rest).toString("base64"),
  };
}

const utf8 = (text: string) => Buffer.from(text, "utf8");
