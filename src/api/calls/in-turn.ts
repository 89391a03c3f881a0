import type { Response } from "express";
import { showId } from "../../kernel/ids.ts";
import type { Turn } from "../../kernel/turns.ts";
import type { Reads } from "../../store/database.ts";
import type { ApiContext, Caller } from "../context.ts";
import { Problem } from "../problems/problem.ts";
import type { Route } from "../route.ts";

/**
 * The turns of one call at the database's connections, in the line of the tenant whose credential it is, also where it
 * acts for another. What keeps runs going waits for none of that tenant's other calls.
 */
export function turnOf(context: ApiContext, response: Response, caller: Caller, route?: Route): Turn {
  return context.authority.db.turns.take({
    of: caller.homeTenantId,
    comesFirst: route?.keepsRunsGoing === true,
    gone: goneOf(response),
    refuse(waiting) {
      const quota = "waitingCalls";
      context.metrics.quotaRefusals.inc({ quota });
      const tenant = showId("ten", caller.homeTenantId);
      return new Problem("quota-exceeded", `${waiting} calls of ${tenant} wait here already`, {
        more: { quota, limit: waiting, used: waiting },
        headers: { "retry-after": "5" },
      });
    },
  });
}

/** The same reads, each in its turn. */
export function readsInTurn(reads: Reads, turn: Turn): Reads {
  return {
    query: (statement, values) => turn(() => reads.query(statement, values)),
    queryWithin: (timeoutMs, statement, values) => turn(() => reads.queryWithin(timeoutMs, statement, values)),
    transact: (options, work) => turn(() => reads.transact(options, work)),
  };
}

/** Aborted as soon as nobody waits for this answer any more. */
export function goneOf(response: Response): AbortSignal {
  const gone = new AbortController();
  const abort = () => gone.abort(new Problem("invalid-request", "The caller has gone before its answer"));
  if (response.destroyed) abort();
  response.once("close", abort);
  return gone.signal;
}
