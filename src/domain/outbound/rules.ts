import { z } from "zod";
import { canonicalHost, listOf } from "../../kernel/addresses.ts";

const MOST = 200;

const isRange = (text: string) => {
  try {
    listOf([text]);
    return true;
  } catch {
    return false;
  }
};

/** `*.` stands for one name or more before what follows. */
const isHostPattern = (text: string) => {
  const name = text.replace(/^\*\./, "");
  return !name.includes("*") && canonicalHost(name) === name;
};

/** Where one tenant's calls may lead: what an admin says for it. */
export const outboundRulesSchema = z
  .strictObject({
    allow: z
      .array(z.string().max(50).refine(isRange, "must be an address or a range such as 10.2.0.0/16"))
      .max(MOST)
      .default([])
      .describe("Addresses and ranges that it may reach although they are not public"),
    hosts: z
      .array(
        z
          .string()
          .max(253)
          .refine(isHostPattern, "must be a host in lower case, such as api.example.com or *.example.com"),
      )
      .max(MOST)
      .nullable()
      .default(null)
      .describe("The only hosts it may reach; `*.example.com` is every name below. null: any"),
    ports: z
      .array(z.int().min(1).max(65_535))
      .max(MOST)
      .nullable()
      .default(null)
      .describe("The only ports it may reach. null: any"),
  })
  .describe("Where the tenant's HTTP jobs, webhooks and brokers may be");
export type OutboundRules = z.infer<typeof outboundRulesSchema>;
