/** What the composition root tells the API about the rest of the system. */
export type ComponentStatus = {
  name: string;
  status: "ok" | "degraded" | "down";
  /** Epoch ms. */
  since: number;
  /** What users notice, in words. */
  effect: string;
};

export type HealthProbe = {
  /** Whether this process can serve; `reasons` say who has to do what when it cannot. */
  readiness(): Promise<{ ready: boolean; reasons: readonly string[] }>;
  components(): Promise<readonly ComponentStatus[]>;
};
