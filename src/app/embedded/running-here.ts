import { operatorError } from "../../kernel/errors.ts";
import { findWhereabouts } from "../cli/whereabouts.ts";
import { findSecret } from "../secret.ts";

const PATIENCE_MS = 2_000;

/**
 * Says that this data directory has its system already, before another one meets its ports and locks. One that was killed
 * has left its address behind, where a stranger may listen by now: only our own knows our key.
 */
export async function assertNotRunningHere(directory: string): Promise<void> {
  const { url } = findWhereabouts(directory);
  const key = findSecret(directory, "key");
  if (url === undefined || key === undefined || !(await knowsKey(url, key))) return;
  throw operatorError("already-running", `Punctual is already running here at ${url}`, { url });
}

async function knowsKey(url: string, key: string): Promise<boolean> {
  try {
    const headers = { authorization: `Bearer ${key}` };
    const answer = await fetch(new URL("/v1/me", url), { headers, signal: AbortSignal.timeout(PATIENCE_MS) });
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}
