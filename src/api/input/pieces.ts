import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Clock } from "../../kernel/clock.ts";
import { CRUMBS, createFlood, type FloodTerms } from "../../kernel/flood.ts";
import { Problem } from "../problems/problem.ts";

/** Whoever was answered may go on with its body for so long, and so much of that is read: then it sees the answer. */
const REST = { ms: 5_000, bytes: 1_048_576 };

/** Hears of each piece of a body. Throws for the one with which it has become a flood of next to nothing. */
export function refuseCrumbs(clock: Clock, terms: FloodTerms): (bytes: number) => void {
  const isFlood = createFlood(clock, terms);
  return (bytes) => {
    if (!isFlood(bytes)) return;
    const found = `${terms.most.toLocaleString("en")} pieces of less than ${terms.least} bytes`;
    throw new Problem(
      "invalid-request",
      `body: found ${found} on average; allowed: larger pieces, or all at once with Content-Length`,
    );
  };
}

/** Ends connections whose callers go on to send, as if there were no end, after they were answered. */
export function endUnread(clock: Clock): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    // Before `finish`: from then on Node reads all that comes, for as long as it comes, and tells nobody.
    response.once("prefinish", () => {
      if (!request.complete && !request.destroyed) takeRest(request, clock);
    });
    next();
  };
}

function takeRest(request: Request, clock: Clock): void {
  const patience = clock.after(REST.ms, () => request.destroy());
  request.once("close", () => patience.cancel());
  // A flood already.
  if (request.isPaused()) return;
  const isFlood = createFlood(clock, CRUMBS);
  let bytes = 0;
  request.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > REST.bytes || isFlood(piece.length)) request.pause();
  });
  request.resume();
}
