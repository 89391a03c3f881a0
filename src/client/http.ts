import { ApiProblem, type FieldFault, NoAnswer } from "./errors.ts";

export type ClientOptions = {
  /** Where the API is; a path in it is kept. */
  url: string;
  /** An API key, or a token of the issuer that the installation trusts. */
  key: string;
  /** The tenant to call in, `ten_…`; for admins, who act for it. Default: the key's own. */
  tenant?: string;
  /** Resolves after so many milliseconds. */
  sleep(ms: number): Promise<void>;
  /** Longest wait for one answer. Default 30,000 ms. */
  timeoutMs?: number;
};

export type Call = {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With its identifiers escaped: see `pathOf`. */
  path: string;
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** JSON text; with a `content-type` of its own, whatever that is. */
  body?: NonNullable<RequestInit["body"]>;
  headers?: Readonly<Record<string, string>>;
  /** It is not safe to repeat: the caller hears of a doubtful end. */
  once?: boolean;
  /** Longest wait for this answer, in place of the client's. */
  timeoutMs?: number;
  /** Ends the wait: the caller does not need the answer any more. */
  signal?: AbortSignal;
};

export type Http = {
  /**
   * The body of a good answer. Calls must be safe to repeat (reads, or with an Idempotency-Key): they are, when the
   * answer got lost or says that another try may help. Throws ApiProblem and NoAnswer.
   */
  call<T>(call: Call): Promise<T>;
  /** A good answer of many lines, read as they come, however long that takes. Not repeated. Throws as `call` does. */
  lines(call: Pick<Call, "path" | "query">): Promise<{ headers: Headers; lines: AsyncGenerator<string> }>;
  /** The same for a text that is no list of lines. */
  text(call: Pick<Call, "path" | "query">): Promise<{ headers: Headers; text: AsyncIterable<Uint8Array> }>;
};

const TRIES = 4;
const FIRST_PAUSE_MS = 250;
/** Who has to wait longer is told so; a day's quota is not waited for in here. */
const LONGEST_PAUSE_MS = 5_000;

export function createHttp(options: ClientOptions): Http {
  const base = options.url.replace(/\/+$/, "");
  const caller = {
    authorization: `Bearer ${options.key}`,
    ...(options.tenant === undefined ? {} : { "punctual-tenant": options.tenant }),
  };

  function urlOf(path: string, query: NonNullable<Call["query"]>): URL {
    const url = new URL(base + path);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    return url;
  }

  async function attempt<T>({ method = "GET", path, query = {}, body, headers = {}, ...call }: Call): Promise<T> {
    const timeout = AbortSignal.timeout(call.timeoutMs ?? options.timeoutMs ?? 30_000);
    const url = urlOf(path, query);
    const response = await ask(url, {
      method,
      redirect: "error",
      headers: {
        ...caller,
        accept: "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
      signal: call.signal === undefined ? timeout : AbortSignal.any([timeout, call.signal]),
    });
    const document = parse(response.text);
    if (!response.ok) throw problemOf(response, document, url.origin);
    if (document === undefined) throw new NoAnswer(url.origin, "what answers is not the Punctual API (no JSON)", false);
    return document as T;
  }

  /** A good answer's body, to be read as it comes. */
  async function stream({ path, query = {} }: Pick<Call, "path" | "query">) {
    const url = urlOf(path, query);
    const response = await fetch(url, { redirect: "error", headers: caller }).catch((error: unknown) => {
      throw noAnswerOf(url, error);
    });
    if (response.ok && response.body !== null) return { headers: response.headers, url, body: response.body };
    const answer = await read(response).catch((error: unknown) => {
      throw noAnswerOf(url, error);
    });
    throw problemOf(answer, parse(answer.text), url.origin);
  }

  return {
    async call<T>(call: Call): Promise<T> {
      for (let tries = 1; ; tries++) {
        try {
          return await attempt<T>(call);
        } catch (error) {
          if (call.once || call.signal?.aborted || tries === TRIES || !mayHelpToRepeat(error)) throw error;
          const askedMs = error instanceof ApiProblem ? (error.retryAfterMs ?? 0) : 0;
          if (askedMs > LONGEST_PAUSE_MS) throw error;
          await options.sleep(Math.max(askedMs, FIRST_PAUSE_MS * 2 ** (tries - 1)));
        }
      }
    },

    async lines(call) {
      const { headers, url, body } = await stream(call);
      return { headers, lines: linesOf(url, body) };
    },

    async text(call) {
      const { headers, url, body } = await stream(call);
      return { headers, text: bytesOf(url, body) };
    },
  };
}

async function* linesOf(url: URL, body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of bytesOf(url, body)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}

async function* bytesOf(url: URL, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw noAnswerOf(url, error);
  }
}

/** `pathOf`v1/runs/${id}``: every value is one segment, whatever is in it. */
export function pathOf(parts: TemplateStringsArray, ...values: readonly string[]): string {
  return parts.reduce((path, part, i) => path + encodeURIComponent(values[i - 1] ?? "") + part);
}

type Answer = { ok: boolean; status: number; text: string; retryAfterMs: number | undefined };

async function ask(url: URL, init: RequestInit): Promise<Answer> {
  try {
    return await read(await fetch(url, init));
  } catch (error) {
    throw noAnswerOf(url, error);
  }
}

async function read(response: Response): Promise<Answer> {
  const retryAfter = /^\d{1,9}$/.exec(response.headers.get("retry-after") ?? "")?.[0];
  return {
    ok: response.ok,
    status: response.status,
    text: await response.text(),
    retryAfterMs: retryAfter === undefined ? undefined : Number(retryAfter) * 1_000,
  };
}

/** What fetch throws says little by itself; its cause knows. */
export function noAnswerOf(url: URL, error: unknown): NoAnswer {
  // Whoever ends a wait may give any reason for it.
  if (!(error instanceof Error)) return new NoAnswer(url.origin, String(error), false, error);
  if (error.name === "TimeoutError") return new NoAnswer(url.origin, "no answer came in time", false, error);
  const cause = (error as { cause?: { code?: string; message?: string; errors?: { code?: string }[] } }).cause;
  const code = cause?.code ?? cause?.errors?.[0]?.code ?? "";
  const reason = cause?.message || code || error.message;
  return new NoAnswer(url.origin, reason, code === "ECONNREFUSED", error);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function problemOf({ status, retryAfterMs }: Answer, document: unknown, origin: string): Error {
  const known = (document ?? {}) as { code?: string; detail?: string; errors?: FieldFault[] };
  if (known.code === undefined)
    return new NoAnswer(origin, `what answers is not the Punctual API (HTTP ${status})`, false);
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
  const more = Object.fromEntries(Object.entries(known).filter(([member]) => !MEMBERS_OF_ALL.has(member)));
  return new ApiProblem({ ...known, ...wait, status, code: known.code, detail: known.detail ?? known.code, more });
}

/** What every problem document has, whatever its code. */
const MEMBERS_OF_ALL = new Set([
  "type",
  "title",
  "status",
  "detail",
  "instance",
  "code",
  "retryable",
  "requestId",
  "errors",
]);

function mayHelpToRepeat(error: unknown): boolean {
  if (error instanceof ApiProblem) return error.retryable;
  return error instanceof NoAnswer && !error.refused && error.cause !== undefined;
}

/** Parsing a payload and writing it again would round its numbers; the text itself goes into the body. */
export function bodyOf({ payloadJson, ...rest }: { payloadJson?: string }): string {
  const body = JSON.stringify(rest);
  if (payloadJson === undefined) return body;
  return `${body.slice(0, -1)}${body === "{}" ? "" : ","}"payload":${payloadJson}}`;
}
