import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { ExpressAdapter } from "@bull-board/express";
import { Queue } from "bullmq";
import { LRUCache } from "lru-cache";
import type { HintRedis } from "./connection.ts";
import { queueName } from "./names.ts";

export type BoardLane = {
  tenantId: string;
  class: string;
  /** What people call it, e.g. "acme / short". */
  title: string;
};

/** What Express can `use`. Spelled out here because Express itself is at home in `api`. */
export type RequestHandler = (request: never, response: never, next: (error?: unknown) => void) => void;

export type Board = {
  /** Mount it at `basePath`, behind a check that the caller is an operator: it shows all tenants. */
  router: RequestHandler;
  /** Shows these queues (the first 200) and no others. Rejects while Redis does not answer. */
  show(lanes: readonly BoardLane[]): Promise<void>;
  stop(): Promise<void>;
};

const MOST_QUEUES = 200;

/**
 * Bull Board over some queues: what waits, rates, and a bounded tail of what was claimed. Retrying or adding a job there
 * would only be a duplicate hint, but pausing a queue would stop a tenant behind PostgreSQL's back: hence `read` unless asked.
 */
export function createBoard(options: { redis: HintRedis; basePath: string; access?: "read" | "write" }): Board {
  const { redis, basePath, access = "read" } = options;
  const readOnlyMode = access === "read";
  const queues = new LRUCache<string, Queue>({
    max: MOST_QUEUES,
    dispose: (queue) => void queue.close().catch(() => undefined),
  });
  const serverAdapter = new ExpressAdapter();
  serverAdapter.setBasePath(basePath);
  const board = createBullBoard({
    queues: [],
    // The two packages may bring different patch versions of the same types.
    serverAdapter: serverAdapter as never,
    options: { uiConfig: { boardTitle: "Punctual hints" } },
  });

  async function open({ tenantId, class: class_, title }: BoardLane): Promise<BullMQAdapter> {
    const root = await redis.backend();
    const name = queueName(tenantId, class_);
    let queue = queues.get(name);
    if (queue === undefined) {
      // A sibling of our backend: no connection, no listeners and no meta of its own.
      const connection = redis.client;
      const opts = { connection, prefix: redis.names.prefix, skipMetasUpdate: true };
      queue = new Queue(name, opts, () => root.forQueue(name) as typeof root);
      queue.on("error", () => undefined);
      queues.set(name, queue);
    }
    return new BullMQAdapter(queue, { readOnlyMode, displayName: title, allowRetries: !readOnlyMode });
  }

  return {
    router: serverAdapter.getRouter() as RequestHandler,
    async show(lanes) {
      board.replaceQueues(await Promise.all(lanes.slice(0, MOST_QUEUES).map(open)));
    },
    async stop() {
      board.replaceQueues([]);
      queues.clear();
    },
  };
}
