import { messageOf } from "../../kernel/errors.ts";
import { ForbiddenAddress } from "../outbound/guard.ts";
import { JobFailure, permanentFailure, transientFailure } from "../outcome.ts";

/** How deliveries fail; docs/jobs.md has the table. */

/** Nothing of the message has left: no connection, or none that could be used. */
export const unavailable = (cause: unknown) =>
  transientFailure("broker-unavailable", `the broker cannot be reached: ${describe(cause)}`, { cause });

/** The message was on its way, and nobody will say any more whether it arrived. */
export const unknownDelivery = (cause: unknown) =>
  transientFailure(
    "delivery-unknown",
    `the connection ended before the broker had answered; the message may have arrived: ${describe(cause)}`,
    { cause },
  );

export const refused = (cause: unknown) =>
  permanentFailure("broker-refused", `the broker refuses us: ${describe(cause)}`, { cause });

export const busy = (cause: unknown) =>
  transientFailure("broker-busy", `the broker does not take the message now: ${describe(cause)}`, { cause });

/** Why there is no connection. What has been told apart already stays as it is. */
export function noConnection(error: unknown): unknown {
  if (error instanceof JobFailure) return error;
  if (error instanceof ForbiddenAddress) return permanentFailure("target-blocked", error.message, { cause: error });
  return unavailable(error);
}

function describe(error: unknown): string {
  const { code, errors } = error as { code?: unknown; errors?: unknown };
  const text = messageOf(error) || (Array.isArray(errors) ? errors.map(messageOf).join("; ") : "");
  return typeof code === "string" && !text.includes(code) ? `${text} (${code})` : text;
}
