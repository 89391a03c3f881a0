import type { Readable } from "node:stream";
import type { Authority } from "../authority/authority.ts";
import type { ContainerRules } from "../domain/containers/rules.ts";
import type { EffectKind } from "../domain/effects/states.ts";
import type { CallbackSubject } from "../domain/jobs/callback-token.ts";
import type { OutboundRules } from "../domain/outbound/rules.ts";
import type { ZoneSource } from "../domain/recurrence/zone-source.ts";
import type { Clock, Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { Log } from "../kernel/log.ts";
import type { Metrics } from "../kernel/metrics.ts";
import type { Reads } from "../store/database.ts";
import type { Readers } from "../store/reads/wall/readers.ts";
import type { CursorCodec } from "./cursor.ts";
import type { HealthProbe } from "./health-probe.ts";
import type { JobCatalogue } from "./job-catalogue.ts";
import type { Limits } from "./limits/limit-calls.ts";
import type { Entrance } from "./sessions/entrance.ts";
import type { LinkSigner } from "./signed-link.ts";
import type { WorkerDesk } from "./worker/desk.ts";

export const ROLES = ["admin", "owner", "operator", "viewer", "worker"] as const;
export type Role = (typeof ROLES)[number];

/** Everybody who may look at a tenant's schedules and runs. */
export const READERS: readonly Role[] = ["admin", "owner", "operator", "viewer"];
/** Everybody who may change them. */
export const WRITERS: readonly Role[] = ["admin", "owner", "operator"];

/** What a caller proved who it is by: a key of ours, the token of an issuer that this installation trusts, or one that we gave out. */
export type Credential =
  | { kind: "key"; keyId: Uuid; prefix: string; label: string; endsAt: Instant | null }
  | { kind: "token"; issuer: string; subject: string; endsAt: Instant }
  /** Of one attempt, for whoever does its work elsewhere. */
  | { kind: "callback"; subject: CallbackSubject; endsAt: Instant };

export type Caller = {
  tenantId: Uuid;
  /** The credential's own tenant: another one where an admin acts for a tenant. */
  homeTenantId: Uuid;
  tenantName: string;
  tenantStatus: string;
  /** Names of the job types this tenant may use; null: all that there are. */
  allowedJobs: readonly string[] | null;
  /** Where its calls may lead; null: wherever anybody's may. */
  outbound: OutboundRules | null;
  credential: Credential;
  role: Role;
  /** Whether the tenant is another than the credential's own: an admin acts for it. */
  actingFor: boolean;
  /** How this caller is called in histories. */
  actor: string;
};

type ResultReference = { uri: string; version: string | null };

/** Where result bytes are read from; any object store will do. */
export type ResultReader = {
  /** Throws `object-missing` when there is nothing. */
  open(result: ResultReference): Promise<Readable>;
  /** A link to the store itself, for who may read it so; undefined where the bytes go through the API. */
  downloadLink(
    result: ResultReference,
    options: { mediaType: string; fileName: string; forMs: number },
  ): Promise<string | undefined>;
};

/** What every handler may reach. */
export type ApiContext = {
  authority: Authority;
  /** What reads go through. Of the caller's tenant, and no other: see `sees` of a route. */
  db: Reads;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  health: HealthProbe;
  objects: ResultReader;
  zones: ZoneSource;
  /** Addresses and ranges that every tenant's calls may reach although they are not public. */
  outboundAllow: readonly string[];
  jobs: JobCatalogue;
  /** Kinds of effects that this installation can send. */
  effectKinds: readonly EffectKind[];
  /** What containers may be; undefined: this installation runs none. */
  containers: ContainerRules | undefined;
  cursors: CursorCodec;
  links: LinkSigner;
  /** Of the calls of workers that are not ours, and of callbacks. */
  workers: WorkerDesk;
  entrance: Entrance;
  /** Undefined: nobody counts calls. */
  limits: Limits | undefined;
  version: string;
  /** Where callers reach this API, without a trailing slash. */
  publicUrl(): string;
};

/** What stands behind all calls. Reads of whichever tenant are for no handler to choose. */
export type ServerContext = ApiContext & { readers: Readers };
