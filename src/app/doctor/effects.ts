import { EFFECT_KINDS } from "../../domain/effects/states.ts";
import { readEffectGauges } from "../../store/rows/effects/due.ts";
import { readDeliveryDelay } from "../../store/rows/webhooks/deliveries.ts";
import { type Check, finding, ok, showAge } from "./check.ts";

/** A living sender takes what is due within seconds; a tenant's own backlog of slow receivers may take some minutes. */
const LATE_MS = 300_000;

export const effectsDueCheck: Check = {
  id: "effects-due",
  name: "emails and webhooks are sent when they are due",
  async examine({ careful }) {
    const kinds = await readEffectGauges(careful, EFFECT_KINDS);
    const late = kinds.filter((one) => one.overdueMs >= LATE_MS);
    if (late.length === 0) return ok("none is overdue");
    return finding(
      late.map(({ kind, overdueMs }) => `the oldest ${kind} has been due for ${showAge(overdueMs)}`).join(", "),
      "their runs have succeeded, and nobody is told",
      "see that a `punctual sender` is alive, for emails one that has PUNCTUAL_SMTP_URL; read its log",
    );
  },
};

export const effectsUncertainCheck: Check = {
  id: "effects-uncertain",
  name: "no email or webhook waits for a person's decision",
  async examine({ careful }) {
    const kinds = await readEffectGauges(careful, EFFECT_KINDS);
    const waiting = kinds.filter((one) => one.uncertain > 0);
    if (waiting.length === 0) return ok("none is uncertain");
    return finding(
      `nobody knows whether they were sent: ${waiting.map((one) => `${one.uncertain} of kind ${one.kind}`).join(", ")}`,
      "they are not sent again by themselves, and keep the results they speak of",
      "`punctual effects list --state uncertain` of each tenant, then `punctual effects resolve`",
    );
  },
};

export const webhooksDueCheck: Check = {
  id: "webhooks-due",
  name: "webhooks are told of events when they happen",
  async examine({ careful }) {
    const overdueMs = await readDeliveryDelay(careful);
    if (overdueMs < LATE_MS) return ok("no event is overdue");
    return finding(
      `the oldest event has been due for ${showAge(overdueMs)}`,
      "runs have ended or are late, and who wants to know is not told",
      "see that a `punctual sender` is alive; read its log",
    );
  },
};
