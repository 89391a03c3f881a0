import type { Work } from "../../domain/definition.ts";
import type { Effect } from "../../domain/effects/definition.ts";
import { HEADER_TEXT, type HeaderValue } from "../../domain/effects/headers.ts";
import {
  isObject,
  readForms,
  SEALED,
  SECRET,
  type SecretForm,
  sealedTextOf,
  shownSecret,
  versionOf,
} from "../../domain/secrets/forms.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { ApiContext } from "../context.ts";
import { type FieldFault, fieldProblem } from "../problems/problem.ts";
import { refuseManySecrets } from "./payload-size.ts";

/** Effects of a request, whose secret headers are told apart from the rest. */
export type GivenEffects = {
  /** How many secrets there are. */
  count: number;
  /** What is stored. A secret that is the one that was there keeps its sealed text. */
  seal(): Promise<readonly Effect[] | undefined>;
  /** What previews show of them. */
  shown(): readonly Effect[] | undefined;
};

type Place = { effect: number; header: string };
type Secret = Place & { field: string } & (
    | { kind: "kept"; text: string }
    | { kind: "new"; value: string; before: string | undefined }
  );

const ALLOWED = `{"${SECRET}": "…"}, or what was shown, unchanged`;

/**
 * Reads the secret headers of webhook effects: those that are sent, and those that are to stay in their own effect's own
 * header. Throws a problem that names the field, and never what was sent as a secret.
 */
export function readEffectSecrets(
  context: ApiContext,
  tenantId: Uuid,
  effects: readonly Effect[] | undefined,
  base: readonly Effect[] = [],
): GivenEffects {
  const before = new Map(base.flatMap((one) => (one.kind === "webhook" ? [[one.name, one.headers] as const] : [])));
  const secrets = (effects ?? []).flatMap((one, i) =>
    one.kind !== "webhook"
      ? []
      : Object.entries(one.headers).flatMap(([header, value]) =>
          isObject(value) ? [readSecret(value, { effect: i, header }, before.get(one.name)?.[header])] : [],
        ),
  );
  refuseManySecrets(secrets.length);
  const { vault } = context.authority;

  const withHeaders = (values: ReadonlyMap<string, HeaderValue>) =>
    effects?.map((one, i): Effect => {
      if (one.kind !== "webhook") return one;
      const headers = Object.entries(one.headers).map(([name, value]) => [name, values.get(`${i} ${name}`) ?? value]);
      return { ...one, headers: Object.fromEntries(headers) };
    });
  const keyOf = ({ effect, header }: Place) => `${effect} ${header}`;

  return {
    count: secrets.length,
    async seal() {
      const sealed = new Map<string, HeaderValue>();
      for (const one of secrets) {
        const text = one.kind === "kept" ? one.text : await sealedAnew(one.value, one.before);
        sealed.set(keyOf(one), { [SEALED]: text });
      }
      return withHeaders(sealed);
    },
    shown: () =>
      withHeaders(
        new Map(secrets.map((one) => [keyOf(one), one.kind === "kept" ? shownSecret(one.text) : { [SECRET]: null }])),
      ),
  };

  /** The same value sent anew is no change. One that does not open is another one. */
  async function sealedAnew(value: string, text: string | undefined): Promise<string> {
    const held = text === undefined ? undefined : await vault.open(tenantId, [text]).catch(() => undefined);
    return held?.get(text!) === value ? text! : (await vault.sealer(tenantId))(value);
  }
}

function readSecret(value: object, place: Place, stored: HeaderValue | undefined): Secret {
  const field = `effects[${place.effect}].headers.${place.header}`;
  const before = sealedTextOf(stored);
  const sealed = sealedTextOf(value);
  // A field of a schedule that was not sent is what is stored.
  if (sealed !== undefined && sealed === before) return { ...place, field, kind: "kept", text: sealed };
  const form = formOf(value, field);
  if (form.kind === "kept") {
    const isThere = before !== undefined && (form.version === undefined || form.version === versionOf(before));
    if (isThere) return { ...place, field, kind: "kept", text: before };
    throw fieldProblem({
      field,
      message: before === undefined ? "has no secret to keep" : "is not the version that is there",
      found: `{"${SECRET}": null}`,
      allowed: `{"${SECRET}": "…"}`,
    });
  }
  if (typeof form.value === "string" && HEADER_TEXT.test(form.value)) {
    return { ...place, field, kind: "new", value: form.value, before };
  }
  throw fieldProblem({
    field,
    message: "must be at most 1,000 visible ASCII characters",
    found: "a secret",
    allowed: ALLOWED,
  });
}

function formOf(value: object, field: string): SecretForm {
  const { forms, fault } = readForms(value as never);
  const [form] = forms;
  if (fault === undefined && form?.path.length === 0) return form;
  const said: Omit<FieldFault, "field"> =
    fault === undefined
      ? { message: "is no secret", found: "an object", allowed: ALLOWED }
      : { message: fault.message, found: fault.found, allowed: ALLOWED };
  throw fieldProblem({ field, ...said });
}

/** The same work with these effects; without any, as it was. */
export function withEffects<W extends { effects?: Work["effects"] }>(
  work: W,
  effects: readonly Effect[] | undefined,
): W {
  return effects === undefined ? work : { ...work, effects: [...effects] };
}
