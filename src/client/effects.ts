import { type Http, pathOf } from "./http.ts";

/** What accepted results bring about outside. Instants are RFC 3339 in UTC. */

export type EffectState = "pending" | "sending" | "sent" | "uncertain" | "failed" | "resolved";

/** An effect beside its run. */
export type RunEffect = {
  effectId: string;
  name: string;
  kind: string;
  state: EffectState;
  attempts: number;
  externalId: string | null;
  message: string | null;
  /** `sent` or `dropped`: decided without knowing. */
  resolution: string | null;
  nextAttemptAt: string | null;
  settledAt: string | null;
};

export type ListedEffect = RunEffect & {
  /** The same for ever. */
  actionId: string;
  runId: string;
  scheduleId: string | null;
  effect: { name: string; kind: string; onUncertain: string } & Record<string, unknown>;
  resolvedBy: string | null;
  createdAt: string;
  firstSentAt: string | null;
};

export type Effect = ListedEffect & {
  tries: {
    attempt: number;
    sender: string;
    startedAt: string;
    endedAt: string | null;
    outcome: string;
    externalId: string | null;
    message: string | null;
  }[];
};

export type EffectPage = { items: ListedEffect[]; next: string | null };

export type EffectFilters = { state?: string; kind?: string; scheduleId?: string; limit?: number; after?: string };

export type Effects = {
  list(filters?: EffectFilters): Promise<EffectPage>;
  get(effect: string): Promise<Effect>;
  /** Decides an uncertain or failed one: `sent`, `resend` or `drop`. `changed` is false when it was so already. */
  resolve(
    effect: string,
    decision: { outcome: string; reason: string },
  ): Promise<{ effect: ListedEffect; changed: boolean }>;
};

export function effectsOf(http: Http): Effects {
  return {
    list: (filters = {}) => http.call({ path: "/v1/effects", query: filters }),
    get: (effect) => http.call({ path: pathOf`/v1/effects/${effect}` }),
    resolve: (effect, decision) =>
      http.call({ method: "POST", path: pathOf`/v1/effects/${effect}/resolve`, body: JSON.stringify(decision) }),
  };
}
