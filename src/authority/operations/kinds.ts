import { backfill } from "./backfill/step.ts";
import { dismiss } from "./dead-letters/dismiss.ts";
import { replay } from "./dead-letters/replay.ts";
import type { OperationKinds } from "./kind.ts";

/** Every kind of long work, by the name that stands in its row. */
export const OPERATION_KINDS: OperationKinds = { backfill, replay, dismiss };
