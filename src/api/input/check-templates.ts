import type { Work } from "../../domain/definition.ts";
import { listEmailTemplateNames } from "../../store/reads/tenants/email-templates.ts";
import type { ApiContext, Caller } from "../context.ts";
import { problemOfFaults } from "../problems/problem.ts";
import { didYouMean } from "./did-you-mean.ts";
import { showValue } from "./issues.ts";

/** Refuses emails that name a template which is not there. What stood there before may stay: its emails say the built-in words. */
export async function checkTemplates(context: ApiContext, caller: Caller, work: Work, before?: Work): Promise<void> {
  const known = new Set((before?.effects ?? []).flatMap((effect) => templateOf(effect) ?? []));
  const asked = (work.effects ?? []).flatMap((effect, i) => {
    const name = templateOf(effect);
    return name === undefined || known.has(name) ? [] : [{ field: `effects[${i}].template`, name }];
  });
  if (asked.length === 0) return;
  const names = await listEmailTemplateNames(context.db, caller.tenantId);
  const faults = asked.flatMap(({ field, name }) => {
    if (names.includes(name)) return [];
    const meant = didYouMean(name, names);
    return [
      {
        field,
        message: "is no email template of this tenant",
        found: showValue(name),
        allowed: names.join(", ") || "none: PUT /v1/email-templates/{template} makes one",
        ...(meant === undefined ? {} : { didYouMean: meant }),
      },
    ];
  });
  if (faults.length > 0) throw problemOfFaults("invalid-request", faults);
}

function templateOf(effect: NonNullable<Work["effects"]>[number]): string | undefined {
  return effect.kind === "email" ? effect.template : undefined;
}
