import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the API server would keep, in the shapes it answers in. */
export type Stored = {
  job: Record<string, unknown> & { metadata: Record<string, unknown> };
  /** The container's state as its Pod's status has it; undefined: the Pod has not been made. */
  state?: Record<string, unknown>;
  podPhase: string;
  log: string;
};

export type Cluster = {
  url: string;
  jobs: Map<string, Stored>;
  /** `POST /apis/batch/v1/…`, in order, with bodies. */
  calls: { method: string; path: string; query: Record<string, string>; authorization: string; body: unknown }[];
  /** Answers the next calls with this status, as a cluster in trouble does. */
  failWith: number | undefined;
  /** Happens between the making of a Job and the answer. */
  onMade: (() => void) | undefined;
  close(): Promise<void>;
};

const NAMESPACE = "/namespaces/punctual-jobs";

/** A server that answers as a cluster does: enough of its API for Jobs, their Pods and their logs. Nothing runs in it. */
export async function startCluster(): Promise<Cluster> {
  const jobs = new Map<string, Stored>();
  const calls: Cluster["calls"] = [];
  let made = 0;
  const cluster: Cluster = {
    url: "",
    jobs,
    calls,
    failWith: undefined,
    onMade: undefined,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };

  const server = createServer(async (request, response) => {
    const url = new URL(request.url!, "http://cluster");
    const body = await bodyOf(request);
    const query = Object.fromEntries(url.searchParams);
    calls.push({
      method: request.method!,
      path: url.pathname,
      query,
      authorization: request.headers.authorization ?? "",
      body,
    });
    if (cluster.failWith !== undefined)
      return refuse(response, cluster.failWith, "InternalError", "etcd is in trouble");
    const [, kind, name, part] =
      new RegExp(`${NAMESPACE}/(jobs|pods)(?:/([^/]+))?(?:/([^/]+))?$`).exec(url.pathname) ?? [];
    if (url.pathname.startsWith("/version"))
      return answer(response, 200, { major: "1", minor: "34", gitVersion: "v1.34.0" });
    if (kind === "jobs") return ofJobs(request.method!, name, query, body, response);
    if (part === "log") {
      response.writeHead(200, { "content-type": "text/plain" });
      return response.end([...jobs.values()].find((one) => podNameOf(one) === name)?.log);
    }
    if (request.method === "DELETE") return answer(response, 200, { kind: "Status", status: "Success" });
    return answer(response, 200, {
      kind: "PodList",
      apiVersion: "v1",
      metadata: {},
      items: podsOf(query.labelSelector!),
    });
  });

  function ofJobs(
    method: string,
    name: string | undefined,
    query: Record<string, string>,
    body: unknown,
    response: ServerResponse,
  ) {
    if (method === "POST") {
      const job = body as Stored["job"];
      const called = String(job.metadata.name);
      if (jobs.has(called)) return refuse(response, 409, "AlreadyExists", `jobs.batch "${called}" already exists`);
      job.metadata = { ...job.metadata, uid: `uid-${++made}`, creationTimestamp: "2026-11-30T12:00:00Z" };
      jobs.set(called, { job, podPhase: "Pending", log: "" });
      cluster.onMade?.();
      return answer(response, 201, { ...job, status: {} });
    }
    if (name === undefined) {
      const [key, value] = (query.labelSelector ?? "").split("=");
      const items = [...jobs.values()]
        .map((one) => one.job)
        .filter((job) => key === "" || labelsOf(job)[key!] === value);
      return answer(response, 200, { kind: "JobList", apiVersion: "batch/v1", metadata: {}, items });
    }
    const found = jobs.get(name);
    if (found === undefined) return refuse(response, 404, "NotFound", `jobs.batch "${name}" not found`);
    if (method !== "DELETE") return answer(response, 200, found.job);
    const { preconditions } = body as { preconditions?: { uid: string } };
    if (preconditions?.uid !== found.job.metadata.uid)
      return refuse(response, 409, "Conflict", "the UID in the precondition does not match");
    jobs.delete(name);
    return answer(response, 200, { kind: "Status", apiVersion: "v1", status: "Success" });
  }

  function podsOf(selector: string) {
    return [...jobs.values()].flatMap((one) => {
      if (one.state === undefined || selector !== `batch.kubernetes.io/controller-uid=${one.job.metadata.uid}`)
        return [];
      return [
        {
          metadata: { name: podNameOf(one), creationTimestamp: "2026-11-30T12:00:01Z" },
          status: { phase: one.podPhase, containerStatuses: [{ name: "job", state: one.state }] },
        },
      ];
    });
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cluster.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return cluster;
}

const podNameOf = ({ job }: Stored) => `${job.metadata.name}-x7k2p`;
const labelsOf = (job: Stored["job"]) => (job.metadata.labels ?? {}) as Record<string, string>;

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function refuse(response: ServerResponse, code: number, reason: string, message: string): void {
  answer(response, code, { kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code });
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const part of request) text += String(part);
  return text === "" ? undefined : JSON.parse(text);
}
