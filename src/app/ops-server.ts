import { createServer } from "node:http";
import type { Service } from "../kernel/service.ts";
import type { Core } from "./core.ts";
import { createHealthProbe } from "./health.ts";

/** /healthz, /readyz and /metrics for roles that serve no API. */
export function createOpsServer(core: Core): Service {
  const health = createHealthProbe(core);
  const server = createServer((request, response) => {
    void answer(request.url ?? "").then(
      ({ status, type, body }) => response.writeHead(status, { "content-type": type }).end(body),
      () => response.writeHead(500).end(),
    );
  });

  async function answer(url: string): Promise<{ status: number; type: string; body: string }> {
    if (url === "/healthz") return { status: 200, type: "text/plain", body: "ok\n" };
    if (url === "/metrics") {
      return { status: 200, type: core.metrics.registry.contentType, body: await core.metrics.registry.metrics() };
    }
    if (url !== "/readyz")
      return { status: 404, type: "text/plain", body: "there are /healthz, /readyz and /metrics\n" };
    const { ready, reasons } = await health.readiness();
    return { status: ready ? 200 : 503, type: "text/plain", body: ready ? "ready\n" : `${reasons.join("\n")}\n` };
  }

  return {
    name: "ops-server",
    start() {
      return new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(core.config.PUNCTUAL_METRICS_PORT, core.config.PUNCTUAL_METRICS_HOST, resolve);
      });
    },
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
