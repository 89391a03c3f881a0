import type { RemoteHint } from "../../authority/dispatch/remote.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { CursorCodec } from "../cursor.ts";

/** Hints as workers see them: opaque, signed, and good for their tenant alone. */

const listOf = (tenantId: Uuid) => `hints of ${tenantId}`;

export function showHint(cursors: CursorCodec, { tenantId, rowId, epoch }: RemoteHint): string {
  return cursors.write(listOf(tenantId), [String(rowId), epoch]);
}

/** Undefined: it is none that we gave this tenant. */
export function readHint(cursors: CursorCodec, tenantId: Uuid, text: string) {
  try {
    const [rowId, epoch] = cursors.read(listOf(tenantId), text);
    return { rowId: BigInt(rowId!), epoch: Number(epoch) };
  } catch {
    return undefined;
  }
}
