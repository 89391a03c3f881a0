import type { InvariantId } from "../../../store/invariants/invariants.ts";

/** What comes of a broken invariant, and what puts it right: a sentence each. */
export type Remedy = { consequence: string; todo: string };

const REPORT = "keep the database as it is, and report these rows with the logs of the time";
const SWEPT =
  "the sweeper puts it right within a minute (start `punctual sweeper` if none is alive); report it with these rows";

export const CHAINS_REMEDY: Remedy = {
  consequence: "an instant between these may have been forgotten",
  todo: `\`punctual schedules ledger\` shows the period, \`punctual schedules backfill\` runs what is missing; ${REPORT}`,
};

export const GUARDS_REMEDY: Remedy = {
  consequence: "runs of these schedules wait for nobody, or too many run side by side",
  todo: `guards that nobody holds are filled by the sweeper within a minute; where too many are held, ${REPORT}`,
};

export const REMEDIES: Readonly<Record<InvariantId, Remedy>> = {
  "next-known": { consequence: "these schedules make no runs any more", todo: SWEPT },
  "blocked-behind": { consequence: "these runs wait for ever, and their schedules with them", todo: SWEPT },
  overtaken: { consequence: "runs of these schedules start out of order", todo: `they start all the same; ${REPORT}` },
  "result-object": {
    consequence: "the result may be gone, or is not what was accepted",
    todo: `compare \`punctual runs result\` with the checksum of the run, restore the object from a backup; ${REPORT}`,
  },
  "one-result": {
    consequence: "an output that nobody accepted is kept as if it were a result",
    todo: `nobody is shown it; ${REPORT}`,
  },
  "fences-of-run": {
    consequence: "an old attempt might publish over a newer one",
    todo: `run \`punctual recover\`, which puts every new fence above all old ones; ${REPORT}`,
  },
  "fences-of-schedule": {
    consequence: "an old attempt might publish over a newer one",
    todo: `if the database's clock was set back between these starts, nothing; else run \`punctual recover\` and report it`,
  },
  "fences-to-come": {
    consequence:
      "fences that were given will be given again: the sequence or the epoch was set back, as by a partial restore",
    todo: "stop the workers and run `punctual recover`, which puts every new fence above all old ones",
  },
  "fence-accepted": { consequence: "a result of an attempt that had been replaced was accepted", todo: REPORT },
  "fence-of-running": {
    consequence: "its worker cannot publish, or history tells of an attempt that nobody makes",
    todo: `a lease that is over is ended by the sweeper; ${REPORT}`,
  },
  "open-is-live": {
    consequence: "these runs are open and nobody will ever run them",
    todo: "the sweeper gives them a live row again when its walk over history comes by (start `punctual sweeper` if none is alive); report it with these rows",
  },
  "live-is-open": {
    consequence: "a run that has ended may run again, or holds the guard of its schedule for ever",
    todo: REPORT,
  },
  "named-once": {
    consequence: "named by none, a run waits for ever; by several, workers look at it in vain",
    todo: SWEPT,
  },
  "older-attempts": { consequence: "history tells of an attempt as under way that is not", todo: REPORT },
  "end-awaited": { consequence: "these schedules make no runs any more", todo: SWEPT },
  usage: {
    consequence: "the tenant is given fewer runs side by side than its limit, or more",
    todo: SWEPT,
  },
  "effect-attempts": {
    consequence: "something may be sent by nobody, or twice",
    todo: `a sender that is not heard of is given up by the sweeper; ${REPORT}`,
  },
  effects: {
    consequence: "something was sent, or will be, for a result that was not accepted",
    todo: `\`GET /v1/effects\` shows whether it was sent; ${REPORT}`,
  },
};
