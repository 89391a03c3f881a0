import type { NextFunction, Request, Response } from "express";
import type { Clock } from "../kernel/clock.ts";
import { mintId, randomBucket, showId } from "../kernel/ids.ts";

const SANE = /^[A-Za-z0-9._:-]{1,128}$/;

/** Every answer carries `X-Request-Id`: the caller's own when it is sane, else a fresh one. */
export function giveRequestId(clock: Clock) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const given = request.get("x-request-id");
    response.set(
      "x-request-id",
      given !== undefined && SANE.test(given) ? given : showId("req", mintId(clock.now(), randomBucket())),
    );
    next();
  };
}

export function requestIdOf(response: Response): string {
  return String(response.get("x-request-id"));
}
