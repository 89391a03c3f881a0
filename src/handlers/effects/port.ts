import type { Readable } from "node:stream";
import type { Effect } from "../../domain/effects/definition.ts";
import type { EmailContent } from "../../domain/effects/email-content.ts";
import type { EffectFacts } from "../../domain/effects/facts.ts";
import type { SendReport } from "../../domain/effects/settlement.ts";
import type { EffectKind } from "../../domain/effects/states.ts";
import type { KnownSecrets } from "../../domain/secrets/known.ts";
import type { Uuid } from "../../kernel/ids.ts";

/** One effect to be sent. The action id is the same in every attempt: the other side may know it again. */
export type OutgoingEffect<E extends Effect = Effect> = {
  actionId: string;
  tenantId: Uuid;
  effect: E;
  facts: EffectFacts;
  /** What an email says. */
  content: EmailContent | undefined;
  /** A webhook's own headers, as they are sent. */
  headers: Readonly<Record<string, string>>;
  /** The secrets among them, to be taken out of what the other side says. */
  secrets: KnownSecrets;
  /** Where the result can be had; null: the run has none. */
  resultUrl: string | null;
  /** The result's bytes. Throws `object-missing` when they are gone. */
  openResult(): Promise<Readable>;
};

/** Speaks to one kind of other side. */
export type EffectAdapter = {
  readonly kind: EffectKind;
  /** How many are sent side by side by one process. */
  readonly concurrency: number;
  /**
   * Tries once, within the signal. Reports what is known: only a refusal by the other side, or never having asked it, is
   * "did not happen". A throw counts as not knowing.
   */
  send(outgoing: OutgoingEffect, signal: AbortSignal): Promise<SendReport>;
  close(): Promise<void>;
};
