import { fieldProblem, Problem } from "../problems/problem.ts";
import { PAYLOAD_BYTES } from "./fields.ts";

/** Each is stored with some hundred bytes around it. */
const MOST_SECRETS = 1_000;

/** `bytes`: of the payload with its secrets as they were sent, as JSON. */
export function refuseLargePayload(bytes: number): void {
  if (bytes <= PAYLOAD_BYTES) return;
  throw new Problem("payload-too-large", `payload: found ${bytes} bytes; allowed: at most ${PAYLOAD_BYTES}`);
}

export function refuseManySecrets(count: number): void {
  if (count <= MOST_SECRETS) return;
  const [found, allowed] = [`${count} secrets`, `at most ${MOST_SECRETS}; a secret may be an object or a list`];
  throw fieldProblem({ field: "payload", message: "holds too many secrets", found, allowed });
}
