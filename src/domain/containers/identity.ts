import type { Fence } from "../fence.ts";

/** Which attempt a container is of. Written on it, so that whoever finds it knows. */
export type ContainerIdentity = { installation: string; run: string; attempt: number; fence: Fence };

const LABEL = {
  installation: "punctual.installation",
  run: "punctual.run",
  attempt: "punctual.attempt",
  fence: "punctual.fence",
};

/** What to look for, to find an installation's containers. */
export const installationLabel = (installation: string): string => `${LABEL.installation}=${installation}`;

export function labelsOf({ installation, run, attempt, fence }: ContainerIdentity): Record<string, string> {
  return {
    [LABEL.installation]: installation,
    [LABEL.run]: run,
    [LABEL.attempt]: String(attempt),
    [LABEL.fence]: String(fence),
  };
}

/** Undefined: the labels are none of ours, or somebody changed them. */
export function readLabels(labels: Readonly<Record<string, string>> | undefined | null): ContainerIdentity | undefined {
  const [installation, run, attempt, fence] = Object.values(LABEL).map((key) => labels?.[key] ?? "");
  if (!installation || !run || !/^\d{1,9}$/.test(attempt!) || !/^\d{1,19}$/.test(fence!)) return undefined;
  return { installation, run, attempt: Number(attempt), fence: BigInt(fence!) };
}

/**
 * One name for all attempts of a run: an engine gives a name once, so a run never has two containers on one engine,
 * whatever its workers believe. Fits a Kubernetes name (63 characters, and Pods' add some).
 */
export function containerNameOf(installation: string, run: string): string {
  return `punctual-${installation}-${run.replace(/^run_/, "")}`;
}
