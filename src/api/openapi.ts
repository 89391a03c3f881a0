import { z } from "zod";
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponsesObject,
} from "zod-openapi";
import { PROBLEM } from "./examples.ts";
import { TENANT_HEADER } from "./identity/acting.ts";
import { PROBLEMS, type ProblemCode, SUCCESS } from "./problems/catalogue.ts";
import { statusOf } from "./problems/problem.ts";
import type { Route } from "./route.ts";

const problemSchema = z
  .object({
    type: z.url(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string(),
    code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]).describe("Stable; decide by this"),
    retryable: z.boolean().describe("Whether the same request may succeed later"),
    requestId: z.string(),
    errors: z
      .array(
        z.object({
          field: z.string(),
          message: z.string(),
          found: z.string().optional(),
          allowed: z.string().optional(),
          didYouMean: z.string().optional(),
        }),
      )
      .optional(),
  })
  .meta({
    id: "Problem",
    description: "RFC 9457 problem details; some codes add members of their own",
    example: PROBLEM,
  });

/** OpenAPI 3.1, made from the same table and schemas that answer the calls. */
export function createOpenApi(routes: readonly Route[], info: { version: string; publicUrl: string }) {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route) };
  }
  const document: ZodOpenApiObject = {
    openapi: "3.1.0",
    info: {
      title: "Punctual",
      version: info.version,
      description:
        "A multi-tenant job scheduler: nothing due is forgotten, one run has one result, runs start on time and fairly.",
    },
    servers: [{ url: info.publicUrl }],
    security: [{ apiKey: [] }],
    tags: [
      { name: "schedules", description: "What is to run, and when" },
      { name: "calendars", description: "Days on which schedules do not run" },
      { name: "runs", description: "What ran, runs and will run" },
      { name: "dead-letters", description: "Runs that were given up, until a person has decided about them" },
      {
        name: "effects",
        description:
          "What accepted results bring about outside: emails and webhooks, each once, or known to be uncertain.",
      },
      {
        name: "workers",
        description: "The protocol of workers that are not ours, and of callbacks: docs/remote-workers.md",
      },
      {
        name: "operations",
        description: "Long work on many runs, with a row of its own: how far it is, and how to end it",
      },
      { name: "audit", description: "Who changed what, when, and from where" },
      { name: "quotas", description: "What a tenant may have and use, and what it does use" },
      { name: "api-keys", description: "Who may call for the tenant" },
      { name: "webhooks", description: "Servers that are told of what happens to runs" },
      { name: "signing-keys", description: "Keys that sign what leaves for others: HTTP jobs and webhooks" },
      { name: "tenants", description: "Who schedules belong to, for the platform's admins" },
      { name: "service", description: "The service itself" },
    ],
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          description: "`Authorization: Bearer pk_…`, or a token of the trusted issuer",
        },
      },
    },
  };
  return createDocument(document, {
    // What a double can hold exactly is no limit of ours, and the page would show it as the example.
    override({ jsonSchema }) {
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
}

function operationOf(route: Route): ZodOpenApiOperationObject {
  const { answer } = route;
  const mediaType = answer.mediaType ?? "application/json";
  return {
    operationId: operationIdOf(route),
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    ...(route.roles === "everybody" ? { security: [] } : {}),
    requestParams: {
      ...(Object.keys(route.params.shape).length > 0 ? { path: route.params } : {}),
      ...(Object.keys(route.query.shape).length > 0 ? { query: route.query } : {}),
      ...headersOf(route),
    },
    ...(route.body === undefined ? {} : { requestBody: bodyOf(route.body, route.example) }),
    responses: {
      [`${SUCCESS[answer.kind]}` as const]: {
        description: answer.description,
        content: { [mediaType]: { schema: answer.schema ?? { type: "string" } } },
      },
      ...problemResponses(route),
    },
  };
}

const everyHeader = z.object({
  [TENANT_HEADER]: z
    .string()
    .optional()
    .describe("The tenant the call is made in, `ten_…`; for admins, who act for it. Default: the caller's own"),
});

function headersOf({ headers, roles }: Route): { header?: z.ZodObject } {
  if (roles === "everybody") return headers === undefined ? {} : { header: headers };
  return { header: headers === undefined ? everyHeader : headers.extend(everyHeader.shape) };
}

function bodyOf(body: z.ZodType, example: unknown) {
  const content = { schema: body, ...(example === undefined ? {} : { example }) };
  return { required: !body.safeParse({}).success, content: { "application/json": content } };
}

/** Of every route that asks who is calling. */
const OF_CALLERS: readonly ProblemCode[] = [
  "unauthenticated",
  "forbidden",
  "tenant-not-found",
  "issuer-unreachable",
  "quota-exceeded",
  "too-many-failures",
];

function problemResponses(route: Route): ZodOpenApiResponsesObject {
  const codes = new Set<ProblemCode>(["invalid-request", "internal", "unavailable", ...route.problems]);
  if (route.roles !== "everybody") for (const code of OF_CALLERS) codes.add(code);
  if (route.body !== undefined) {
    for (const code of ["invalid-json", "body-too-large", "unsupported-media-type"] as const) codes.add(code);
  }
  if (route.method !== "get") {
    for (const code of ["outcome-unknown", "busy"] as const) codes.add(code);
    if (route.roles !== "everybody" && route.onlyReads !== true) codes.add("tenant-suspended");
  }
  const responses: ZodOpenApiResponsesObject = {};
  for (const [status, group] of Map.groupBy(codes, statusOf)) {
    responses[`${status as 400}`] = {
      description: group.map((code) => `\`${code}\`: ${PROBLEMS[code].title}`).join("\n\n"),
      content: { "application/problem+json": { schema: problemSchema } },
    };
  }
  return responses;
}

/** `POST /v1/schedules/{schedule}/pause` → `postSchedulesBySchedulePause` */
function operationIdOf(route: Route): string {
  const words = route.path.replace(/^\/v1/, "").split(/[/-]/).filter(Boolean);
  return (
    route.method +
    words
      .map((word) =>
        word
          .replace(/^\{(\w)(\w*)\}$/, (_, a: string, b: string) => `By${a.toUpperCase()}${b}`)
          .replace(/^[a-z]/, (a) => a.toUpperCase()),
      )
      .join("")
  );
}
