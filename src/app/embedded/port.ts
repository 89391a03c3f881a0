import { createServer } from "node:net";
import { operatorError } from "../../kernel/errors.ts";

/** A TCP port on 127.0.0.1 that nobody listened on a moment ago. Somebody may take it before you do: see `onFreePort`. */
function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

/** Calls `start` with free ports until it does not find its port taken meanwhile. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await start(await findFreePort());
    } catch (error) {
      if (!isPortTaken(error) || tries === 10) throw error;
    }
  }
}

export function portTaken(port: number, server: string): Error {
  return operatorError("port-taken", `Port ${port} on 127.0.0.1 is taken by another program; ${server} needs it.`, {
    port,
  });
}

function isPortTaken(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "port-taken";
}
