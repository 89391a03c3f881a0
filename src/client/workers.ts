import type { Http } from "./http.ts";

/** A worker that was heard of lately: the installation's, or one of the tenant's own. Instants are RFC 3339 in UTC. */
export type Worker = {
  name: string;
  kind: "own" | "installation";
  /** Runs at once, per class. */
  slots: Record<string, number>;
  /** Remote jobs that it does, `name@version`. */
  jobs: string[];
  version: string;
  startedAt: string;
  seenAt: string;
};

export type Workers = {
  /** The tenant's own first; at most 1,000. */
  list(): Promise<{ items: Worker[] }>;
};

export function workersOf(http: Http): Workers {
  return { list: () => http.call({ path: "/v1/workers" }) };
}
