import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

export type Registry = {
  /** `127.0.0.1:port` */
  host: string;
  /** `METHOD path`, with who asked. */
  asked: { path: string; user: string | undefined }[];
  /** Serves what `podman save --format oci-dir` has written as `team/app:1`; answers its digest. */
  serve(folder: string): string;
  close(): Promise<void>;
};

const ACCOUNT = "robot:pass";

/** A registry with one image, for whoever knows its password. Reads only. */
export async function startRegistry(): Promise<Registry> {
  let folder = "";
  let digest = "";
  const asked: Registry["asked"] = [];
  const blob = (name: string) => readFileSync(join(folder, "blobs", name.replace(":", "/")));
  const server = createServer((request, response) => {
    const [, basic] = /^Basic (.+)$/.exec(request.headers.authorization ?? "") ?? [];
    const user = basic === undefined ? undefined : Buffer.from(basic, "base64").toString();
    asked.push({ path: request.url!, user });
    if (user !== ACCOUNT) return response.writeHead(401, { "www-authenticate": 'Basic realm="registry"' }).end("{}");
    if (request.url === "/v2/") return response.writeHead(200).end("{}");
    const [, kind, name] = /^\/v2\/team\/app\/(manifests|blobs)\/(.+)$/.exec(request.url!) ?? [];
    if (kind === undefined || (kind === "manifests" && name !== "1" && name !== digest)) {
      const errors = [{ code: "MANIFEST_UNKNOWN", message: "manifest unknown" }];
      return response.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify({ errors }));
    }
    const bytes = blob(kind === "manifests" ? digest : name!);
    const type = kind === "manifests" ? "application/vnd.oci.image.manifest.v1+json" : "application/octet-stream";
    response.writeHead(200, {
      "content-type": type,
      "content-length": bytes.length,
      "docker-content-digest": kind === "manifests" ? digest : name!,
    });
    return response.end(request.method === "HEAD" ? undefined : bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    serve(from) {
      folder = from;
      const index = JSON.parse(readFileSync(join(from, "index.json"), "utf8")) as { manifests: { digest: string }[] };
      digest = index.manifests[0]!.digest;
      return digest;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
