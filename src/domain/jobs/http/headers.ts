import { z } from "zod";
import { JOB_PLACEHOLDERS, placeholdersIn, unknownJobPlaceholders } from "../template.ts";

/** Headers that are ours, or that belong to the connection. */
const OWN =
  /^(host|content-length|connection|transfer-encoding|expect|upgrade|te|trailer|keep-alive|accept-encoding|idempotency-key|user-agent|proxy-.*|punctual-.*|webhook-(id|timestamp|signature))$/i;
/** What stands in these is a secret, so it stands in the payload. */
const SECRET = /^(authorization|cookie|x-api-key|x-auth-token)$/i;
const MOST = 30;
/** Bytes of all values together, filled in or not. */
export const LONGEST_HEADERS = 32_768;
const SECRETS_ARE =
  "must have a placeholder of the payload, such as Bearer {{payload.token}}: definitions are no place for secrets";

export const allKnown = (text: string) => unknownJobPlaceholders(text).length === 0;
const hasPayload = (text: string) => placeholdersIn(text).some(({ name }) => name.split(".")[0] === "payload");
export const PLACEHOLDERS_ARE = `placeholders are {{${JOB_PLACEHOLDERS.join("}}, {{")}}}`;

const nameSchema = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "a header's name is an HTTP token")
  .refine((name) => !OWN.test(name), "a header that is set by Punctual, or that belongs to the connection");

export const headersSchema = z
  .record(
    nameSchema,
    z
      .string()
      .regex(/^[\t\x20-\x7e]{0,2000}$/, { error: "must be visible ASCII characters, at most 2000", abort: true })
      .refine(allKnown, PLACEHOLDERS_ARE),
  )
  .refine((headers) => Object.keys(headers).length <= MOST, `at most ${MOST} headers`)
  .refine(
    (headers) => Buffer.byteLength(Object.values(headers).join("")) <= LONGEST_HEADERS,
    `at most ${LONGEST_HEADERS} bytes of all values together`,
  )
  .superRefine((headers, ctx) => {
    const seen = new Set<string>();
    for (const [name, value] of Object.entries(headers)) {
      const refuse = (message: string, input: string) => ctx.addIssue({ code: "custom", path: [name], message, input });
      if (seen.has(name.toLowerCase())) refuse("must be there once, in whatever case", name);
      seen.add(name.toLowerCase());
      // What was found may be the secret.
      if (SECRET.test(name) && !hasPayload(value)) refuse(SECRETS_ARE, "…");
    }
  })
  .default({})
  .describe("Values may have placeholders: `Authorization: Bearer {{payload.token}}`");
