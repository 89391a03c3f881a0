/**
 * Anything with a life. Constructors start nothing; `start` resolves when it works, `stop` when nothing of it
 * is still running. Both may be called twice.
 */
export type Service = {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
};

/** Starts services in order; if one fails, stops those already started, in reverse, and rethrows. */
export async function startAll(services: readonly Service[]): Promise<void> {
  const started: Service[] = [];
  try {
    for (const service of services) {
      await service.start();
      started.push(service);
    }
  } catch (error) {
    await stopAll(started);
    throw error;
  }
}

/** Stops services in reverse order. One that fails to stop does not keep the others alive; the first error is thrown at the end. */
export async function stopAll(services: readonly Service[]): Promise<void> {
  const errors: unknown[] = [];
  for (const service of services.toReversed()) {
    try {
      await service.stop();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
