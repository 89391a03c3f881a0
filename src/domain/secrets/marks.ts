import { z } from "zod";
import type { Path } from "./forms.ts";

/**
 * Marks a field of a job's input as secret: it is sealed also where a caller sends it plain. The mark is JSON Schema's
 * `writeOnly`, so the job catalogue shows it; it stays with whatever is made of the schema later (`.min`, `.describe`).
 */
export function secret<Schema extends z.ZodType>(schema: Schema): Schema {
  return schema.meta({ ...schema.meta(), writeOnly: true }) as Schema;
}

const isMarked = (schema: z.core.$ZodType) => z.globalRegistry.get(schema)?.writeOnly === true;

/** What a schema is made of, by the part of the value that each is for. */
function* partsOf(schema: z.core.$ZodType, value: unknown): Generator<[Path, z.core.$ZodType, unknown]> {
  const def = schema._zod.def as unknown as Record<string, unknown>;
  const own = (name: string) => Object.getOwnPropertyDescriptor(Object(value), name)?.value as unknown;
  for (const name of ["innerType", "left", "right", "in", "out"]) {
    if (isSchema(def[name])) yield [[], def[name], value];
  }
  for (const option of listOf(def.options)) yield [[], option, value];
  if (def.type === "lazy") yield [[], (def.getter as () => z.core.$ZodType)(), value];
  if (def.type === "object") {
    const shape = def.shape as Record<string, z.core.$ZodType>;
    for (const [name, field] of Object.entries(shape)) yield [[name], field, own(name)];
    if (isSchema(def.catchall)) for (const name of namesOf(value, shape)) yield [[name], def.catchall, own(name)];
  }
  if (def.type === "record" && isSchema(def.valueType)) {
    const names = namesOf(value, {});
    if (names.length === 0) yield [["*"], def.valueType, undefined];
    for (const name of names) yield [[name], def.valueType, own(name)];
  }
  const items = listOf(def.items);
  const rest = isSchema(def.element) ? def.element : isSchema(def.rest) ? def.rest : undefined;
  for (const [i, item] of items.entries()) yield [[i], item, Array.isArray(value) ? value[i] : undefined];
  if (rest === undefined) return;
  if (!Array.isArray(value)) yield [[items.length], rest, undefined];
  else for (let i = items.length; i < value.length; i++) yield [[i], rest, value[i]];
}

const isSchema = (found: unknown): found is z.core.$ZodType =>
  typeof found === "object" && found !== null && "_zod" in found;
const listOf = (found: unknown): z.core.$ZodType[] => (Array.isArray(found) ? found.filter(isSchema) : []);

function namesOf(value: unknown, except: object): string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.keys(value).filter((name) => !Object.hasOwn(except, name));
}

/** Where a value has what its schema marks as secret. Of a union every option counts: what one calls secret is. */
export function findMarked(schema: z.core.$ZodType, value: unknown, path: Path = []): Path[] {
  if (value === undefined || value === null) return [];
  if (isMarked(schema)) return [path];
  return [...partsOf(schema, value)].flatMap(([at, part, inner]) => findMarked(part, inner, [...path, ...at]));
}

const marks = new WeakMap<z.core.$ZodType, boolean>();

/** Whether a schema marks anything at all: asked before every attempt, so remembered. */
export function hasMarks(schema: z.core.$ZodType): boolean {
  let known = marks.get(schema);
  if (known === undefined) {
    known = looksMarked(schema, new Set());
    marks.set(schema, known);
  }
  return known;
}

function looksMarked(schema: z.core.$ZodType, seen: Set<z.core.$ZodType>): boolean {
  if (seen.has(schema)) return false;
  seen.add(schema);
  return isMarked(schema) || [...partsOf(schema, undefined)].some(([, part]) => looksMarked(part, seen));
}
