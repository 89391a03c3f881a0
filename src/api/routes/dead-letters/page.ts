import { z } from "zod";
import { LETTER_STATES } from "../../../domain/dead-letters.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { listLetters } from "../../../store/reads/dead-letters.ts";
import type { ApiContext, Caller } from "../../context.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { letterSchema, presentLetter } from "../../present/dead-letter.ts";
import { pageAnswer } from "../../present/page.ts";
import type { Reply } from "../../route.ts";
import { filterOf, letterFields } from "./filters.ts";

/** Pages of dead letters, of a tenant or of one schedule. */

export const pageFields = z.strictObject({
  state: z
    .enum([...LETTER_STATES, "any"])
    .default("open")
    .describe("What is so now: a letter that is resolved meanwhile is missing on the next page"),
  ...letterFields,
  limit: limitSchema,
  after: afterSchema,
});

export const letterPageAnswer = pageAnswer(letterSchema);

/** The cursor is the place of the last row in the order of failures, in whole microseconds. */
export async function pageOfLetters(
  context: ApiContext,
  caller: Caller,
  query: z.output<typeof pageFields>,
  schedule: string | undefined,
): Promise<Reply> {
  const { state, limit, after, ...sent } = query;
  const filter = await filterOf(context, caller, { ...sent, scheduleId: schedule });
  const list = JSON.stringify(["dead-letters", caller.tenantId, state, filter]);
  const place = after === undefined ? undefined : context.cursors.read(list, after);
  const rows = await listLetters(context.db, caller.tenantId, {
    ...filter,
    state,
    limit: limit + 1,
    ...(place === undefined ? {} : { after: { failedAt: Number(place[0]) / 1000, runId: String(place[1]) as Uuid } }),
  });
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const isMore = rows.length > items.length && last !== undefined;
  const next = isMore ? context.cursors.write(list, [Math.round(last.failedAt * 1000), last.runId]) : null;
  return { kind: "ok", body: { items: items.map(presentLetter), next, source: "authority" } };
}
