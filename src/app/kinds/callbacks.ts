import { type CallbackTokens, createCallbackTokens } from "../../domain/jobs/callback-token.ts";
import type { IssueCallback } from "../../handlers/callbacks.ts";
import { permanentFailure } from "../../handlers/outcome.ts";
import { readId } from "../../kernel/ids.ts";
import type { Config } from "../config.ts";
import { findSecret } from "../secret.ts";

/** The token's end is by this process's clock, the attempt's by the database's. That one decides. */
const SKEW_MS = 60_000;

/** `publicUrl`: where the API is reached from outside, asked when a pass is made. */
export function issueCallbacks(config: Config, publicUrl: () => string | undefined): IssueCallback {
  let known: CallbackTokens | undefined;
  // The API of this machine may make its secret after this worker has started.
  const findTokens = () => {
    const secret = config.PUNCTUAL_SECRET ?? findSecret(config.PUNCTUAL_DIR, "secret");
    known ??= secret === undefined ? undefined : createCallbackTokens(secret);
    return known;
  };
  return (run, endsAt) => {
    const url = publicUrl();
    const tokens = known ?? findTokens();
    if (tokens === undefined || url === undefined) {
      const missing = tokens === undefined ? "PUNCTUAL_SECRET" : "PUNCTUAL_PUBLIC_URL";
      throw permanentFailure(
        "callback-unavailable",
        `This worker can give nobody a callback: its operator has not set ${missing}`,
      );
    }
    const { tenantId, attempt, fence } = run;
    return {
      url: `${url.replace(/\/+$/, "")}/v1/worker`,
      token: tokens.issue({ tenantId, runId: readId("run", run.id)!, attempt, fence, endsAt: endsAt + SKEW_MS }),
    };
  };
}
