import type { Dispatcher } from "undici";
import type { Clock } from "../../kernel/clock.ts";
import { CRUMBS, createFlood } from "../../kernel/flood.ts";

/** The answer comes in a way that is there to keep us busy. */
class Crumbs extends Error {}

/** 1xx before the answer. Servers send one or two, or one now and then to say that they are still at it. */
const INTERIM = { ...CRUMBS, most: 100, least: 1 };

/**
 * Ends answers that come fast and bring next to nothing: bytes one by one, and interim answers without end. They would
 * reach no limit of bytes in time, and some dozens at once hold up all that a process does. One that drips costs nothing.
 */
export function refuseCrumbs(clock: Pick<Clock, "monotonic">): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const isFloodOfPieces = createFlood(clock, CRUMBS);
    const isFloodOfInterim = createFlood(clock, INTERIM);
    return dispatch(options, {
      onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
      onRequestUpgrade: (...upgraded) => handler.onRequestUpgrade?.(...upgraded),
      onBodySent: (chunk) => handler.onBodySent?.(chunk),
      onRequestSent: () => handler.onRequestSent?.(),
      onResponseStarted: () => handler.onResponseStarted?.(),
      onResponseStart(controller, status, headers, text) {
        if (status < 200 && isFloodOfInterim(0)) {
          return controller.abort(new Crumbs("a flood of interim answers (1xx)"));
        }
        handler.onResponseStart?.(controller, status, headers, text);
      },
      onResponseData(controller, chunk) {
        if (isFloodOfPieces(chunk.length)) {
          return controller.abort(new Crumbs(`a flood of pieces of less than ${CRUMBS.least} bytes`));
        }
        handler.onResponseData?.(controller, chunk);
      },
      onResponseEnd: (controller, trailers) => handler.onResponseEnd?.(controller, trailers),
      onResponseError: (controller, error) => handler.onResponseError?.(controller, error),
    });
  };
}
