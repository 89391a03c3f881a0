import { createBoard } from "../hints/board.ts";
import { sql } from "../store/database.ts";
import type { Core } from "./core.ts";

const LANES = sql(
  "board_lanes",
  `select u.tenant_id as "tenantId", u.class, t.name from usage u join tenant t on t.id = u.tenant_id
    order by u.running desc, t.name limit 200`,
);

type Handler = (request: never, response: never, next: (error?: unknown) => void) => void;

/** Bull Board at /queues: the lanes that have run something, looked up anew at each visit of the page. */
export function createQueueBoard(core: Core): { router: Handler; stop(): Promise<void> } | undefined {
  if (core.redis === undefined) return undefined;
  const board = createBoard({ redis: core.redis.connection, basePath: "/queues" });
  return {
    router(request, response, next) {
      void core.db
        .query<{ tenantId: string; class: string; name: string }>(LANES)
        .then((lanes) =>
          board.show(
            lanes.map((lane) => ({ tenantId: lane.tenantId, class: lane.class, title: `${lane.name} ${lane.class}` })),
          ),
        )
        .then(
          () => board.router(request, response, next),
          (error: unknown) => next(error),
        );
    },
    stop: () => board.stop(),
  };
}
