import { createServer } from "node:net";
import { operatorError } from "../kernel/errors.ts";

/** Says at once that the API's port is taken, before servers are started for nothing. Port 0 is always free. */
export async function assertPortFree(host: string, port: number): Promise<void> {
  if (port === 0) return;
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", (error: NodeJS.ErrnoException) => {
      // Whatever else is wrong with the address is told by whoever really listens.
      if (error.code !== "EADDRINUSE") return resolve();
      const way = "stop it, or choose another port with PUNCTUAL_PORT (0 takes any free one)";
      reject(
        operatorError("port-taken", `Port ${port} of ${host} is taken by another program: ${way}`, { host, port }),
      );
    });
    probe.listen(port, host, resolve);
  });
  await new Promise<void>((resolve) => {
    if (probe.listening) probe.close(() => resolve());
    else resolve();
  });
}
