import { expect, test } from "vitest";
import { judgeExit } from "../../../src/domain/containers/exit.ts";
import { containerNameOf, labelsOf, readLabels } from "../../../src/domain/containers/identity.ts";
import { matchesImage, parseImage, showImage } from "../../../src/domain/containers/image.ts";
import { judgeContainer } from "../../../src/domain/containers/rules.ts";
import { type ContainerJob, containerJobSchema } from "../../../src/domain/jobs/container.ts";

const DIGEST = `sha256:${"0123456789abcdef".repeat(4)}`;
const jobOf = (change: Record<string, unknown> = {}): ContainerJob =>
  containerJobSchema.parse({ kind: "container", image: "registry.example.com/team/app:1", ...change });

test("an image's name is made whole before it is compared, so that no short form gets past a list", () => {
  const shown = (text: string) => {
    const image = parseImage(text);
    return image && showImage(image);
  };
  expect(shown("busybox")).toBe("docker.io/library/busybox:latest");
  expect(shown("team/app")).toBe("docker.io/team/app:latest");
  expect(shown("docker.io/busybox:1")).toBe("docker.io/library/busybox:1");
  expect(shown("localhost/app")).toBe("localhost/app:latest");
  expect(shown("Registry.example.com:5000/a/b/c:1.2-x")).toBe("registry.example.com:5000/a/b/c:1.2-x");
  expect(shown(`team/app:1@${DIGEST}`)).toBe(`docker.io/team/app@${DIGEST}`);
  for (const bad of ["", "/app", "app:", "app@sha256:12", "a b", "-x/app", "App", "reg.io/../x", "a//b"]) {
    expect(parseImage(bad), bad).toBeUndefined();
  }
});

test("patterns of images: stars, tags, digests, and no way around the registry", () => {
  const matches = (pattern: string, image: string) => matchesImage(pattern, parseImage(image)!);
  expect(matches("registry.example.com/team/*", "registry.example.com/team/app:1")).toBe(true);
  expect(matches("registry.example.com/team/*", `registry.example.com/team/deep/app@${DIGEST}`)).toBe(true);
  expect(matches("registry.example.com/team/*", "registry.example.com.evil.org/team/app")).toBe(false);
  expect(matches("registry.example.com/team/*", "docker.io/registry.example.com/team/app")).toBe(false);
  expect(matches("registry.example.com/team/app", "registry.example.com/team/app:7")).toBe(true);
  expect(matches("registry.example.com/team/app", "registry.example.com/team/app2")).toBe(false);
  expect(matches("registry.example.com/team/app:1.*", "registry.example.com/team/app:1.4")).toBe(true);
  expect(matches("registry.example.com/team/app:1.*", "registry.example.com/team/app:2")).toBe(false);
  expect(matches("registry.example.com/*@sha256:*", `registry.example.com/app@${DIGEST}`)).toBe(true);
  expect(matches("registry.example.com/*@sha256:*", "registry.example.com/app:1")).toBe(false);
  expect(matches("busybox", "docker.io/library/busybox:1")).toBe(true);
  expect(matches("*", "anything/at-all")).toBe(true);
  expect(matches("a.b/c", "axb/c")).toBe(false);
});

test("a job is held to the operator's rules, field by field", () => {
  const rules = {
    images: ["registry.example.com/team/*"],
    networks: ["none", "jobs"],
    maxMemoryMb: 512,
    maxCpu: 2,
    files: false,
    numericUsers: true,
  };
  const faultIn = (change: Record<string, unknown>) => {
    const fault = judgeContainer(jobOf(change), rules);
    return fault && `${fault.code} ${fault.field}`;
  };
  expect(faultIn({ network: "jobs", user: "1000:1000", resources: { memoryMb: 512, cpu: 2 } })).toBeUndefined();
  expect(faultIn({ image: "busybox" })).toBe("image-not-allowed job.image");
  expect(faultIn({ network: "host" })).toBe("container-not-allowed job.network");
  expect(faultIn({ resources: { memoryMb: 513 } })).toBe("container-not-allowed job.resources.memoryMb");
  expect(faultIn({ resources: { cpu: 2.5 } })).toBe("container-not-allowed job.resources.cpu");
  expect(faultIn({ result: { from: "file", path: "/result/x" } })).toBe("container-not-allowed job.result.from");
  expect(faultIn({ user: "nobody" })).toBe("container-not-allowed job.user");
});

test("what an exit means: memory for good, an unknown hand perhaps not, and codes as the job has them", () => {
  const job = jobOf({ permanentExitCodes: [2] });
  const verdict = (code: number, outOfMemory = false, of = job) => {
    const found = judgeExit({ code, outOfMemory }, of);
    return found.kind === "succeeded" ? "succeeded" : `${found.code} ${found.transient ? "transient" : "permanent"}`;
  };
  expect(verdict(0)).toBe("succeeded");
  expect(verdict(1)).toBe("container-exit transient");
  expect(verdict(2)).toBe("container-exit permanent");
  expect(verdict(137, true)).toBe("container-oom permanent");
  expect(verdict(1, true)).toBe("container-oom permanent");
  expect(verdict(137, true, jobOf({ retryOutOfMemory: true }))).toBe("container-oom transient");
  expect(verdict(137)).toBe("container-killed transient");
  expect(verdict(126)).toBe("container-not-started permanent");
  expect(verdict(127)).toBe("container-not-started permanent");
});

test("a container's labels say whose it is, and its name fits Kubernetes", () => {
  const identity = {
    installation: "0123456789ab",
    run: "run_01hv3c9t2re4a8m5k7n9p1q3sd",
    attempt: 3,
    fence: 2n ** 62n,
  };
  expect(readLabels(labelsOf(identity))).toEqual(identity);
  expect(readLabels({})).toBeUndefined();
  expect(readLabels({ ...labelsOf(identity), "punctual.fence": "x" })).toBeUndefined();
  // A Pod's name is a Job's and six characters more.
  expect(containerNameOf("0".repeat(16), identity.run).length).toBeLessThanOrEqual(57);
});

test("a container job in its shortest form is one with as few rights as can be", () => {
  expect(jobOf()).toMatchObject({
    network: "none",
    readOnlyRoot: true,
    result: { from: "none" },
    resources: { cpu: 1, memoryMb: 256, pids: 256, tmpMb: 64 },
    ulimits: { nofile: 1024 },
    pull: "missing",
  });
  const refused = (change: Record<string, unknown>) =>
    containerJobSchema.safeParse({ kind: "container", image: "busybox", ...change }).success === false;
  expect(refused({ env: { PUNCTUAL_FENCE: "1" } })).toBe(true);
  expect(refused({ env: { A: "{{secrets.x}}" } })).toBe(true);
  expect(refused({ args: ["a\0b"] })).toBe(true);
  for (const path of ["/etc/passwd", "/result/", "/result/../etc/passwd", "/result/a/../../b", "/result/a//b"]) {
    expect(refused({ result: { from: "file", path } }), path).toBe(true);
  }
  expect(refused({ result: { from: "file", path: "/result/out/..data" } })).toBe(false);
});
