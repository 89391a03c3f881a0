import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import type { Board } from "../hints/board.ts";
import type { CallLimits } from "../hints/call-limits.ts";
import type { Timer } from "../kernel/clock.ts";
import { operatorError } from "../kernel/errors.ts";
import type { Database } from "../store/database.ts";
import { createReaders } from "../store/reads/wall/readers.ts";
import { createAuthenticator } from "./auth.ts";
import { mountBoard } from "./board/mount-board.ts";
import type { ApiContext, ServerContext } from "./context.ts";
import { createCursorCodec } from "./cursor.ts";
import { createCallbacks } from "./identity/callbacks.ts";
import { createKeyUse } from "./identity/key-use.ts";
import { createTokens, type TokenConfig } from "./identity/tokens.ts";
import { endUnread } from "./input/pieces.ts";
import { guardEntrance } from "./limits/guessing.ts";
import { createLimits } from "./limits/limit-calls.ts";
import { mountProblems, mountRoutes } from "./mount.ts";
import { answerWithoutBoard, mountPages } from "./pages.ts";
import { giveRequestId } from "./request-id.ts";
import { createEntrance } from "./sessions/entrance.ts";
import { createSessions } from "./sessions/session.ts";
import { mountSignIn } from "./sessions/sign-in.ts";
import { createLinkSigner } from "./signed-link.ts";
import { ROUTES } from "./table.ts";
import { createWorkerDesk, type WorkerDeskParts } from "./worker/desk.ts";

export type ApiConfig = {
  /** Where callers reach this API when that is not where it listens (behind a proxy). */
  publicUrl?: string;
  /** Proxies whose word about callers' addresses is taken: how many stand before this API, or their addresses and ranges. */
  trustProxy?: number | readonly string[];
  /** Signs cursors, links and sessions: the same on every replica, or those of one are refused by another. */
  secret: string | Buffer;
  /** The issuer whose tokens are taken; without one, keys alone are. */
  oidc?: TokenConfig;
  /** How long open requests may take to end when the API closes. */
  closeGraceMs: number;
};

export type ApiParts = Omit<
  ApiContext,
  "db" | "cursors" | "links" | "workers" | "entrance" | "limits" | "publicUrl" | "zones"
> & {
  db: Database;
  config: ApiConfig;
  workers: WorkerDeskParts;
  /** Counts calls; without it they are not limited. */
  callLimits?: CallLimits;
  /** Where there is a Redis. */
  board: Board | undefined;
};

const HANG_UP_EVERY_MS = 50;

export type ListeningApi = { url: string; close(): Promise<void> };
export type Api = { listen(host: string, port: number): Promise<ListeningApi> };

/** The HTTP API. Starts nothing before `listen`; port 0 takes any free one. */
export function createApi(parts: ApiParts): Api {
  const { config, board } = parts;
  let publicUrl = config.publicUrl?.replace(/\/+$/, "") ?? "";
  const { db, clock } = parts;
  const keyUse = createKeyUse(parts);
  const tokens = config.oidc === undefined ? undefined : createTokens({ config: config.oidc, db, clock });
  const authenticator = createAuthenticator({ db, clock, keyUse, tokens });
  const sessions = createSessions({ secret: config.secret, clock: parts.clock });
  const workers = createWorkerDesk({ ...parts, ...parts.workers, secret: config.secret });
  const callbacks = createCallbacks({ tokens: workers.callbackTokens, db, clock });
  const entrance = createEntrance({ authenticator, callbacks, sessions, publicUrl: () => publicUrl });
  const limits = parts.callLimits === undefined ? undefined : createLimits(parts.callLimits, clock);
  const context: ServerContext = {
    ...parts,
    limits,
    readers: createReaders(parts),
    cursors: createCursorCodec(config.secret),
    links: createLinkSigner(config.secret),
    workers,
    publicUrl: () => publicUrl,
    entrance: limits === undefined ? entrance : guardEntrance(entrance, limits.guesses),
    // Another version may be adopted while this process serves.
    get zones() {
      return parts.authority.zones;
    },
  };

  const app = express();
  app.disable("x-powered-by").disable("etag").set("query parser", false).enable("case sensitive routing");
  if (config.trustProxy !== undefined) app.set("trust proxy", config.trustProxy);
  app.use(endUnread(parts.clock));
  app.use(giveRequestId(parts.clock));
  app.use((_request, response, next) => {
    response.set({ "x-content-type-options": "nosniff", "referrer-policy": "same-origin" });
    next();
  });
  mountRoutes({ app, context }, ROUTES);
  mountSignIn(app, context);
  mountPages(app, context, board !== undefined);
  if (board === undefined) app.use("/queues", answerWithoutBoard);
  else mountBoard(app, context, board);
  mountProblems(app, context);

  return {
    async listen(host, port) {
      // An upload may take its time; whoever sends anything else has a minute (input/read-request.ts).
      // What comes before a caller is known is read ahead: little, since it may come in pieces of a byte.
      const terms = { requestTimeout: 3_600_000, headersTimeout: 20_000, highWaterMark: 16_384 };
      const server = createServer(terms, app);
      await new Promise<void>((resolve, reject) => {
        server.once("error", (error: NodeJS.ErrnoException) => reject(explain(error, host, port)));
        server.listen(port, host, resolve);
      });
      const shownHost = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
      const url = `http://${shownHost.includes(":") ? `[${shownHost}]` : shownHost}:${(server.address() as AddressInfo).port}`;
      publicUrl ||= url;
      let closed: Promise<void> | undefined;
      const close = async () => {
        workers.polls.close();
        const ended = new Promise<void>((resolve) => server.close(() => resolve()));
        // Those that are answered now are idle a moment later.
        let again: Timer;
        const hangUp = () => {
          server.closeIdleConnections();
          again = parts.clock.after(HANG_UP_EVERY_MS, hangUp);
        };
        hangUp();
        const impatience = parts.clock.after(config.closeGraceMs, () => server.closeAllConnections());
        await ended;
        impatience.cancel();
        again!.cancel();
        await keyUse.close();
      };
      return {
        url,
        close: () => {
          closed ??= close();
          return closed;
        },
      };
    },
  };
}

function explain(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === "EADDRINUSE") {
    return operatorError(
      "port-taken",
      `Port ${port} of ${host} is taken by another program: stop it or choose another port`,
      { host, port },
      error,
    );
  }
  if (error.code === "EACCES") {
    return operatorError(
      "port-forbidden",
      `This account may not listen on port ${port}: choose one above 1023`,
      { host, port },
      error,
    );
  }
  return error;
}
