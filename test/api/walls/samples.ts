import { z } from "zod";
import type { Route } from "../../../src/api/route.ts";
import { mintId, showId } from "../../../src/kernel/ids.ts";
import type { Estate } from "./estate.ts";

/**
 * What a route's parameters, query and body can name of a tenant. Whatever a route takes is in one of these lists, or the
 * tests of the walls say which route takes something that they do not know.
 */

/** Words that name nothing of anybody. */
const PLAIN_PARAMETERS: Readonly<Record<string, string>> = { revision: "1", class: "short", version: "1" };

const PLAIN_QUERY = new Set(
  "state status fault class trigger reason kind from to order limit count against resolution version role action outcome attempt fromByte tailBytes".split(
    " ",
  ),
);

/** Values of another tenant, by the name of the query parameter. */
const NAMING_QUERY: Readonly<Record<string, (estate: Estate) => readonly string[]>> = {
  scheduleId: ({ things }) => things.schedule!.filter((ref) => !ref.startsWith("key:")),
  schedule: ({ things }) => things.schedule!,
  runId: ({ things }) => things.run!,
  keyId: ({ things }) => things.key!,
  tenant: ({ tenant }) => [tenant],
  requestKey: ({ requestKey }) => [requestKey],
  requestId: ({ requestId }) => [requestId],
  label: ({ mark }) => [`team:${mark}`, `team=${mark}`],
  fingerprint: ({ fingerprint }) => [fingerprint],
  actor: ({ things }) => things.key!,
  subject: ({ things }) => [...things.schedule!, ...things.run!],
  q: ({ mark }) => [mark],
  search: ({ mark }) => [mark],
};

/** Fields of bodies that name something that is there already. */
const NAMING_FIELDS: Readonly<Record<string, (estate: Estate) => unknown>> = {
  calendars: ({ things }) => [{ name: things.calendar![0], onExcluded: "exclude" }],
  scheduleIds: ({ things }) => [things.schedule![0]],
  "filter.scheduleId": ({ things }) => things.schedule![0],
  "filter.fingerprint": ({ fingerprint }) => fingerprint,
  runId: ({ things }) => things.run![0],
  "output.objectId": () => showId("obj", mintId(0, 0)),
  objectId: () => showId("obj", mintId(0, 0)),
};
const LOOKS_LIKE_A_NAME =
  /(^|\.)(\w*(Ids?|Keys?)|id|key|ref|runs?|schedules?|calendars?|tenants?|effects?|objects?|operations?|actors?|subjects?|secrets?|after|cursor|fingerprint|actionId)$/;
/** Fields that look like it, and name something new or of the caller's own. */
const NEW_NAMES = new Set([
  "POST /v1/schedules: key",
  "PUT /v1/schedules/{schedule}: key",
  "POST /v1/session: key",
  "POST /v1/worker/claim: claimId",
  // Of an email, whose subject is its own.
  "PUT /v1/email-templates/{template}: subject",
  // Declared in place, not referred to.
  "POST /v1/schedules: effects",
  "PUT /v1/schedules/{schedule}: effects",
  "PATCH /v1/schedules/{schedule}: effects",
  "POST /v1/schedules/{schedule}/preview: effects",
  "POST /v1/runs: effects",
  // How many, in place of which.
  "PUT /v1/quotas: schedules",
]);

/** Of a message to the tenant's own broker: it names nothing here. */
const OF_ELSEWHERE = new Set(["job.routingKey"]);

export const nameOf = (route: Route) => `${route.method.toUpperCase()} ${route.path}`;

const parametersOf = (route: Route) => [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);

/** Whether the path names something of a tenant. */
export function namesSomething(route: Route): boolean {
  return parametersOf(route).some((name) => !(name in PLAIN_PARAMETERS));
}

/** The route's path with every combination of an estate's things. Throws for a parameter that nobody has heard of. */
export function pathsOf(route: Route, estate: Estate): string[] {
  let paths = [route.path];
  for (const name of parametersOf(route)) {
    const plain = PLAIN_PARAMETERS[name];
    const values = plain === undefined ? estate.things[name] : [plain];
    if (values === undefined || values.length === 0)
      throw new Error(`no sample for parameter ${name} of ${nameOf(route)}`);
    paths = paths.flatMap((path) => values.map((value) => path.replace(`{${name}}`, encodeURIComponent(value))));
  }
  return paths;
}

/** Queries that name something of the estate, one at a time. Throws for one that nobody has heard of. */
export function queriesOf(route: Route, estate: Estate, cursors: ReadonlyMap<string, string>): string[] {
  return Object.keys(route.query.shape).flatMap((name) => {
    if (PLAIN_QUERY.has(name)) return [];
    // Signed links have a test of their own.
    if (route.path === "/v1/objects/{run}") return [];
    if (name === "after") {
      const cursor = cursors.get(nameOf(route));
      if (cursor === undefined) throw new Error(`no cursor of ${nameOf(route)}`);
      return [`after=${cursor}`, `limit=1&after=${cursor}`];
    }
    const values = NAMING_QUERY[name]?.(estate);
    if (values === undefined) throw new Error(`no sample for query parameter ${name} of ${nameOf(route)}`);
    return values.map((value) => `${name}=${encodeURIComponent(value)}`);
  });
}

/** A body that the route takes; what is bound to its moment is put right. */
export function bodyOf(route: Route): Record<string, unknown> | undefined {
  if (route.body === undefined) return undefined;
  const example = structuredClone(route.example ?? {}) as Record<string, unknown>;
  // The estates' schedules have been edited once.
  if ("expectedRevision" in example) example.expectedRevision = 2;
  if (route.path.endsWith("/backfill")) {
    const to = Math.floor(Date.now() / 3_600_000) * 3_600_000;
    Object.assign(example, { from: new Date(to - 7_200_000).toISOString(), to: new Date(to).toISOString() });
  }
  return example;
}

/** Bodies with one field that names something of the estate. Throws for one that nobody has heard of. */
export function bodiesNaming(route: Route, estate: Estate): { field: string; body: Record<string, unknown> }[] {
  return fieldsOf(route).flatMap((field) => {
    const value = NAMING_FIELDS[field]?.(estate);
    if (value !== undefined) return [{ field, body: withField(bodyOf(route)!, field.split("."), value) }];
    const isNew = OF_ELSEWHERE.has(field) || NEW_NAMES.has(`${nameOf(route)}: ${field}`);
    if (LOOKS_LIKE_A_NAME.test(field) && !isNew) {
      throw new Error(`no sample for field ${field} of ${nameOf(route)}`);
    }
    return [];
  });
}

type JsonSchema = { properties?: Record<string, JsonSchema>; anyOf?: JsonSchema[]; oneOf?: JsonSchema[] };

/** Names of the body's fields, down to two levels: what is deeper is a rule, a job or an effect. */
function fieldsOf(route: Route): string[] {
  if (route.body === undefined) return [];
  const walk = ({ properties, anyOf, oneOf }: JsonSchema, depth: number): string[] => [
    ...Object.entries(properties ?? {}).flatMap(([name, schema]) => [
      name,
      ...(depth > 0 ? walk(schema, depth - 1).map((inner) => `${name}.${inner}`) : []),
    ]),
    ...[...(anyOf ?? []), ...(oneOf ?? [])].flatMap((schema) => walk(schema, depth)),
  ];
  return [...new Set(walk(z.toJSONSchema(route.body, { io: "input", unrepresentable: "any" }) as JsonSchema, 1))];
}

function withField(
  body: Record<string, unknown>,
  [name = "", ...rest]: string[],
  value: unknown,
): Record<string, unknown> {
  const inner = rest.length === 0 ? value : withField({ ...(body[name] as object | undefined) }, rest, value);
  return { ...body, [name]: inner };
}
