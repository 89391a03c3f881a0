import type { Fence } from "../../domain/fence.ts";
import type { Uuid } from "../../kernel/ids.ts";

/** Which output of which attempt. */
export type OutputName = { runId: Uuid; attempt: number; fence: Fence; name: string };
export type OutputFacts = { sha256: string; size: number };
type StoredOutput = OutputFacts & { uri: string; version: string };

/** Where outputs go that workers hand in; any object store will do. */
export type OutputStore = {
  /** Most bytes of one output that go through the API. */
  readonly limitBytes: number;
  isMediaType(text: string): boolean;
  uriOf(output: OutputName): string;
  /** Creates the output with these bytes, at once and for ever. A source that throws, or a signal that aborts, leaves nothing. */
  put(
    output: OutputName,
    bytes: AsyncIterable<Uint8Array>,
    options: { mediaType: string; signal: AbortSignal },
  ): Promise<{ kind: "created"; object: StoredOutput } | { kind: "exists"; uri: string }>;
  /** Reads what is there and compares. */
  verify(
    output: { uri: string; version: null },
    expected: OutputFacts,
  ): Promise<
    | { kind: "intact"; object: StoredOutput }
    | { kind: "missing" }
    | { kind: "mismatch"; field: string; expected: string; found: string }
  >;
  /** A permission to upload to the store itself; undefined: the bytes go through the API. */
  uploadLink(
    output: OutputName,
    options: { mediaType: string; forMs: number },
  ): Promise<{ url: string; headers: Readonly<Record<string, string>> } | undefined>;
};
