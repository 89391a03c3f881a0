import type { Authority } from "../../src/authority/authority.ts";
import { mintId, type Uuid } from "../../src/kernel/ids.ts";
import { publishNothing } from "../../src/loops/publish-marked.ts";
import { createScanner } from "../../src/loops/scanner.ts";
import { createWindows } from "../../src/loops/windows.ts";

/** A scanner of its own process, without Redis; its passes are driven by hand. */
export function scannerOf(authority: Authority, id: Uuid = mintId(Date.now(), 0)) {
  const windows = createWindows(authority, { available: () => false });
  const scanner = createScanner({ authority, id, windows, publishMarked: publishNothing });
  return { id, ...scanner, pass: () => scanner.pass(signal) };
}

const signal = new AbortController().signal;

/** An authority whose clocks can be set: a process of its own, whose idea of the time may be wrong. */
export function withClock(authority: Authority) {
  const set = { aheadMs: 0, elapsedMs: 0 };
  const { clock } = authority;
  return {
    set,
    authority: {
      ...authority,
      clock: {
        ...clock,
        now: () => clock.now() + set.aheadMs,
        monotonic: () => clock.monotonic() + set.elapsedMs,
      },
    },
  };
}
