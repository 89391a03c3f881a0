import type { Grant } from "../authority/attempts/grant.ts";
import { openPayload as open } from "../authority/secrets/open-payload.ts";
import type { Vault } from "../authority/secrets/vault.ts";
import type { Payload } from "../domain/definition.ts";
import type { KnownSecrets } from "../domain/secrets/known.ts";
import { findMarked, hasMarks } from "../domain/secrets/marks.ts";
import type { HandlerFailure } from "../handlers/outcome.ts";
import type { JobRegistry } from "../handlers/registry.ts";
import { messageOf } from "../kernel/errors.ts";

export type OpenedPayload =
  | { ok: true; payload: Payload; secrets: KnownSecrets }
  | { ok: false; failure: HandlerFailure };

/** A key may be mended by its operator: it is tried again, and not at once. */
const RETRY_AFTER_MS = 15_000;

/** Most attempts end here: neither their payload nor their job has anything secret. */
export function mayHoldSecrets(registry: JobRegistry, { maySeal, job }: Pick<Grant, "maySeal" | "job">): boolean {
  if (maySeal) return true;
  const known = registry.functionOf(job);
  return known !== undefined && hasMarks(known.input);
}

/**
 * The payload as its job gets it, and what must not be said of it. Opened after the claim and before the work, in this
 * process's memory alone. What the job's input marks counts as secret also where it was stored before it was marked.
 */
export async function openPayload(
  vault: Vault,
  registry: JobRegistry,
  { tenantId, job, payload }: Pick<Grant, "tenantId" | "job" | "payload">,
): Promise<OpenedPayload> {
  try {
    const known = registry.functionOf(job);
    const marked = (plain: Payload) => (known === undefined ? [] : findMarked(known.input, plain));
    return { ok: true, ...(await open(vault, tenantId, payload, marked)) };
  } catch (error) {
    const message = messageOf(error);
    const failure = { kind: "failed", transient: true, code: "secret-unavailable", message } as const;
    return { ok: false, failure: { ...failure, retryAfterMs: RETRY_AFTER_MS } };
  }
}
