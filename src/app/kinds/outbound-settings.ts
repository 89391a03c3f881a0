import { z } from "zod";
import { listOf } from "../../kernel/addresses.ts";
import { messageOf } from "../../kernel/errors.ts";

/** Addresses and ranges, apart by spaces or commas. */
export function readRanges(
  text: string | undefined,
  issues: { addIssue(issue: { code: "custom"; message: string }): void },
): string[] | undefined {
  if (text === undefined) return undefined;
  const ranges = text.split(/[\s,]+/).filter((range) => range !== "");
  try {
    listOf(ranges);
  } catch (error) {
    issues.addIssue({ code: "custom", message: messageOf(error) });
  }
  return ranges;
}

/** Where tenants' calls may lead, and by which way. Part of src/app/config.ts. */
export const outboundSettings = {
  PUNCTUAL_OUTBOUND_ALLOW: z
    .string()
    .optional()
    .transform(readRanges)
    .describe(
      "Addresses and ranges (10.0.0.0/8, …) that tenants' URLs may lead to although they are not public; the same on every `api`, `worker` and `sender`",
    ),
  PUNCTUAL_EGRESS_PROXY: z
    .url({ protocol: /^https?$/, error: "allowed: such as http://user:password@proxy.example.com:3128 or https://…" })
    .optional()
    .describe("The HTTP proxy (CONNECT) by which workers and senders reach where tenants point"),
  PUNCTUAL_EGRESS_RESOLVE: z
    .enum(["here", "proxy"])
    .default("here")
    .describe(
      "Where names are looked up with PUNCTUAL_EGRESS_PROXY: `here`, and the proxy gets the address that was looked at, or at the `proxy`, which must look at addresses itself",
    ),
};
