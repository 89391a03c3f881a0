import { AsyncLocalStorage } from "node:async_hooks";
import type { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import type { AppControllerRoute, AppViewRoute, UIConfig } from "@bull-board/api/typings/app";
import { ExpressAdapter } from "@bull-board/express";
import { actionOf, type BoardAction, STATUSES } from "./board-actions.ts";
import { parseHintJobId } from "./names.ts";

/** What one request may see and do: nothing else is in reach of Bull Board's handlers while they answer it. */
export type OpenView = {
  basePath: string;
  uiConfig: UIConfig;
  /** By the queues' names. */
  queues: ReadonlyMap<string, { class: string; adapter: BullMQAdapter }>;
  mayAct: boolean;
  /** Resolves once the action is on record; what cannot be recorded is not done. */
  onAction(action: BoardAction): Promise<void>;
};

type Handler = AppControllerRoute["handler"];
type BoardRequest = NonNullable<Parameters<Handler>[0]>;
type Refusal = { status: 403 | 404 | 405; body: { error: { key: "ERRORS.FORBIDDEN" }; message: string } };

/**
 * Bull Board keeps one set of queues for all its visitors. This adapter gives each request a set of its own, so that two
 * tenants' pages can be answered side by side, and asks before anything is changed. Without a view nothing is answered.
 */
export class ScopedAdapter extends ExpressAdapter {
  private readonly views = new AsyncLocalStorage<OpenView>();

  within(view: OpenView, answer: () => void): void {
    this.views.run(view, answer);
  }

  override setEntryRoute(route: AppViewRoute): this {
    super.setEntryRoute({
      ...route,
      handler: () => {
        const { basePath, uiConfig } = this.view();
        return route.handler({ basePath, uiConfig });
      },
    });
    return this;
  }

  override setApiRoutes(routes: AppControllerRoute[]): this {
    super.setApiRoutes(routes.map((route) => ({ ...route, handler: this.scoped(route) })));
    return this;
  }

  private scoped(route: AppControllerRoute): Handler {
    const reads = [route.method].flat().every((method) => method === "get");
    return async (request) => {
      const view = this.view();
      const { queueName, jobId } = request!.params as Record<string, string | undefined>;
      const lane = queueName === undefined ? undefined : view.queues.get(queueName);
      // Whoever else's queue it is, to this visitor there is none; and what names no hint would be another key of the queue.
      if (queueName !== undefined && lane === undefined) return refuse(404, "There is no such queue");
      if (jobId !== undefined && parseHintJobId(jobId) === undefined) return refuse(404, "There is no such hint");
      if (!reads) {
        const refusal = await this.act(view, route, request!, lane?.class);
        if (refusal !== undefined) return refusal;
      }
      const queues = new Map([...view.queues].map(([name, { adapter }]) => [name, adapter]));
      return route.handler({ ...request!, queues: queues as never, uiConfig: view.uiConfig });
    };
  }

  private async act(
    view: OpenView,
    route: AppControllerRoute,
    request: BoardRequest,
    class_: string | undefined,
  ): Promise<Refusal | undefined> {
    const action = actionOf(route.route);
    if (!view.mayAct) return refuse(405, "You may look at these queues, and no more");
    if (action === undefined || class_ === undefined) {
      return refuse(403, "Not from here: hints are transport. Limits are quotas, and schedules are paused by the API");
    }
    const { jobId, queueStatus } = request.params as Record<string, string | undefined>;
    if (queueStatus !== undefined && !STATUSES.has(queueStatus)) return refuse(404, "There is no such state of hints");
    await view.onAction({
      action,
      class: class_,
      ...(jobId === undefined ? {} : { hintId: jobId }),
      ...(queueStatus === undefined ? {} : { status: queueStatus }),
    });
    return undefined;
  }

  private view(): OpenView {
    const view = this.views.getStore();
    if (view === undefined) throw new Error("the board was asked outside of a view");
    return view;
  }
}

function refuse(status: Refusal["status"], message: string): Refusal {
  return { status, body: { error: { key: "ERRORS.FORBIDDEN" }, message } };
}
