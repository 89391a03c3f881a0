import type { Readable } from "node:stream";
import { Readable as Streams } from "node:stream";
import {
  ApiException,
  BatchV1Api,
  type ConfigurationOptions,
  CoreV1Api,
  HttpMethod,
  KubeConfig,
  Observable,
  type ObservableMiddleware,
  RequestContext,
  VersionApi,
} from "@kubernetes/client-node";
import { fetch } from "undici";
import type { Clock } from "../../../kernel/clock.ts";
import { messageOf, operatorError } from "../../../kernel/errors.ts";
import { JobFailure, permanentFailure, transientFailure } from "../../outcome.ts";
import { bounded } from "../bounded.ts";
import { engineUnavailable } from "../engine.ts";

/** Options that end a call with a signal. */
type Limits = ConfigurationOptions<ObservableMiddleware>;

export type Cluster = {
  batch: BatchV1Api;
  core: CoreV1Api;
  version: VersionApi;
  /** One call, which ends in time, or with the signal. Undefined: there is no such thing. */
  call<T>(say: (limits: Limits) => Promise<T>, signal?: AbortSignal): Promise<T | undefined>;
  /** A Pod's log as it comes. Undefined: there is none (yet). */
  openLog(path: string, signal: AbortSignal): Promise<Readable | undefined>;
};

/** Without a kubeconfig: by the service account of the Pod that this process runs in. */
export function connectCluster(kubeconfig: string | undefined, clock: Clock): Cluster {
  const config = loadConfig(kubeconfig);

  return {
    batch: config.makeApiClient(BatchV1Api),
    core: config.makeApiClient(CoreV1Api),
    version: config.makeApiClient(VersionApi),
    async call(say, signal) {
      try {
        return await bounded(clock, { signal }, (over) => say(limitsOf(over)));
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof ApiException && error.code === 404) return undefined;
        throw refusalOf(error);
      }
    },
    async openLog(path, signal) {
      const server = config.getCurrentCluster()!.server.replace(/\/$/, "");
      const context = new RequestContext(`${server}${path}`, HttpMethod.GET);
      const response = await bounded(clock, { signal }, async (over) => {
        await config.applySecurityAuthentication(context);
        const dispatcher = context.getDispatcher();
        return fetch(context.getUrl(), {
          headers: context.getHeaders(),
          signal: over,
          ...(dispatcher === undefined ? {} : { dispatcher: dispatcher as never }),
        });
      }).catch((error) => {
        signal.throwIfAborted();
        throw error instanceof JobFailure ? error : engineUnavailable(messageOf(error), error);
      });
      if (response.status === 200 && response.body !== null) return Streams.fromWeb(response.body);
      await response.body?.cancel();
      // Its container waits for something, or has not begun.
      if (response.status === 400 || response.status === 404) return undefined;
      throw transientFailure("engine-error", `the cluster refused the log with status ${response.status}`);
    },
  };
}

function loadConfig(kubeconfig: string | undefined): KubeConfig {
  const config = new KubeConfig();
  try {
    if (kubeconfig === undefined) config.loadFromCluster();
    else config.loadFromFile(kubeconfig);
    if (config.getCurrentCluster() === null) throw new Error("it names no cluster");
  } catch (error) {
    const where = kubeconfig ?? "this Pod's service account";
    throw operatorError(
      "config-invalid",
      `PUNCTUAL_CONTAINER_KUBECONFIG: ${where} cannot be used: ${messageOf(error)}`,
      {
        key: "PUNCTUAL_CONTAINER_KUBECONFIG",
      },
    );
  }
  return config;
}

function limitsOf(signal: AbortSignal): Limits {
  const middleware: ObservableMiddleware = {
    pre(context) {
      context.setSignal(signal);
      return new Observable(Promise.resolve(context));
    },
    post: (context) => new Observable(Promise.resolve(context)),
  };
  return { middleware: [middleware], middlewareMergeStrategy: "append" };
}

export const CONFLICT = "engine-conflict";

/** The cluster's own words; headers and bodies that the client adds to its message may hold more than is ours to tell. */
function refusalOf(error: unknown): unknown {
  if (error instanceof JobFailure) return error;
  if (!(error instanceof ApiException)) return engineUnavailable(messageOf(error), error);
  const words = wordsIn(error.body) ?? `status ${error.code}`;
  const message = `the cluster refused: ${words}`;
  if (error.code === 409) return transientFailure(CONFLICT, message);
  if (error.code === 422 || error.code === 400) return permanentFailure("container-not-started", message);
  if (error.code >= 500 || error.code === 429) return engineUnavailable(words);
  return transientFailure("engine-error", message);
}

function wordsIn(body: unknown): string | undefined {
  try {
    const status = typeof body === "string" ? (JSON.parse(body) as unknown) : body;
    const { message } = status as { message?: unknown };
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}
