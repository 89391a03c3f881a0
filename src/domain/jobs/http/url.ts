import { z } from "zod";
import { allKnown, PLACEHOLDERS_ARE } from "./headers.ts";

/** `https://api.example.com/orders/{{payload.id}}`: what is filled in stands in path and query, never where it leads. */
type UrlTemplate = { origin: string; path: string; query: string };

const PARTS = /^(https?:\/\/[^/?#]+)(\/[^?#]*)?(\?[^#]*)?$/i;
const BRACES = /\{\{[^{}]*\}\}/g;

function readUrlTemplate(text: string): UrlTemplate | undefined {
  const [, origin, path = "", query = ""] = PARTS.exec(text) ?? [];
  if (origin === undefined || /[{}@]/.test(origin)) return undefined;
  const plain = text.replace(BRACES, "x");
  if (/[\s\\]/.test(plain) || URL.parse(plain) === null) return undefined;
  return { origin, path, query };
}

export const urlSchema = z
  .string()
  .max(2000, { abort: true })
  .refine((text) => allKnown(text), PLACEHOLDERS_ARE)
  .refine(
    (text) => readUrlTemplate(text) !== undefined,
    "must be an http or https URL without user, password and fragment, with placeholders in its path and query only",
  )
  .describe(
    "Placeholders in path and query are filled in URL-encoded: `https://api.example.com/{{payload.customer}}?run={{run.id}}`",
  );

/**
 * The URL with what is filled in. `fill` answers a part with each placeholder's value encoded by the function it is given.
 * What would lead elsewhere in the path (`..`), or fall out of it (nothing), is a fault.
 */
export function fillUrl(
  template: string,
  fill: (text: string, encode: (value: string) => string) => string,
): { ok: true; url: string } | { ok: false; fault: string } {
  const { origin, path, query } = readUrlTemplate(template)!;
  let isEmpty = false;
  const filledPath = fill(path, (value) => {
    isEmpty ||= value === "";
    return encode(value);
  });
  if (isEmpty) return { ok: false, fault: "a placeholder in its path stands for nothing" };
  const url = `${origin}${filledPath}${fill(query, encode)}`;
  // The same without dots in what is filled in: what is shorter than that has fallen to . or ..
  const steady = fill(path, (value) => encode(value.replaceAll(".", "_")));
  if (URL.parse(url)?.pathname.length !== URL.parse(origin + steady)?.pathname.length) {
    return { ok: false, fault: "a placeholder in its path stands for . or .., and would lead elsewhere" };
  }
  return { ok: true, url };
}

const encode = (value: string) => encodeURIComponent(value.toWellFormed());
