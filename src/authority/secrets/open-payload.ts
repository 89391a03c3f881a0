import type { Payload } from "../../domain/definition.ts";
import { findSealed, mapJson, type Path, sealedTextOf } from "../../domain/secrets/forms.ts";
import { type KnownSecrets, knowSecrets } from "../../domain/secrets/known.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Vault } from "./vault.ts";

/**
 * A payload as its job gets it, and what must not be said of it: what was sealed, and what the job's input marks, also where
 * it was stored before it was marked. Opened in this process's memory alone.
 * @throws `secret-unavailable`, which tells of keys and of nothing else.
 */
export async function openPayload(
  vault: Vault,
  tenantId: Uuid,
  payload: Payload,
  findMarked: (plain: Payload) => readonly Path[],
): Promise<{ payload: Payload; secrets: KnownSecrets }> {
  const sealed = findSealed(payload);
  const opened = await vault.open(
    tenantId,
    sealed.map((one) => one.text),
  );
  const plain = mapJson(payload, (value) => opened.get(sealedTextOf(value) ?? "")) as Payload;
  const secrets = knowSecrets([
    ...sealed.map(({ path, text }) => ({ path, value: opened.get(text) })),
    ...findMarked(plain).map((path) => ({
      path,
      value: path.reduce<unknown>((at, part) => Object(at)[part], plain),
    })),
  ]);
  return { payload: plain, secrets };
}
