import type { Payload } from "../../domain/definition.ts";
import type { Job } from "../../domain/jobs/job.ts";
import type { Path } from "../../domain/secrets/forms.ts";
import { type KnownSecrets, NO_SECRETS } from "../../domain/secrets/known.ts";
import type { Instant } from "../../kernel/clock.ts";
import { instantOf, type Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { instantText } from "../../store/values.ts";
import { loadAssignments } from "../attempts/assignment.ts";
import type { Authority } from "../authority.ts";
import { openPayload } from "./open-payload.ts";

const READ = sql(
  "payload_secrets_read_run",
  `select id, scheduled_at, schedule_id, tenant_id, revision, null::uuid as content, true as own_work
     from run where scheduled_at = $1 and id = $2`,
);
type Row = {
  id: Uuid;
  scheduled_at: Instant;
  schedule_id: Uuid | null;
  tenant_id: Uuid;
  revision: number | null;
  content: null;
  own_work: boolean;
};

/**
 * What must not be told of what a run was given, for words about it that come from outside, also after its end. Nothing is
 * locked: revisions and payloads of runs never change.
 * @throws `secret-unavailable` where that cannot be known.
 */
export async function readPayloadSecrets(
  authority: Authority,
  runId: Uuid,
  findMarked: (job: Job, plain: Payload) => readonly Path[],
): Promise<KnownSecrets> {
  const found = await authority.transact("payload-secrets", async (tx) => {
    const [run] = await tx.query<Row>(READ, [instantText(instantOf(runId)), runId]);
    if (run === undefined) return undefined;
    return { tenantId: run.tenant_id, assignment: (await loadAssignments(authority, tx, [run])).get(runId)! };
  });
  if (found === undefined) return NO_SECRETS;
  const { work, payload, maySeal } = found.assignment;
  const marked = (plain: Payload) => findMarked(work.job, plain);
  if (!maySeal && marked(payload).length === 0) return NO_SECRETS;
  return (await openPayload(authority.vault, found.tenantId, payload, marked)).secrets;
}
