import { z } from "zod";
import { createApiKey } from "../../../authority/tenants/create-api-key.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { showId } from "../../../kernel/ids.ts";
import { ROLES } from "../../context.ts";
import { API_KEY_BODY } from "../../examples/identity.ts";
import { noSuchTenant } from "../../identity/acting.ts";
import { instantSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { mintKey } from "../../keys.ts";
import { apiKeySchema, presentApiKey } from "../../present/api-key.ts";
import { showInstant } from "../../present/instant.ts";
import { fieldProblem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { authorizeFor, KEEPERS } from "./key-ref.ts";

const LONGEST_DAYS = 3_650;
const DAY_MS = 86_400_000;

export const createApiKeyRoute = defineRoute({
  method: "post",
  path: "/v1/api-keys",
  tag: "api-keys",
  summary: "Make an API key; it is shown this once",
  description:
    "Each call makes another key. One whose answer got lost opens nothing for anybody: revoke it and make another.",
  roles: KEEPERS,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    label: z.string().trim().min(1).max(200).describe("What it is for, for people"),
    role: z.enum(ROLES).describe("`admin` is for admins to give"),
    expiresAt: instantSchema.optional().describe("Default: it does not expire"),
    expiresInDays: z.int().min(1).max(LONGEST_DAYS).optional().describe("In place of `expiresAt`"),
  }),
  example: API_KEY_BODY,
  answer: {
    kind: "created",
    description: "The key itself, and what is kept of it",
    schema: z.strictObject({
      key: z.string().describe("The whole key. Nobody can show it again"),
      apiKey: apiKeySchema,
    }),
  },
  problems: [],
  async handle({ body }, context, caller) {
    authorizeFor(caller, body.role);
    const expiresAt = readExpiry(body, context.clock.now());
    const minted = mintKey();
    const outcome = await createApiKey(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      prefix: minted.prefix,
      secretHash: minted.secretHash,
      role: body.role,
      label: body.label,
      ...(expiresAt === undefined ? {} : { expiresAt }),
    });
    if (outcome.kind === "no-tenant") throw noSuchTenant(showId("ten", caller.tenantId));
    return {
      kind: "created",
      headers: { location: `/v1/api-keys/${showId("key", outcome.keyId)}` },
      body: { key: minted.key, apiKey: presentApiKey(outcome.key, context.clock.now()) },
    };
  },
});

type Wanted = { expiresAt?: Instant | undefined; expiresInDays?: number | undefined };

function readExpiry({ expiresAt, expiresInDays }: Wanted, nowAt: Instant): Instant | undefined {
  if (expiresInDays !== undefined) {
    if (expiresAt === undefined) return nowAt + expiresInDays * DAY_MS;
    const found = String(expiresInDays);
    throw fieldProblem({
      field: "expiresInDays",
      message: "stands beside expiresAt",
      found,
      allowed: "one of the two",
    });
  }
  if (expiresAt === undefined) return undefined;
  const latestAt = nowAt + LONGEST_DAYS * DAY_MS;
  if (expiresAt > nowAt && expiresAt <= latestAt) return expiresAt;
  throw fieldProblem({
    field: "expiresAt",
    message: expiresAt > nowAt ? "is too far away" : "has passed",
    found: showInstant(expiresAt),
    allowed: `later than ${showInstant(nowAt)}, at most ${LONGEST_DAYS} days from now`,
  });
}
