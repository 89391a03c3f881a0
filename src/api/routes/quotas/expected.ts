import { z } from "zod";
import { readIfMatch } from "../../input/if-match.ts";
import { Problem } from "../../problems/problem.ts";

/** For which version a change was made. */
export const expectedVersionSchema = z
  .int()
  .min(0)
  .optional()
  .describe("The version this change was made for; or send `If-Match`. 0, or neither: nobody has set any yet");

export const ifMatchVersion = z.object({
  "if-match": z.string().optional().describe('The version as an ETag, such as `"3"`, in place of `expectedVersion`'),
});

export function readExpectedVersion(header: string | undefined, inBody: number | undefined): number {
  return inBody ?? readIfMatch(header, { number: "version", of: "quotas" }) ?? 0;
}

export function quotaConflict(expected: number, current: { version: number } | null): Problem {
  const is = current === null ? "nobody has set any" : `they are at version ${current.version}`;
  return new Problem("quota-conflict", `expectedVersion: found ${expected}; ${is}`, { more: { current } });
}
