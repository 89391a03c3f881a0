/** The life cycle of an effect, as people see it. The SQL CHECKs and docs/lifecycle.md are tested against this table. */
export type EffectState = "pending" | "sending" | "sent" | "uncertain" | "failed" | "resolved";

export const EFFECT_EDGES: Readonly<Record<EffectState, readonly EffectState[]>> = {
  pending: ["sending", "sent", "uncertain", "resolved"], // sent: a lapsed attempt was heard of after all
  sending: ["sent", "pending", "uncertain", "failed", "resolved"],
  uncertain: ["pending", "sent", "resolved"], // sent: the same; the others are a person's decision
  failed: ["pending", "resolved"], // a person's decision only
  sent: [],
  resolved: [],
};

export const EFFECT_STATES = Object.keys(EFFECT_EDGES) as readonly EffectState[] as [EffectState, ...EffectState[]];

export const EFFECT_KINDS = ["email", "webhook"] as const;
export type EffectKind = (typeof EFFECT_KINDS)[number];

/** What becomes of an effect of which nobody knows whether it happened. */
export const ON_UNCERTAIN = ["hold", "resend", "drop"] as const;
export type OnUncertain = (typeof ON_UNCERTAIN)[number];

/** How a person (or the policy `drop`) closed an effect. */
export const RESOLUTIONS = ["sent", "dropped"] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

/** How one attempt to send ended. `lapsed`: its sender was not heard of again, and may still be. */
export const SEND_OUTCOMES = ["sent", "refused", "unknown", "lapsed", "not-sent"] as const;
export type SendOutcome = (typeof SEND_OUTCOMES)[number];
