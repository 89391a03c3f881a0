import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** `release` lets the watchdog end the process now; `gone` resolves when it has done so. */
export type Watchdog = { release(): void; gone: Promise<unknown> };

// Reads until its standard input ends, which happens when its starter says so and also when its starter is killed without
// a word. Then the process is asked politely, after 15 s harshly; last, a directory nobody needs any more is removed.
const SCRIPT = `
pid=$1 ask=$2 insist=$3 discard=$4
read -r _
kill -s CONT "$pid" 2>/dev/null
kill -s "$ask" "$pid" 2>/dev/null
n=0
while kill -0 "$pid" 2>/dev/null && [ "$n" -lt 300 ]; do
  n=$((n + 1))
  [ "$n" -eq 150 ] && kill -s "$insist" "$pid" 2>/dev/null
  sleep 0.1
done
if [ -n "$discard" ]; then rm -rf -- "$discard"; fi
`;

/**
 * Starts a small shell beside the process `pid` that ends it when told, or when this program dies (even by SIGKILL).
 * `ask` and `insist` are signal names without SIG; `discard` is a directory to remove once the process is gone.
 */
export function watchOver(pid: number, options: { ask: string; insist: string; discard?: string }): Watchdog {
  const watchdog: ChildProcess = spawn(
    "/bin/sh",
    ["-c", SCRIPT, "punctual-watchdog", String(pid), options.ask, options.insist, options.discard ?? ""],
    // Detached: a Ctrl-C in the terminal must reach the program, which then ends its servers in its own order.
    { detached: true, stdio: ["pipe", "ignore", "ignore"], cwd: "/", env: { PATH: "/usr/local/bin:/usr/bin:/bin" } },
  );
  const gone = once(watchdog, "exit").catch(() => undefined);
  watchdog.stdin?.on("error", () => undefined);
  watchdog.unref();
  const release = () => {
    watchdog.ref(); // whoever waits for `gone` must not be left by an emptied event loop
    watchdog.stdin?.end();
  };
  return { release, gone };
}
