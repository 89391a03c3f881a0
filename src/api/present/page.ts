import { z } from "zod";
import type { ApiContext } from "../context.ts";
import type { Answer, Reply } from "../route.ts";

/** Lists whose cursor is the position of the last row, as one page. */

export function pageAnswer(item: z.ZodType): Answer {
  return {
    kind: "ok",
    description: "A page",
    schema: z.strictObject({
      items: z.array(item),
      next: z.string().nullable(),
      source: z.literal("authority"),
    }),
  };
}

/**
 * `rows`: one more than `limit` where there is a next page. `list` names the list and its filters, as for reading the
 * cursor; `positionOf` a row is what the next page begins after.
 */
export function replyWithPage<Row>(
  context: Pick<ApiContext, "cursors">,
  list: string,
  page: {
    rows: readonly Row[];
    limit: number;
    positionOf(row: Row): string | number;
    present(row: Row): unknown;
  },
): Reply {
  const { rows, limit, positionOf, present } = page;
  const items = rows.slice(0, limit);
  const next = rows.length > items.length ? context.cursors.write(list, [positionOf(items.at(-1)!)]) : null;
  return { kind: "ok", body: { items: items.map((row) => present(row)), next, source: "authority" } };
}
