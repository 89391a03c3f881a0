/** The command cannot be meant as it was typed; exit code 2. */
export class UsageError extends Error {}

/** What the shell gets. `runs watch` has codes of its own. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;
