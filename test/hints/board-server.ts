import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import type { Board, BoardView } from "../../src/hints/board.ts";
import type { BoardAction } from "../../src/hints/board-actions.ts";
import { queueName } from "../../src/hints/names.ts";

type Listing = {
  queues: {
    name: string;
    displayName: string;
    counts: Record<string, number>;
    readOnlyMode: boolean;
    jobs: { id: string }[];
  }[];
};

/** Boards of tenants, by id: `/0199…`. Who puts may act, who gets may not. */
export async function serveBoards(board: Board, actions: BoardAction[]) {
  const app = express().use("/:tenant", (request, response, next) => {
    const { tenant } = request.params;
    const view: BoardView = {
      tenantId: tenant,
      title: `tenant </script> ${tenant}`,
      basePath: `/${tenant}`,
      mayAct: request.get("may") !== undefined,
      showServer: false,
      onAction: async (action) => void actions.push(action),
    };
    board.answer(view, request as never, response as never, next).catch(next);
  });
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    get: (path: string) => fetch(`${base}${path}`),
    put: (path: string, method = "PUT") =>
      fetch(`${base}${path}`, { method, headers: { may: "yes", "content-type": "application/json" }, body: "{}" }),
    async list(tenant: string, query = "") {
      return ((await (await fetch(`${base}/${tenant}/api/queues${query}`)).json()) as Listing).queues;
    },
    async close() {
      server.close();
      await once(server, "close");
    },
  };
}

/** A queue as it stands in a path. */
export const queuePath = (tenant: string, class_: string) => encodeURIComponent(queueName(tenant, class_));
