/** The registered jobs, as the API needs them: to list them, and to refuse a schedule that no worker could ever run. */
export type JobType = {
  kind: "function";
  name: string;
  version: number;
  description: string;
  /** JSON Schema of the payload. */
  input: Record<string, unknown>;
};

export type JobCatalogue = {
  list(): readonly JobType[];
  /** What is wrong with a payload for that job; empty when it fits. Undefined when there is no such job. */
  check(
    job: { name: string; version: number },
    payload: unknown,
  ): readonly { path: readonly PropertyKey[]; message: string }[] | undefined;
};
