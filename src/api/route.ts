import type { Readable } from "node:stream";
import type { z } from "zod";
import type { ApiContext, Caller, Role } from "./context.ts";
import type { ProblemCode, SuccessKind } from "./problems/catalogue.ts";
import type { Arrival } from "./sessions/same-origin.ts";
import type { Session } from "./sessions/session.ts";

export type Method = "get" | "post" | "put" | "patch" | "delete";

export type Call<Params, Query, Body> = Arrival & {
  params: Params;
  query: Query;
  body: Body;
  /** The body as it was sent, before defaults: what an idempotency key is compared over. */
  sentBody: unknown;
  /** By whose cookie the call was made; undefined where a credential came along. */
  session: Session | undefined;
  requestId: string;
  /** Nobody waits for the answer any more. */
  gone: AbortSignal;
  /** The body as it comes, of a route that `streams`. */
  stream: Readable | undefined;
};

/** An answer. `body` is sent as JSON, `text` as it is, `stream` byte by byte; one of them at most. */
export type Reply = {
  kind: SuccessKind;
  headers?: Readonly<Record<string, string>>;
  body?: unknown;
  text?: string;
  stream?: Readable;
};

export type Answer = { kind: SuccessKind; description: string; schema?: z.ZodType; mediaType?: string };

type Shared<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType> = {
  method: Method;
  /** OpenAPI style: `/v1/schedules/{schedule}`. */
  path: string;
  tag:
    | "schedules"
    | "calendars"
    | "runs"
    | "effects"
    | "workers"
    | "dead-letters"
    | "operations"
    | "audit"
    | "quotas"
    | "api-keys"
    | "webhooks"
    | "signing-keys"
    | "tenants"
    | "service";
  summary: string;
  description?: string;
  /** Its reads see every tenant. Absent: the caller's own, whatever they ask for. */
  sees?: "every-tenant";
  params: Params;
  query: Query;
  /** Request headers that mean something here, for the reference page; handlers read them with `header`. */
  headers?: z.ZodObject;
  /** Absent: the route takes no body. A schema that accepts `{}` makes the body optional. */
  body?: Body;
  /** A body that is accepted, for the reference page. */
  example?: z.input<Body>;
  answer: Answer;
  /** Its body is bytes, which the handler takes as they come. */
  streams?: true;
  /** It changes nothing although its method is no GET: callers of a suspended tenant may call it. */
  onlyReads?: true;
  /** What runs goes on while its tenant is suspended: what is said of it is heard. */
  whileSuspended?: true;
  /** What runs depends on it: it is counted apart from other calls of workers, so that those take nothing from it. */
  keepsRunsGoing?: true;
  /** It is opened also by the callback token of an attempt, which opens nothing else. */
  callbacks?: true;
  /** The problems this route is known for; the general ones (authentication, limits, faults) go without saying. */
  problems: readonly ProblemCode[];
};

export type Route<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
> =
  | (Shared<Params, Query, Body> & {
      roles: readonly Role[];
      handle(
        call: Call<z.output<Params>, z.output<Query>, z.output<Body>>,
        context: ApiContext,
        caller: Caller,
      ): Promise<Reply> | Reply;
    })
  | (Shared<Params, Query, Body> & {
      roles: "everybody";
      handle(
        call: Call<z.output<Params>, z.output<Query>, z.output<Body>>,
        context: ApiContext,
      ): Promise<Reply> | Reply;
    });

/** Ties a handler's types to the schemas beside it; the table of routes then only needs the common shape. */
export function defineRoute<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType>(
  route: Route<Params, Query, Body>,
): Route {
  return route as unknown as Route;
}
