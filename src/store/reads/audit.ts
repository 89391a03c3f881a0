import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Database, type Statement, sql } from "../database.ts";
import { instantText } from "../values.ts";
import { readBounded } from "./bounded.ts";

/** One event as it was written down. `before` and `after` are JSON values; null where there was nothing to say. */
export type AuditView = {
  id: bigint;
  at: Instant;
  actor: string;
  action: string;
  subject: string;
  requestId: string | null;
  keyId: Uuid | null;
  address: string | null;
  actingFor: boolean;
  before: unknown;
  after: unknown;
};

export type AuditPlace = { at: Instant; id: bigint | string };

export type AuditPage = {
  actor?: string;
  action?: string;
  subject?: string;
  requestId?: string;
  from?: Instant;
  to?: Instant;
  /** What was written from here on is not shown: the same for all pages of one walk. */
  boundAt: Instant;
  after?: AuditPlace;
  limit: number;
};

/** Of an index, for one page. */
export const AUDIT_WALK_ROWS = 5_000;
const ASKING = { what: "audit events", askFor: "less time with from and to" };

const COLUMNS = `id, at, actor, action, subject, request_id as "requestId", key_id as "keyId", address,
  acting_for as "actingFor", before, after`;
const ENDS = {
  newest: { dir: "desc", beyond: "<", at: "infinity", id: "9223372036854775807" },
  oldest: { dir: "asc", beyond: ">", at: "-infinity", id: "0" },
} as const;
type Order = keyof typeof ENDS;

/**
 * A page walks one index in order, at most so many rows of it, whatever its filters match: the index of what was asked
 * for that is rarest.
 *
 * $1 tenant, $2 and $3 position, $4 and $5 period, $6 bound, $7 subject, $8 actor, $9 request, $10 action,
 * $11 rows a page, $12 rows walked at most
 */
function walk(of: "tenant" | "subject" | "actor" | "request", order: Order): Statement {
  const { dir, beyond } = ENDS[order];
  const asked = { subject: "subject = $7", actor: "actor = $8", request: "request_id = $9", tenant: "true" }[of];
  return sql(
    `audit_of_${of}_${order}`,
    `select ${COLUMNS}, matches, place = $12 as "isLast"
       from (select *, ($7::text is null or subject = $7) and ($8::text is null or actor = $8)
                       and ($9::text is null or request_id = $9) and ($10::text is null or action = $10) as matches
               from (select *, row_number() over (order by at ${dir}, id ${dir}) as place
                       from audit_event
                      where tenant_id = $1 and ${asked} and at ${beyond}= $2::timestamptz
                        and (at, id) ${beyond} ($2::timestamptz, $3::bigint)
                        and at >= $4::timestamptz and at < least($5::timestamptz, $6::timestamptz)
                      order by at ${dir}, id ${dir} limit $12::int) walked) e
      where matches or place = $12
      order by at ${dir}, id ${dir} limit $11`,
  );
}

const both = (of: Parameters<typeof walk>[0]) => ({ newest: walk(of, "newest"), oldest: walk(of, "oldest") });
const WALKS = { tenant: both("tenant"), subject: both("subject"), actor: both("actor"), request: both("request") };

function rarest({ requestId, subject, actor }: AuditPage): keyof typeof WALKS {
  if (requestId !== undefined) return "request";
  if (subject !== undefined) return "subject";
  return actor === undefined ? "tenant" : "actor";
}

type Walked = AuditView & { matches: boolean; isLast: boolean };

/** A page of a tenant's events; `next` is absent after the last one. Throws `busy` when it takes too long. */
export async function listAudit(
  db: Pick<Database, "queryWithin">,
  tenantId: Uuid,
  order: Order,
  page: AuditPage,
  walkRows: number = AUDIT_WALK_ROWS,
): Promise<{ items: AuditView[]; next?: AuditPlace }> {
  const rows = await readBounded<Walked>(
    db,
    WALKS[rarest(page)][order],
    [
      tenantId,
      page.after === undefined ? ENDS[order].at : instantText(page.after.at),
      String(page.after?.id ?? ENDS[order].id),
      page.from === undefined ? "-infinity" : instantText(page.from),
      page.to === undefined ? "infinity" : instantText(page.to),
      instantText(page.boundAt),
      page.subject ?? null,
      page.actor ?? null,
      page.requestId ?? null,
      page.action ?? null,
      page.limit + 1,
      Math.max(walkRows, page.limit + 1),
    ],
    ASKING,
  );
  const found = rows.filter((row) => row.matches);
  const items = found.slice(0, page.limit).map(({ matches: _, isLast: __, ...item }) => item);
  const last = found.length > items.length ? items.at(-1) : rows.find((row) => row.isLast);
  return last === undefined ? { items } : { items, next: { at: last.at, id: last.id } };
}
