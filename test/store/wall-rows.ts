import type pg from "pg";

/** One row of a tenant in every table, as far as constraints want it. Values that must differ are made of `seed`. */
export async function sow(admin: pg.Pool, tenantId: string, scheduleId: string, seed: number): Promise<void> {
  const id = (n: number) => `01900000-0000-8000-8000-${String(seed * 1000 + n).padStart(12, "0")}`;
  const runId = id(1);
  const client = await admin.connect();
  try {
    await client.query("begin; set local session_replication_role = replica");
    const rows: [string, Record<string, unknown>][] = [
      ["api_key", { id: id(2), tenant_id: tenantId, prefix: `p${seed}`, secret_hash: Buffer.alloc(32), role: "owner" }],
      ["quota", { tenant_id: tenantId, class: "short" }],
      ["calendar", { tenant_id: tenantId, name: "days", version: 1, definition: {} }],
      ["calendar_head", { tenant_id: tenantId, name: "days", version: 1 }],
      ["calendar_use", { tenant_id: tenantId, calendar: "days", schedule_id: scheduleId }],
      ["audit_event", { tenant_id: tenantId, actor: "a", action: "test", subject: "x" }],
      [
        "skip_range",
        {
          schedule_id: scheduleId,
          from_at: AT,
          to_at: AT,
          tenant_id: tenantId,
          revision: 1,
          reason: "misfire",
          created_at: AT,
        },
      ],
      [
        "run",
        {
          id: runId,
          scheduled_at: AT,
          schedule_id: scheduleId,
          tenant_id: tenantId,
          class: "short",
          due_at: AT,
          admitted_at: AT,
          materialized_at: AT,
          revision: 1,
          trigger: "schedule",
          state: "open",
        },
      ],
      ["attempt", { scheduled_at: AT, run_id: runId, n: 1, claim_id: id(3), fence: 1, worker: "w", started_at: AT }],
      ["attempt_log", { run_id: runId, attempt: 1, n: 1, object_id: id(4), at_byte: 0, size: 1, written_at: AT }],
      [
        "live_run",
        {
          id: runId,
          scheduled_at: AT,
          tenant_id: tenantId,
          class: "short",
          lane: 0,
          state: "queued",
          guard: runId,
          not_before: AT,
          due_at: AT,
          admitted_at: AT,
          budget_from: AT,
        },
      ],
      ["usage", { tenant_id: tenantId, class: "short" }],
      [
        "object",
        {
          id: id(4),
          tenant_id: tenantId,
          run_id: runId,
          attempt: 1,
          fence: 1,
          name: "o",
          state: "granted",
          uri: "file:o",
          media_type: "text/plain",
          granted_until: AT,
        },
      ],
      [
        "effect",
        { id: id(5), tenant_id: tenantId, run_id: runId, kind: "email", action_id: "a", request: {}, name: "mail" },
      ],
      ["effect_attempt", { effect_id: id(5), n: 1, fence: 1, started_at: AT, sender: "s" }],
      [
        "dead_letter",
        {
          run_id: runId,
          scheduled_at: AT,
          tenant_id: tenantId,
          class: "short",
          reason: "failed",
          fingerprint: "f",
          attempts: 1,
          created_at: AT,
        },
      ],
      [
        "dead_letter_resolution",
        {
          run_id: runId,
          n: 1,
          failed_at: AT,
          failure: "failed",
          fingerprint: "f",
          attempts: 1,
          resolution: "dismissed",
          resolved_at: AT,
          resolved_by: "a",
        },
      ],
      ["request_key", { scope: tenantId, key: "k", request_sha256: Buffer.alloc(32), subject: runId }],
      ["request_key", { scope: scheduleId, key: "k", request_sha256: Buffer.alloc(32), subject: runId }],
      ["operation", { id: id(6), tenant_id: tenantId, kind: "backfill", arguments: {}, actor: "a" }],
      ["rollup_delta", { at: AT, tenant_id: tenantId, class: "short" }],
      [
        "rollup",
        {
          tenant_id: tenantId,
          minutes: 1,
          class: "short",
          at: "2026-01-01T00:00:00Z",
          started: 0,
          succeeded: 0,
          failed: 0,
          canceled: 0,
          skipped: 0,
          retried: 0,
          lateness: Array(17).fill(0),
        },
      ],
      ["tenant_quota", { tenant_id: tenantId, api_burst: 1 }],
      [
        "worker",
        { id: id(7), tenant_id: tenantId, name: `w${seed}`, slots: {}, version: "", started_at: AT, seen_at: AT },
      ],
      ["signing_key", { id: id(8), tenant_id: tenantId, label: "", sealed: "", created_at: AT, created_by: "test" }],
      [
        "email_template",
        { tenant_id: tenantId, name: "monthly", subject: "", text: "", updated_at: AT, updated_by: "test" },
      ],
      [
        "webhook_endpoint",
        {
          id: id(9),
          tenant_id: tenantId,
          url: "https://example.com",
          events: ["run.failed"],
          created_at: AT,
          created_by: "test",
        },
      ],
      [
        "webhook_delivery",
        {
          endpoint_id: id(9),
          tenant_id: tenantId,
          type: "run.failed",
          run_id: runId,
          n: 1,
          facts: {},
          occurred_at: AT,
          next_attempt_at: AT,
          budget_from: AT,
        },
      ],
      ["tenant_day", { tenant_id: tenantId, day: "2026-01-01", requested_runs: 1 }],
    ];
    for (const [table, row] of rows) {
      const { rows: found } = await client.query("select to_regclass($1) is not null as there", [table]);
      if (!found[0].there) continue;
      const names = Object.keys(row);
      await client.query(
        `insert into ${table} (${names.join()}) values (${names.map((_, n) => `$${n + 1}`).join()}) on conflict do nothing`,
        Object.values(row).map((value) =>
          typeof value === "object" && !Array.isArray(value) && !Buffer.isBuffer(value) ? JSON.stringify(value) : value,
        ),
      );
    }
    await client.query("commit");
  } finally {
    client.release();
  }
}

/** What the ids above carry; partitions of it are the caller's to make. */
export const AT = new Date(0x019000000000).toISOString();
