import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { hasPodman, pathOf } from "./find-podman.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

const run = promisify(execFile);

/** Podman is no package of npm's, so a Debian machine whose root we are is given Debian's. Elsewhere it is there, or it is not. */
function install(): void {
  if (hasPodman() || process.getuid?.() !== 0 || !existsSync("/etc/debian_version")) return;
  console.log("installing podman, runc and busybox-static from Debian, for the tests of container jobs …");
  const apt = "apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=10 -o DPkg::Lock::Timeout=120";
  const script = `command -v podman && command -v runc && command -v busybox ||
    { ${apt} update && ${apt} install --yes --no-install-recommends podman runc busybox-static; }`;
  // Files run side by side: the second waits for the first, and finds it done.
  spawnSync("flock", [join(tmpdir(), "punctual-apt.lock"), "sh", "-c", script], {
    stdio: "ignore",
    timeout: 300_000,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
}

/**
 * Whether this machine has a container engine: Podman, as root, with runc and a static busybox for an image. Register
 * tests that need it inside `if (podmanAvailable)`: without it they are left out, and the run says so in one line.
 */
export const podmanAvailable: boolean = (() => {
  install();
  if (!hasPodman()) {
    console.log(
      "No podman, runc and static busybox for root here: the tests of container jobs are left out of this run.",
    );
  }
  return hasPodman();
})();

export const IMAGE = "localhost/busybox:1";

export type Podman = {
  socketPath: string;
  /** Kills the engine's process, not its containers. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Its engine takes calls and answers none, until it is thawed. */
  freeze(): void;
  thaw(): void;
  /** What `podman` prints for these arguments, on the same store. */
  say(...args: string[]): Promise<string>;
  /** Makes the file `/tmp/go` in a container. */
  letGo(id: string): Promise<void>;
  /** Removes everything, also what still runs. */
  stop(): Promise<void>;
};

/** An engine of this test's own, with a store of its own, and one image made of busybox. */
export async function startPodman(options: { insecureRegistry?: string } = {}): Promise<Podman> {
  const folder = makeTemporaryFolder("punctual-podman-");
  const at = (name: string) => join(folder, name);
  const socketPath = at("podman.sock");
  writeFileSync(
    at("containers.conf"),
    '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n',
  );
  const { insecureRegistry } = options;
  writeFileSync(
    at("registries.conf"),
    insecureRegistry === undefined ? "" : `[[registry]]\nlocation = "${insecureRegistry}"\ninsecure = true\n`,
  );
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    XDG_RUNTIME_DIR: folder,
    CONTAINERS_CONF: at("containers.conf"),
    CONTAINERS_REGISTRIES_CONF: at("registries.conf"),
    TMPDIR: folder,
  };
  const store = [
    "--root",
    at("root"),
    "--runroot",
    at("run"),
    "--tmpdir",
    at("tmp"),
    "--storage-driver",
    "vfs",
    "--runtime",
    "runc",
  ];
  const say = async (...args: string[]) => (await run("podman", [...store, ...args], { env, cwd: folder })).stdout;
  let service: ChildProcess | undefined;

  async function start(): Promise<void> {
    rmSync(socketPath, { force: true });
    // It ends by itself when nobody has asked it for so long, should this process be killed.
    service = spawn("podman", [...store, "system", "service", "--time=120", `unix://${socketPath}`], {
      env,
      // Its helpers leave files where they are.
      cwd: folder,
      stdio: "ignore",
    });
    for (let tries = 0; !existsSync(socketPath); tries++) {
      if (tries > 3_000 || service.exitCode !== null) throw new Error("podman did not start");
      await sleep(20);
    }
  }

  async function kill(): Promise<void> {
    if (service === undefined || service.exitCode !== null || service.signalCode !== null) return;
    const gone = once(service, "exit");
    service.kill("SIGKILL");
    await gone;
  }

  await importImage(at("image"), say);
  await start();
  return {
    socketPath,
    start,
    kill,
    freeze: () => void service?.kill("SIGSTOP"),
    thaw: () => void service?.kill("SIGCONT"),
    say,
    async letGo(id) {
      // It may have ended and be gone before podman has seen that its own command has.
      await say("exec", id, "touch", "/tmp/go").catch(() => undefined);
    },
    async stop() {
      await kill();
      await say("rm", "--all", "--force", "--time", "0");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const COMMANDS = [
  "sh",
  "cat",
  "echo",
  "sleep",
  "env",
  "id",
  "head",
  "yes",
  "mkdir",
  "touch",
  "wget",
  "ip",
  "ln",
  "dd",
  "test",
  "grep",
  "tr",
  "seq",
];

async function importImage(folder: string, say: Podman["say"]): Promise<void> {
  for (const name of ["bin", "etc", "tmp"]) mkdirSync(join(folder, name), { recursive: true });
  await run("cp", ["--dereference", pathOf("busybox")!, join(folder, "bin", "busybox")]);
  for (const command of COMMANDS) symlinkSync("busybox", join(folder, "bin", command));
  await run("chmod", ["1777", join(folder, "tmp")]);
  const archive = `${folder}.tar`;
  await run("tar", ["-C", folder, "-cf", archive, "."]);
  await say("import", "--quiet", archive, IMAGE);
}
