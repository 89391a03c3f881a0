import { isDeepStrictEqual } from "node:util";
import type { Json, Payload } from "../../domain/definition.ts";
import type { Job } from "../../domain/jobs/job.ts";
import {
  findSealed,
  isObject,
  mapJson,
  mayHoldForms,
  type Path,
  placeOf,
  readForms,
  SEALED,
  SECRET,
  type SecretForm,
  shownSecret,
  versionOf,
} from "../../domain/secrets/forms.ts";
import { type KnownSecrets, knowSecrets, NO_SECRETS } from "../../domain/secrets/known.ts";
import { plainBytesOf } from "../../domain/secrets/sealing.ts";
import { bytesOf } from "../../domain/secrets/size.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { ApiContext } from "../context.ts";
import { fieldProblem } from "../problems/problem.ts";
import { refuseLargePayload, refuseManySecrets } from "./payload-size.ts";
import { secretField } from "./secret-faults.ts";

/** A payload of a request, whose secrets are told apart from the rest. */
export type GivenPayload = {
  /** As its job gets it: for judging, never for answers, logs or tables. */
  plain: Payload;
  secrets: KnownSecrets;
  /** What is stored. A secret that is the one that was there keeps its sealed text. */
  seal(): Promise<Payload>;
  /** What previews show of it. A secret that was sent looks new in any case, so that nobody tries guesses with them. */
  shown(): Payload;
};

const plainPayload = (payload: Payload): GivenPayload => ({
  plain: payload,
  secrets: NO_SECRETS,
  seal: async () => payload,
  shown: () => payload,
});

export const NO_PAYLOAD: GivenPayload = plainPayload({});

/** `sent` undefined: what is there stays. `base` is what is stored there, where there is something. */
type Given = { sent: Payload; base?: Payload } | { sent: Payload | undefined; base: Payload };

/**
 * Reads the secrets of a payload: those that the caller wraps, those that the job's input marks, and those that are to stay.
 * Throws a problem that names the field for what is no secret, or has none to keep.
 */
export async function readSecrets(
  context: ApiContext,
  tenantId: Uuid,
  job: Job,
  { sent, base }: Given,
): Promise<GivenPayload> {
  const payload = sent ?? base!;
  const mayHold = mayHoldForms(JSON.stringify(payload));
  if (!mayHold && !context.jobs.marksSecrets(job)) return plainPayload(payload);

  const stored = base === undefined ? [] : findSealed(base);
  const forms = sent === undefined ? stored.map(keptForm) : mayHold ? formsOf(sent) : [];
  const places = placesOf(stored);
  const kept = forms.filter((form) => form.kind === "kept").map((form) => ({ ...form, text: findKept(form, places) }));
  refuseManySecrets(forms.length);
  // Before any is opened: one that stands in many places is large once for each.
  const sizes = new Map(kept.map(({ path, text }) => [keyOf(path), plainBytesOf(text)]));
  const grown = forms.map((form) => {
    const size = form.kind === "new" ? bytesOf(form.value) : sizes.get(keyOf(form.path))!;
    return size - bytesOf(valueAt(payload, form.path)!);
  });
  refuseLargePayload(grown.reduce((a, b) => a + b, bytesOf(payload)));
  const { vault } = context.authority;
  const opened = await vault.open(tenantId, [...new Set(kept.map((one) => one.text))]);
  const values = new Map<string, Json>();
  for (const { path, text } of kept) values.set(keyOf(path), opened.get(text)!);
  for (const form of forms) if (form.kind === "new") values.set(keyOf(form.path), form.value);
  const plain = mapJson(payload, (_value, path) => values.get(keyOf(path)));
  if (!isObject(plain)) {
    throw fieldProblem({ field: "payload", message: "must be a JSON object", found: "a secret that is none" });
  }

  const paths = outermost([...forms.map((form) => form.path), ...context.jobs.findSecrets(job, plain)]);
  refuseManySecrets(paths.length);
  const found = paths.map((path) => ({ path, value: valueAt(plain, path)! }));
  const textAt = new Map(kept.map(({ path, text }) => [keyOf(path), text]));
  const secretPlaces = new Set(paths.map(keyOf));

  return {
    plain,
    secrets: knowSecrets(found),
    async seal() {
      const sealed = new Map<string, string>();
      for (const { path, value } of found) {
        const text = textAt.get(keyOf(path)) ?? (await sameAsBefore(path, value));
        sealed.set(keyOf(path), text ?? (await vault.sealer(tenantId))(value));
      }
      return mapJson(plain, (_value, path) => {
        const text = sealed.get(keyOf(path));
        return text === undefined ? undefined : { [SEALED]: text };
      }) as Payload;
    },
    shown: () =>
      mapJson(plain, (_value, path) => {
        const key = keyOf(path);
        if (!secretPlaces.has(key)) return undefined;
        const text = textAt.get(key);
        return text === undefined ? { [SECRET]: null } : shownSecret(text);
      }) as Payload,
  };

  /** The sealed text that stands in this place and holds this value. One that does not open holds another. */
  async function sameAsBefore(path: Path, value: Json): Promise<string | undefined> {
    const before = places.get(placeOf(path))?.byPath.get(keyOf(path));
    if (before === undefined) return undefined;
    const held = await vault.open(tenantId, [before]).catch(() => new Map<string, Json>());
    return held.has(before) && isDeepStrictEqual(held.get(before), value) ? before : undefined;
  }
}

const keyOf = (path: Path) => JSON.stringify(path);

function keptForm({ path, text }: { path: Path; text: string }): SecretForm {
  return { kind: "kept", path, version: versionOf(text) };
}

function formsOf(sent: Payload): readonly SecretForm[] {
  const { forms, fault } = readForms(sent);
  if (fault === undefined) return forms;
  const { path, ...rest } = fault;
  throw fieldProblem({ field: secretField(path, "payload"), ...rest });
}

/** The sealed texts of one field, where all items of a list count as one. */
type Place = { byPath: Map<string, string>; byVersion: Map<string, string> };

function placesOf(stored: readonly { path: Path; text: string }[]): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  for (const { path, text } of stored) {
    const name = placeOf(path);
    const place = places.get(name) ?? { byPath: new Map(), byVersion: new Map() };
    place.byPath.set(keyOf(path), text);
    place.byVersion.set(versionOf(text), text);
    places.set(name, place);
  }
  return places;
}

/**
 * Which stored secret is to stay: by its version in that place, where lists count as one place; without a version by
 * the path alone. From another field none is taken: it would be shown where its job does not expect a secret.
 */
function findKept(
  { path, version }: Extract<SecretForm, { kind: "kept" }>,
  places: ReadonlyMap<string, Place>,
): string {
  const here = places.get(placeOf(path));
  const found = version === undefined ? here?.byPath.get(keyOf(path)) : here?.byVersion.get(version);
  if (found !== undefined) return found;
  throw fieldProblem({
    field: secretField(path, "payload"),
    message: version === undefined || here === undefined ? "has no secret to keep" : "is not the version that is there",
    found: version === undefined ? `{"${SECRET}": null}` : `version ${version.slice(0, 40)}`,
    allowed: `{"${SECRET}": value}`,
  });
}

/** A secret within a secret is part of it. */
function outermost(paths: readonly Path[]): Path[] {
  const keys = new Set(paths.map(keyOf));
  const hasOuter = (path: Path) => path.some((_, i) => keys.has(keyOf(path.slice(0, i))));
  return [...keys].map((key) => JSON.parse(key) as Path).filter((path) => !hasOuter(path));
}

function valueAt(payload: Json, path: Path): Json | undefined {
  return path.reduce<unknown>((at, part) => Object.getOwnPropertyDescriptor(Object(at), part)?.value, payload) as Json;
}
