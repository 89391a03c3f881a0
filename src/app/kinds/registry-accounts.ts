import { readFileSync } from "node:fs";
import { z } from "zod";
import type { RegistryAccounts } from "../../handlers/containers/docker/pull.ts";
import { operatorError } from "../../kernel/errors.ts";

/** As `docker login` and `podman login` write it: user and password in base64, by registry. */
const schema = z.looseObject({ auths: z.record(z.string(), z.looseObject({ auth: z.string() })) });

/** Docker's own name for its registry. */
const DOCKER_HUB = "index.docker.io";

/** @throws operator error `config-invalid`, which says nothing of what stands in the file. */
export function readRegistryAccounts(file: string): RegistryAccounts {
  const refused = (what: string) =>
    operatorError("config-invalid", `PUNCTUAL_CONTAINER_REGISTRIES: ${file} ${what}`, {
      key: "PUNCTUAL_CONTAINER_REGISTRIES",
    });
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    throw refused("cannot be read, or is no JSON");
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success)
    throw refused('is not like {"auths": {"registry.example.com": {"auth": "base64 of user:password"}}}');
  return new Map(
    Object.entries(parsed.data.auths).map(([registry, { auth }]) => {
      const text = Buffer.from(auth, "base64").toString("utf8");
      const colon = text.indexOf(":");
      if (colon < 1) throw refused(`has no user and password for ${registry}`);
      const host = registry.replace(/^https?:\/\//, "").replace(/\/.*$/, "");
      const name = host === DOCKER_HUB ? "docker.io" : host;
      return [name, { username: text.slice(0, colon), password: text.slice(colon + 1) }];
    }),
  );
}
