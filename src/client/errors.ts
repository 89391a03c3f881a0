/** One thing wrong with one field of a request. */
export type FieldFault = {
  field: string;
  message: string;
  found?: string;
  allowed?: string;
  didYouMean?: string;
};

/** The API refused, in its own words (RFC 9457). Decide by `code`. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryable: boolean;
  readonly requestId: string | undefined;
  readonly errors: readonly FieldFault[];
  /** When another try may help, where the API says so. */
  readonly retryAfterMs: number | undefined;
  /** What else this code's document has: `quota`, `limit` and `used` of `quota-exceeded`, say. See docs/errors.md. */
  readonly more: Readonly<Record<string, unknown>>;

  constructor(document: {
    status: number;
    code: string;
    detail: string;
    retryable?: boolean;
    requestId?: string;
    errors?: FieldFault[];
    retryAfterMs?: number;
    more?: Record<string, unknown>;
  }) {
    super(document.detail);
    this.name = "ApiProblem";
    this.status = document.status;
    this.code = document.code;
    this.retryable = document.retryable ?? false;
    this.requestId = document.requestId;
    this.errors = document.errors ?? [];
    this.retryAfterMs = document.retryAfterMs;
    this.more = document.more ?? {};
  }
}

/** No answer came. `refused`: nobody listens there, so nothing can have taken effect. */
export class NoAnswer extends Error {
  readonly url: string;
  readonly refused: boolean;

  constructor(url: string, reason: string, refused: boolean, cause?: unknown) {
    super(reason, { cause });
    this.name = "NoAnswer";
    this.url = url;
    this.refused = refused;
  }
}
