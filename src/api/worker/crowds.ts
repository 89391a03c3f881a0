import type { RemoteDemand, RemoteHint } from "../../authority/dispatch/remote.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { Problem } from "../problems/problem.ts";

/** A worker that waits for work of its jobs. */
export type Waiting = {
  tenantId: Uuid;
  jobs: readonly string[];
  /** How many runs it could begin now. */
  slots: number;
  answer(hints: RemoteHint[]): void;
  refuse(error: unknown): void;
};

/** Of a tenant at this process: each holds a socket. */
const MOST_WAITING = 1_000;
/** Different jobs of a tenant at this process: each is looked for by itself. */
const MOST_JOBS = 2_000;
/** What one look asks for, of one tenant and in all. The others have their turn in the next ones. */
const JOBS_OF_TENANT = 200;
const JOBS_OF_LOOK = 1_000;
/** Rows that one look finds for a tenant at most. */
const MOST_SLOTS = 500;

type Place = {
  found: RemoteHint[];
  /** Its jobs that nobody has looked for since it came. It is not sent away before. */
  unseen: Set<string>;
  /** The first look that counts for it. */
  from: number;
  isOver: boolean;
};

type Crowd = {
  places: Map<Waiting, Place>;
  /** By job, who asks for it. Whose turn is next stands first. */
  asking: Map<string, Set<Waiting>>;
  /** So many of the jobs have not had their turn in this round. */
  toGo: number;
};

export type Crowds = ReturnType<typeof createCrowds>;

/**
 * The workers that wait, tenant by tenant, and what is looked for next. Whatever one tenant's workers ask for, a look asks
 * for so much of it at most, and for something of everybody's: only they wait longer.
 */
export function createCrowds() {
  const crowds = new Map<Uuid, Crowd>();
  let looks = 0;

  return {
    /** Throws if the tenant has enough of them here. */
    join(one: Waiting): void {
      const crowd: Crowd = crowds.get(one.tenantId) ?? { places: new Map(), asking: new Map(), toGo: 0 };
      if (crowd.places.size >= MOST_WAITING) throw tooMany("waitingPolls", crowd.places.size, MOST_WAITING);
      const jobs = new Set(one.jobs);
      const more = [...jobs].filter((job) => !crowd.asking.has(job)).length;
      if (more > 0 && crowd.asking.size + more > MOST_JOBS) throw tooMany("polledJobs", crowd.asking.size, MOST_JOBS);
      crowds.set(one.tenantId, crowd);
      crowd.places.set(one, { found: [], unseen: jobs, from: looks + 1, isOver: false });
      for (const job of jobs) {
        const others = crowd.asking.get(job);
        if (others === undefined) crowd.asking.set(job, new Set([one]));
        else others.add(one);
      }
      crowd.toGo = crowd.asking.size;
    },

    leave(one: Waiting): void {
      const crowd = crowds.get(one.tenantId);
      if (!crowd?.places.delete(one)) return;
      for (const job of one.jobs) {
        const others = crowd.asking.get(job);
        others?.delete(one);
        if (others?.size === 0) crowd.asking.delete(job);
      }
      crowd.toGo = Math.min(crowd.toGo, crowd.asking.size);
      if (crowd.places.size === 0) crowds.delete(one.tenantId);
    },

    /** Its time is over: it goes when its jobs have been looked for. */
    end(one: Waiting): void {
      const place = crowds.get(one.tenantId)?.places.get(one);
      if (place === undefined) return;
      place.isOver = true;
      if (place.unseen.size === 0) one.answer([]);
    },

    isEmpty: () => crowds.size === 0,
    everybody: () => [...crowds.values()].flatMap((crowd) => [...crowd.places.keys()]),

    /** Everything is to be looked for once more. */
    startRound(): void {
      for (const crowd of crowds.values()) crowd.toGo = crowd.asking.size;
    },
    isRoundOver: () => [...crowds.values()].every((crowd) => crowd.toGo === 0),

    /** What the next look is to ask for. Who is asked for goes to the end of the queue. */
    takeTurn(): RemoteDemand[] {
      looks++;
      let left = JOBS_OF_LOOK;
      const demands: RemoteDemand[] = [];
      for (const [tenantId, crowd] of [...crowds]) {
        const jobs = [...crowd.asking.keys()].slice(0, Math.min(left, JOBS_OF_TENANT, crowd.toGo));
        if (jobs.length === 0) continue;
        left -= jobs.length;
        crowd.toGo -= jobs.length;
        for (const job of jobs) toEnd(crowd.asking, job);
        toEnd(crowds, tenantId);
        const slots = [...crowd.places.keys()].reduce((sum, one) => sum + one.slots, 0);
        demands.push({ tenantId, jobs, slots: Math.min(MOST_SLOTS, slots) });
      }
      return demands;
    },

    /** To who has least so far; of equals, who has waited longest. False: to nobody. */
    deal(hint: RemoteHint): boolean {
      const crowd = crowds.get(hint.tenantId);
      let taker: Place | undefined;
      for (const one of crowd?.asking.get(hint.job) ?? []) {
        const place = crowd!.places.get(one)!;
        if (place.found.length >= one.slots) continue;
        if (taker === undefined || place.found.length < taker.found.length) taker = place;
      }
      taker?.found.push(hint);
      return taker !== undefined;
    },

    /** This was looked for, and what was found is dealt. */
    settle({ tenantId, jobs }: RemoteDemand): void {
      const crowd = crowds.get(tenantId);
      if (crowd === undefined) return;
      for (const job of jobs) {
        for (const one of crowd.asking.get(job) ?? []) {
          const place = crowd.places.get(one)!;
          if (place.from <= looks) place.unseen.delete(job);
        }
      }
      for (const [one, { found, unseen, isOver }] of [...crowd.places]) {
        // Where there was something there may be more, for the others.
        if (found.length > 0) crowd.toGo = crowd.asking.size;
        if (found.length > 0 || (isOver && unseen.size === 0)) one.answer(found);
      }
    },

    /** This could not be looked for: who cannot wait hears of it, the others wait on. */
    fail({ tenantId }: RemoteDemand, error: unknown): void {
      const crowd = crowds.get(tenantId);
      if (crowd === undefined) return;
      crowd.toGo = crowd.asking.size;
      for (const [one, { isOver }] of [...crowd.places]) if (isOver) one.refuse(error);
    },
  };
}

function toEnd<K, V>(map: Map<K, V>, key: K): void {
  const value = map.get(key)!;
  map.delete(key);
  map.set(key, value);
}

function tooMany(quota: "waitingPolls" | "polledJobs", used: number, limit: number): Problem {
  const what =
    quota === "waitingPolls"
      ? `${used} workers of the tenant wait here already`
      : `The tenant's workers that wait here ask for ${used} different jobs already`;
  return new Problem("quota-exceeded", `${what}; allowed: ${limit}`, {
    more: { quota, limit, used },
    headers: { "retry-after": "5" },
  });
}
