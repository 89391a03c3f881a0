import { createHash } from "node:crypto";
import { PunctualError } from "../kernel/errors.ts";
import type { Uuid } from "../kernel/ids.ts";
import { createObjectKey } from "./key.ts";
import type { ObjectStore } from "./port.ts";

/** Parts of attempts' logs, beside their results. `limitBytes`: how much of one log is kept; 0: none are. */
export function createLogParts(objects: Pick<ObjectStore, "put" | "verify" | "remove">, limitBytes: number) {
  return {
    limitBytes,
    async put(
      of: { runId: Uuid; attempt: number; fence: bigint; part: Uuid },
      bytes: Uint8Array,
      signal?: AbortSignal,
    ) {
      const { part, ...attempt } = of;
      const name = `log-${part}.txt`;
      const put = await objects.put(createObjectKey({ ...attempt, name }), bytes, {
        mediaType: "text/plain",
        ...(signal === undefined ? {} : { signal }),
      });
      if (put.kind === "created") return { name, ...put.object };
      // Whoever stored it has not heard of it.
      const expected = { sha256: createHash("sha256").update(bytes).digest("hex"), size: bytes.byteLength };
      const found = await objects.verify({ uri: put.uri, version: null }, expected);
      if (found.kind === "intact") return { name, ...found.object };
      throw new PunctualError("object-exists", "A part of a log was stored before, with other bytes", { actor: "us" });
    },
    remove: (uri: string) => objects.remove(uri),
  };
}
