import { z } from "zod";
import { groupLetters } from "../../../store/reads/dead-letters.ts";
import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { letterGroupSchema, presentGroup } from "../../present/dead-letter.ts";
import { defineRoute } from "../../route.ts";
import { filterOf, letterFields, ofScheduleField } from "./filters.ts";

export const groupDeadLettersRoute = defineRoute({
  method: "get",
  path: "/v1/dead-letters/groups",
  tag: "dead-letters",
  summary: "Group open dead letters by what failed, the largest group first",
  description:
    "Of very many, the latest 10,000 are looked at; counts are then lower bounds (`capped`). At most 100 groups.",
  roles: READERS,
  params: noFields,
  query: z.strictObject({ scheduleId: ofScheduleField, ...letterFields }),
  answer: {
    kind: "ok",
    description: "Groups of open dead letters",
    schema: z.strictObject({ items: z.array(letterGroupSchema), source: z.literal("authority") }),
  },
  problems: ["not-found", "busy"],
  async handle({ query }, context, caller) {
    const filter = await filterOf(context, caller, query);
    const { groups, capped } = await groupLetters(context.db, caller.tenantId, filter);
    return { kind: "ok", body: { items: groups.map((group) => presentGroup(group, capped)), source: "authority" } };
  },
});
