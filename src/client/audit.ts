import type { Http } from "./http.ts";

/** Who changed what. Instants are RFC 3339 in UTC. */
export type AuditEvent = {
  eventId: string;
  at: string;
  actor: string;
  actorLabel: string | null;
  /** An admin of another tenant did it, for this one. */
  actingFor: boolean;
  action: string;
  subject: string;
  /** null: no call has done it. */
  requestId: string | null;
  keyId: string | null;
  address: string | null;
  before: unknown;
  after: unknown;
};

export type AuditFilters = {
  actor?: string;
  action?: string;
  subject?: string;
  requestId?: string;
  /** From (inclusive) and to (exclusive), RFC 3339. */
  from?: string;
  to?: string;
};

export type AuditPage = { items: AuditEvent[]; next: string | null; watermark: string };

export type Audit = {
  /** Newest first. */
  list(filters?: AuditFilters & { limit?: number; after?: string }): Promise<AuditPage>;
  /**
   * Oldest first, every event up to `until`, which is fixed when the export begins; the next one goes on from there.
   * Events come while they are read. Throws NoAnswer when the stream breaks: what came before is good.
   */
  export(filters?: AuditFilters): Promise<{ until: string; events: AsyncGenerator<AuditEvent> }>;
};

export function auditOf(http: Http): Audit {
  return {
    list: (filters = {}) => http.call({ path: "/v1/audit-events", query: filters }),
    async export(filters = {}) {
      const { headers, lines } = await http.lines({ path: "/v1/audit-events/export", query: filters });
      return { until: headers.get("punctual-exported-until") ?? "", events: parsed(lines) };
    },
  };
}

async function* parsed(lines: AsyncGenerator<string>): AsyncGenerator<AuditEvent> {
  for await (const line of lines) yield JSON.parse(line) as AuditEvent;
}
