declare const markup: unique symbol;
/** HTML or SVG text in which every foreign part was escaped. Only `html` makes one. */
export type Markup = { readonly [markup]: true; toString(): string };

type Part = string | number | undefined | Markup | readonly Markup[];

const made = new WeakSet<object>();

/** Template tag: what is interpolated is text and is escaped, in elements and in quoted attributes, unless `html` made it. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  let text = strings[0]!;
  for (let i = 0; i < parts.length; i++) text += show(parts[i]) + strings[i + 1]!;
  const result = { toString: () => text };
  made.add(result);
  return result as Markup;
}

function show(part: Part): string {
  if (part === undefined) return "";
  if (typeof part === "string" || typeof part === "number") return escapeText(String(part));
  if (made.has(part)) return part.toString();
  return (part as readonly Markup[]).map(show).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
// Control characters are no text in HTML, whatever they are written as.
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones to replace.
const CONTROLS = /[\0-\x08\x0B\x0C\x0E-\x1F\x7F]/g;

function escapeText(text: string): string {
  return text
    .toWellFormed()
    .replace(CONTROLS, "\uFFFD")
    .replace(/[&<>"']/g, (char) => ENTITIES[char]!);
}
