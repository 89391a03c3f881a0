import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { Queue } from "bullmq";
import { OWN_CLASSES } from "../domain/definition.ts";
import { operatorError } from "../kernel/errors.ts";
import type { BoardAction } from "./board-actions.ts";
import { type OpenView, ScopedAdapter } from "./board-adapter.ts";
import type { HintRedis } from "./connection.ts";
import { queueName } from "./names.ts";

/** One visitor's look at one tenant. */
export type BoardView = {
  tenantId: string;
  /** What people call the tenant. */
  title: string;
  /** Where the page is, without a trailing slash; it asks for everything below. */
  basePath: string;
  mayAct: boolean;
  /** Whether the Redis server's own figures are shown: they are about all tenants. */
  showServer: boolean;
  links?: readonly { text: string; url: string }[];
  onAction(action: BoardAction): Promise<void>;
};

/** What Express can call. Spelled out here because Express itself is at home in `api`. */
export type BoardHandler = (request: never, response: never, next: (error?: unknown) => void) => void;

export type Board = {
  /**
   * Answers one request of the page or of its API, below `basePath`, within the view: the tenant's queues, one of each
   * class, and no others. Rejects while Redis does not answer.
   */
  answer(view: BoardView, ...call: Parameters<BoardHandler>): Promise<void>;
};

/**
 * Bull Board over one tenant at a time: what waits, rates, and a bounded tail of what was claimed. Queues are opened for
 * the request that looks at them and forgotten with it; they are siblings of our backend, without a connection, a
 * listener or a meta hash of their own, so any number of tenants costs nothing until somebody looks.
 */
export function createBoard(options: { redis: HintRedis }): Board {
  const { redis } = options;
  const serverAdapter = new ScopedAdapter();
  createBullBoard({
    queues: [],
    // The two packages may bring different patch versions of the same types.
    serverAdapter: serverAdapter as never,
    options: { uiConfig: {} },
  });
  const router = serverAdapter.getRouter() as BoardHandler;

  async function open({ tenantId, mayAct }: BoardView): Promise<OpenView["queues"]> {
    const root = await redis.backend().catch((error: unknown) => {
      throw operatorError("redis-away", "Redis does not answer", {}, error);
    });
    return new Map(
      OWN_CLASSES.map((class_) => {
        const name = queueName(tenantId, class_);
        const opts = { connection: redis.client, prefix: redis.names.prefix, skipMetasUpdate: true };
        const queue = new Queue(name, opts, () => root.forQueue(name) as typeof root);
        queue.on("error", () => undefined);
        const adapter = new BullMQAdapter(queue, { readOnlyMode: !mayAct, displayName: class_, allowRetries: mayAct });
        return [name, { class: class_, adapter }];
      }),
    );
  }

  return {
    async answer(view, request, response, next) {
      const { title, basePath, mayAct, showServer, links = [], onAction } = view;
      const uiConfig = {
        boardTitle: `${title}: hints`,
        miscLinks: [...links],
        hideDocsLink: true,
        hideRedisDetails: !showServer,
        // Nobody consumes these queues by BullMQ's workers; looking for them lists all clients of the server.
        showWorkers: false,
        sortQueues: false,
      };
      const opened = { basePath, uiConfig, mayAct, onAction, queues: await open(view) };
      serverAdapter.within(opened, () => router(request, response, next));
    },
  };
}
