import { z } from "zod";
import type { Json } from "../definition.ts";
import { isObject, sealedTextOf } from "../secrets/forms.ts";

/** Headers of a webhook effect: texts, and secrets in the forms of secrets/forms.ts. */
export type HeaderValue = string | { [key: string]: Json };

/** Visible ASCII: what is written down as a header, secret or not. */
export const HEADER_TEXT = /^[\t\x20-\x7e]{0,1000}$/;

/** Headers that are ours, or that belong to the connection. */
const OWN_HEADERS =
  /^(host|content-length|content-type|connection|transfer-encoding|expect|upgrade|te|trailer|keep-alive|idempotency-key|user-agent|punctual-.*|webhook-.*)$/i;
/** Headers that are secrets, whatever is in them. */
const SECRET_HEADERS = /^(authorization|proxy-authorization|cookie|x-api-key)$/i;

/** Whether it is a secret, or none, is read where secrets are: a fault found here would repeat it. */
const headerValue = z
  .custom<HeaderValue>(
    (value) => isObject(value) || (typeof value === "string" && HEADER_TEXT.test(value)),
    'must be visible ASCII characters, or a secret: {"$secret": "…"}',
  )
  .meta({
    override: {
      anyOf: [
        { type: "string" },
        {
          type: "object",
          properties: { $secret: { type: ["string", "null"] }, $version: { type: "string" } },
          required: ["$secret"],
          additionalProperties: false,
        },
      ],
    },
  });

const SECRETS_ARE = 'must be sealed, such as {"Authorization": {"$secret": "…"}}: definitions are no place for secrets';

export const effectHeadersSchema = z
  .record(
    z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "a header's name is an HTTP token")
      .refine((name) => !OWN_HEADERS.test(name), "a header that is set by Punctual"),
    headerValue,
  )
  .refine((headers) => Object.keys(headers).length <= 20, "at most 20 headers")
  .superRefine((headers, ctx) => {
    for (const [name, value] of Object.entries(headers)) {
      if (isObject(value) || !SECRET_HEADERS.test(name)) continue;
      // What was found may be the secret.
      ctx.addIssue({ code: "custom", path: [name], message: SECRETS_ARE, input: "…" });
    }
  });

/** Texts of its sealed headers. */
export function sealedHeaders(headers: Readonly<Record<string, HeaderValue>>): string[] {
  return Object.values(headers).flatMap((value) => sealedTextOf(value) ?? []);
}

/** As they are sent: `opened` has what sealed texts hold. */
export function openHeaders(
  headers: Readonly<Record<string, HeaderValue>>,
  opened: ReadonlyMap<string, Json>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      const text = sealedTextOf(value);
      return [name, String(text === undefined ? value : opened.get(text))];
    }),
  );
}
