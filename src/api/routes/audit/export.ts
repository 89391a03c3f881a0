import { Readable } from "node:stream";
import type { Uuid } from "../../../kernel/ids.ts";
import { type AuditPage, listAudit } from "../../../store/reads/audit.ts";
import { readWatermark } from "../../../store/reads/status.ts";
import { type LabelOf, labelsOf } from "../../actors.ts";
import type { ApiContext } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentAuditEvent } from "../../present/audit.ts";
import { showInstant } from "../../present/instant.ts";
import { jsonOf } from "../../present/shown-json.ts";
import { defineRoute } from "../../route.ts";
import { AUDITORS, auditFilters, storedFilters } from "./filters.ts";

/** One event has some KiB at most; so many are held at a time. */
const PAGE_ROWS = 200;

export const exportAuditRoute = defineRoute({
  method: "get",
  path: "/v1/audit-events/export",
  tag: "audit",
  summary: "Export who changed what, oldest first, as lines of JSON",
  description:
    "Every event of the period up to a bound that is fixed when the export begins and stands in `Punctual-Exported-Until` (exclusive): the next export goes on with it as `from`, and none is missed or told twice. It is read page by page while the caller reads.",
  roles: AUDITORS,
  params: noFields,
  query: auditFilters,
  answer: { kind: "ok", description: "One event a line", mediaType: "application/x-ndjson" },
  problems: ["busy"],
  async handle({ query }, context, caller) {
    // Whole milliseconds, so that it can be said in full.
    const watermark = Math.floor(await readWatermark(context.db));
    const boundAt = Math.min(watermark, query.to ?? watermark);
    const pages = readPages(context, caller.tenantId, { ...storedFilters(query), boundAt, limit: PAGE_ROWS });
    // The first page comes before the status: what cannot be read is a problem, not a broken stream.
    const first = await pages.next();
    return {
      kind: "ok",
      headers: {
        "content-type": "application/x-ndjson; charset=utf-8",
        "punctual-exported-until": showInstant(boundAt),
      },
      // Strings, taken one page at a time: whoever reads slowly holds two pages here and nothing in the database.
      stream: Readable.from(linesOf(first, pages), { objectMode: false, highWaterMark: 1 }),
    };
  },
});

async function* linesOf(first: IteratorResult<string>, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}

async function* readPages(context: ApiContext, tenantId: Uuid, page: AuditPage): AsyncGenerator<string> {
  for (let after = page.after; ; ) {
    const { items, next } = await listAudit(context.db, tenantId, "oldest", {
      ...page,
      ...(after === undefined ? {} : { after }),
    });
    const labelOf: LabelOf = await labelsOf(
      context,
      tenantId,
      items.map((one) => one.actor),
    );
    const text = items.map((one) => `${jsonOf(presentAuditEvent(one, labelOf))}\n`).join("");
    if (text !== "") yield text;
    if (next === undefined) return;
    after = next;
  }
}
