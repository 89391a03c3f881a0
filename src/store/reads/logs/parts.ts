import type { LogPart } from "../../../domain/logs/attempt-log.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { instantOf, type Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

export type LogPartView = LogPart & {
  uri: string;
  version: string | null;
  writtenAt: Instant;
};

// A part that the cleaner takes is no longer referenced; its bytes may be gone at any moment.
const LIST = sql(
  "read_attempt_log",
  `select l.n, l.at_byte::float8 as "atByte", l.size, o.uri, o.version, l.written_at as "writtenAt"
     from attempt_log l
     join run r on r.scheduled_at = $3::timestamptz and r.id = l.run_id and r.tenant_id = $1
     join object o on o.id = l.object_id and o.state = 'referenced'
    where l.run_id = $2 and l.attempt = $4
    order by l.n`,
);

/** What is kept of an attempt's log, in its order. */
export function listLogParts(db: Queryable, tenantId: Uuid, runId: Uuid, attempt: number): Promise<LogPartView[]> {
  return db.query<LogPartView>(LIST, [tenantId, runId, instantText(instantOf(runId)), attempt]);
}
