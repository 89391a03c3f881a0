import type { Readable } from "node:stream";
import { parseImage, registryOf } from "../../../domain/containers/image.ts";
import { permanentFailure, transientFailure } from "../../outcome.ts";
import { type Connection, engineRefused, wordsOf } from "./connection.ts";

/** Who we are to a registry, by its name as in `registry.example.com` or `docker.io`. */
export type RegistryAccounts = ReadonlyMap<string, { username: string; password: string }>;

/** A registry may be slow, but says something now and then. */
const PULL_MS = 30 * 60_000;
const NOT_THERE = /not found|manifest unknown|no such image|name unknown|repository does not exist/i;

/**
 * Fetches an image. The signal ends the waiting for it.
 * @throws JobFailure `image-missing` where the registry has none, `image-pull-failed` where it may yet be had.
 */
export async function pullImage(
  { docker, call }: Connection,
  image: string,
  accounts: RegistryAccounts,
  signal: AbortSignal,
): Promise<void> {
  const parsed = parseImage(image)!;
  const account = accounts.get(registryOf(parsed));
  const auth = account === undefined ? {} : { authconfig: { ...account, serveraddress: registryOf(parsed) } };
  const fault = await call(
    async (options) => {
      const reference =
        parsed.digest === undefined ? { fromImage: parsed.name, tag: parsed.tag } : { fromImage: image };
      const progress = (await docker.createImage({ ...auth, ...reference, ...options })) as Readable;
      options.abortSignal.addEventListener("abort", () => progress.destroy(new Error("aborted")));
      return faultIn(progress);
    },
    { withinMs: PULL_MS, signal },
  ).catch((error) => {
    signal.throwIfAborted();
    const failure = engineRefused(error);
    if (failure.code !== "engine-error") throw failure;
    return wordsOf(error);
  });
  if (fault === undefined) return;
  const message = `the image ${image} could not be fetched: ${fault}`;
  throw NOT_THERE.test(fault)
    ? permanentFailure("image-missing", message)
    : transientFailure("image-pull-failed", message);
}

/** How far a pull is comes as lines of JSON, of which the last may say that it failed. */
async function faultIn(progress: Readable): Promise<string | undefined> {
  let fault: string | undefined;
  let left = "";
  for await (const part of progress) {
    const lines = (left + String(part)).split("\n");
    left = lines.pop()!;
    for (const line of lines) fault = errorIn(line) ?? fault;
  }
  return errorIn(left) ?? fault;
}

function errorIn(line: string): string | undefined {
  try {
    const { error } = JSON.parse(line) as { error?: unknown };
    return typeof error === "string" && error !== "" ? error : undefined;
  } catch {
    return undefined;
  }
}
