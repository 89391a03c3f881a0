import { z } from "zod";
import { type IdKind, readId, showId } from "../../kernel/ids.ts";
import type { AuditView } from "../../store/reads/audit.ts";
import type { LabelOf } from "../actors.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant } from "./instant.ts";

const side = z.unknown().meta({ description: "A JSON value; null where there is nothing to say" });

export const auditEventSchema = z
  .strictObject({
    eventId: z.string().describe("A number; grows, with gaps"),
    at: shownInstant,
    actor: z
      .string()
      .describe(
        "`key_…`, or who acted without a key: `punctual` itself, an operator at the command line, a token's subject",
      ),
    actorLabel: z.string().nullable().describe("What the tenant calls the actor's key, where it is one of its own"),
    actingFor: z.boolean().describe("An admin of another tenant did it, for this one"),
    action: z.string().describe("What was done; docs/audit.md lists what each call writes"),
    subject: z.string().describe("What it was done to: an id, or a name"),
    requestId: z.string().nullable().describe("Of the call; null for what no call has done"),
    keyId: z.string().nullable(),
    address: z.string().nullable().describe("Of the caller, as far as proxies are trusted"),
    before: side,
    after: side,
  })
  .meta({
    id: "AuditEvent",
    example: {
      eventId: "4711",
      at: "2026-10-01T09:00:00.123Z",
      actor: "key_01k6f9v3zv89p8q4x0v0v0v0v0",
      actorLabel: "Ann",
      actingFor: false,
      action: "schedule.revise",
      subject: "sch_01k6f9v3zv89p8q4x0v0v0v0v0",
      requestId: "req_01k6f9v3zv89p8q4x0v0v0v0v0",
      keyId: "key_01k6f9v3zv89p8q4x0v0v0v0v0",
      address: "203.0.113.7",
      before: { revision: 1, "rule.expression": "0 9 * * 1-5" },
      after: { revision: 2, "rule.expression": "0 10 * * 1-5" },
    },
  });

/** What the uuid in an event stands for, by the first word of its action. */
const KINDS: Readonly<Record<string, IdKind>> = {
  schedule: "sch",
  run: "run",
  "dead-letter": "run",
  "dead-letters": "op",
  operation: "op",
  effect: "eff",
  key: "key",
  "api-key": "key",
  "signing-key": "sgk",
  webhook: "whk",
  tenant: "ten",
};
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function presentAuditEvent(event: AuditView, labelOf: LabelOf): z.output<typeof auditEventSchema> {
  const { id, at, actor, actingFor, action, subject, requestId, keyId, address, before, after } = event;
  const kind = KINDS[action.split(".")[0]!];
  return {
    eventId: String(id),
    at: showInstant(at),
    actor,
    actorLabel: labelOf(actor),
    actingFor,
    action,
    subject: kind !== undefined && UUID.test(subject) ? showId(kind, subject) : subject,
    requestId,
    keyId: keyId === null ? null : showId("key", keyId),
    address,
    before,
    after,
  };
}

/** The other way round: what a caller names, as it stands in the rows. */
export function storedSubject(text: string): string {
  return Object.values(KINDS).reduce((found, kind) => readId(kind, text) ?? found, text);
}
