/**
 * The only file that builds names for Redis and BullMQ. Names hold ids only, never a ':' inside a part, and whatever
 * belongs to one queue (or to one class) shares one hash tag `{…}`, so that a Redis Cluster spreads queues but never
 * splits one.
 */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const CLASS = /^[a-z][a-z0-9_-]{0,62}$/;
const HINT_ID = /^s(\d{1,9})e(\d{1,15})o(\d{1,19})p(\d{1,9})$/;

export const DEFAULT_PREFIX = "punctual";

export type Names = {
  /** BullMQ's `prefix` of every queue. */
  readonly prefix: string;
  /** Sorted set: tenant id → sequence of its last publish in this class. */
  readyKey(class_: string): string;
  /** Source of that sequence. */
  readySequenceKey(class_: string): string;
  /** Holds a random word; gone after FLUSHALL or failover to an empty replica. */
  epochKey(): string;
  /** Begins the keys that count calls to the API. */
  callsKey(): string;
  /** Pub/sub channel of a wake-up topic. */
  wakeChannel(topic: string): string;
};

/** `prefix` keeps several installations apart on one Redis (database numbers do not separate pub/sub). */
export function createNames(prefix: string = DEFAULT_PREFIX): Names {
  if (!CLASS.test(prefix)) throw new RangeError(`Redis prefix ${JSON.stringify(prefix)} must match ${CLASS.source}`);
  return {
    prefix,
    readyKey: (class_) => `${prefix}:ready:{${checkedClass(class_)}}`,
    readySequenceKey: (class_) => `${prefix}:ready-sequence:{${checkedClass(class_)}}`,
    epochKey: () => `${prefix}:epoch`,
    callsKey: () => `${prefix}:calls`,
    wakeChannel: (topic) => `${prefix}:wake:${topic}`,
  };
}

/** Name of the queue of one tenant and class. */
export function queueName(tenantId: string, class_: string): string {
  if (!UUID.test(tenantId)) throw new RangeError(`tenant id ${JSON.stringify(tenantId)} must be a lower-case uuid`);
  return `{${tenantId}.${checkedClass(class_)}}`;
}

/** Whether `queueName` accepts these. */
export function isQueue(tenantId: string, class_: string): boolean {
  return UUID.test(tenantId) && CLASS.test(class_);
}

/** Topic of the wake-up that a class has something to fetch. */
export function readyTopic(class_: string): string {
  return `ready.${checkedClass(class_)}`;
}

export type HintIdentity = { shard: number; epoch: number; rowId: bigint; publishNo: number };

/**
 * Id of the BullMQ job of one publication of an outbox row. Row ids repeat after a restore, hence the epoch; a row is
 * published again after a loss, hence the number: BullMQ silently ignores an id that it knows.
 */
export function hintJobId({ shard, epoch, rowId, publishNo }: HintIdentity): string {
  return `s${shard}e${epoch}o${rowId}p${publishNo}`;
}

/** What `hintJobId` was made of, or undefined for an id that is not ours. */
export function parseHintJobId(id: string): HintIdentity | undefined {
  const match = HINT_ID.exec(id);
  if (match === null) return undefined;
  return { shard: Number(match[1]), epoch: Number(match[2]), rowId: BigInt(match[3]!), publishNo: Number(match[4]) };
}

function checkedClass(class_: string): string {
  if (!CLASS.test(class_)) throw new RangeError(`class ${JSON.stringify(class_)} must match ${CLASS.source}`);
  return class_;
}
