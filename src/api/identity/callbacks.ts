import type { CallbackTokens } from "../../domain/jobs/callback-token.ts";
import type { Clock } from "../../kernel/clock.ts";
import { showId } from "../../kernel/ids.ts";
import type { Queryable } from "../../store/database.ts";
import { findTenant, type TenantView } from "../../store/reads/tenants/tenants.ts";
import type { Caller } from "../context.ts";
import { Problem } from "../problems/problem.ts";
import { boundsOf } from "./tenant-bounds.ts";
import { trustedRows } from "./trusted-rows.ts";

/** Who calls with the token of one attempt (`cb_…`), on the few routes that take them. */
export type Callbacks = {
  isToken(credential: string | undefined): credential is string;
  /** Throws `unauthenticated` for what we have not signed, or what is over. */
  authenticate(token: string): Promise<Caller>;
};

export function createCallbacks(deps: { tokens: CallbackTokens; db: Queryable; clock: Clock }): Callbacks {
  const { tokens, db, clock } = deps;
  const tenantOf = trustedRows<TenantView>(clock, (id) => findTenant(db, id));
  return {
    isToken: (credential): credential is string => credential?.startsWith("cb_") ?? false,
    async authenticate(token) {
      const subject = tokens.read(token, clock.now());
      const tenant = subject && (await tenantOf(subject.tenantId));
      if (subject === undefined || tenant === undefined) {
        throw new Problem("unauthenticated", "The callback token is not one of ours, or is over", {
          headers: { "www-authenticate": 'Bearer realm="punctual"' },
        });
      }
      return {
        ...boundsOf(tenant),
        homeTenantId: tenant.id,
        credential: { kind: "callback", subject, endsAt: subject.endsAt },
        role: "worker",
        actingFor: false,
        actor: `callback:${showId("run", subject.runId)}`,
      };
    },
  };
}
