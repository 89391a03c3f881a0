import { bodyOf, type Http, pathOf } from "./http.ts";
import type { BothInstants, Count, Rule } from "./types.ts";

/** What a rule or a change would do, before it is made. Instants are RFC 3339 in UTC; `local` is RFC 9557. */

export type InstantLabel = { kind: "gap" | "overlap" | "clock" | "calendar" | "window"; text: string };

export type PreviewedInstant = {
  at: string;
  local: string;
  offset: string;
  dueAt: string;
  /** Where it differs from `local`. */
  dueLocal?: string | undefined;
  /** Of a new schedule with a window: it is due before this instant. */
  dueBefore?: string | undefined;
  labels: InstantLabel[];
};

export type Feasibility = {
  verdict: "within-objective" | "needs-window" | "over-quota" | "no-workers";
  text: string;
  minuteAt: string;
  expectedRuns: Count;
  p95Ms: number;
  slots: number;
  lastStartsAfterMs: number | null;
  windowMsNeeded: number | null;
};

export type Preview = {
  description: string;
  warnings: string[];
  instants: PreviewedInstant[];
  /** What is left out between the instants. */
  notes: (InstantLabel & { at: string; local: string; count: number })[];
  feasibility: Feasibility | null;
  tzVersion: string;
};

type FieldChange = { field: string; from?: unknown; to?: unknown };

export type ChangePreview = Preview & {
  diff: {
    against: number;
    fields: FieldChange[];
    hasMoreFields: boolean;
    stay: (BothInstants & { movedFrom?: string | undefined; movedTo?: string | undefined })[];
    vanish: BothInstants[];
    appear: BothInstants[];
  };
};

/** `first`: the first 50 of them. */
export type InstantSet = { count: number; first: BothInstants[] };

export type RevisionDiff = {
  scheduleId: string;
  revision: number;
  /** null: the first revision, compared with nothing. */
  against: number | null;
  actor: string;
  createdAt: string;
  fields: FieldChange[];
  instants: { from: string; to: string; gained: InstantSet; lost: InstantSet; moved: InstantSet; kept: number };
};

type Question = { count?: number; from?: string };
export type PreviewRequest = Question & { rule: Rule } & Record<string, unknown>;

export type Previews = {
  /** When a rule would run, with its calendars, window and bounds. */
  preview(request: PreviewRequest): Promise<Preview>;
  /** What a change would do to a schedule; the fields are those of the API's PATCH. */
  previewChange(
    schedule: string,
    change?: Question & { payloadJson?: string } & Record<string, unknown>,
  ): Promise<ChangePreview>;
  /** How a revision differs from another one, by default the one before. */
  diff(schedule: string, revision: number, against?: number): Promise<RevisionDiff>;
};

export function previewsOf(http: Http): Previews {
  return {
    preview: (request) => http.call({ method: "POST", path: "/v1/schedules/preview", body: JSON.stringify(request) }),
    previewChange: (schedule, change = {}) =>
      http.call({ method: "POST", path: pathOf`/v1/schedules/${schedule}/preview`, body: bodyOf(change) }),
    diff: (schedule, revision, against) =>
      http.call({ path: pathOf`/v1/schedules/${schedule}/revisions/${String(revision)}/diff`, query: { against } }),
  };
}
