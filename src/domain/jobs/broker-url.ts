import { fillText, type JobFacts, placeholdersIn, roomFor, unknownJobPlaceholders } from "./template.ts";

/**
 * `amqps://punctual:{{payload.password}}@broker.example.com`: where a tenant's broker is. What is secret in it stands in the
 * payload, never in the definition: a password is placeholders and nothing else.
 */
export type BrokerUrl = {
  tls: boolean;
  host: string;
  port: number;
  /** May have placeholders; percent-encoded where it is not one. */
  user: string;
  password: string;
  /** Without its leading slash. */
  path: string;
};

const LONGEST = 2000;
const PORTS: Readonly<Record<string, number>> = { redis: 6379, rediss: 6379, amqp: 5672, amqps: 5671 };
const SHAPE = /^([a-z]+):\/\/(?:(.*)@)?([^@]*)$/s;
const USER_AND_PASSWORD = /^((?:\{\{[^{}]*\}\}|[^:{}])*)(?::(.*))?$/s;
const PLACEHOLDERS = /^(\{\{[^{}]+\}\})+$/;

/** Undefined for what has not the shape of one. */
export function readBrokerUrl(text: string): BrokerUrl | undefined {
  const [, protocol = "", userinfo = "", rest = ""] = SHAPE.exec(text) ?? [];
  const [, user, password = ""] = USER_AND_PASSWORD.exec(userinfo) ?? [];
  const url = URL.parse(`${protocol}://${rest}`);
  const port = PORTS[protocol];
  if (url === null || port === undefined || user === undefined || url.hostname === "") return undefined;
  if (/[{}\s?#]/.test(rest) || !isEncoded(user)) return undefined;
  return {
    tls: protocol === "rediss" || protocol === "amqps",
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? port : Number(url.port),
    user,
    password,
    path: url.pathname.replace(/^\//, ""),
  };
}

const isEncoded = (text: string) => {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
};

/** Why a text is no address of such a broker; `path` is what may stand behind the host. */
export function brokerUrlFault(
  text: string,
  allowed: { protocols: readonly string[]; path: RegExp; pathWords: string },
): string | undefined {
  if (text.length > LONGEST) return `must have at most ${LONGEST} characters`;
  const url = readBrokerUrl(text);
  const example = `${allowed.protocols.at(-1)}://user:{{payload.password}}@host`;
  if (url === undefined || !allowed.protocols.some((one) => text.startsWith(`${one}://`))) {
    return `must be a URL such as ${example}, without a query`;
  }
  if (url.password !== "" && !PLACEHOLDERS.test(url.password)) {
    return `must not hold a password: definitions are no place for secrets. Put it into the payload as a secret and write ${example}`;
  }
  const used = placeholdersIn(`${url.user}${url.password}`);
  if (unknownJobPlaceholders(text).length > 0 || used.some(({ name }) => !name.startsWith("payload."))) {
    return "must have no placeholders but {{payload.<field>}}";
  }
  if (!allowed.path.test(url.path)) return `must have ${allowed.pathWords} behind the host`;
  return undefined;
}

/** For answers: whoever wrote a password into the URL is told so without it. */
export function withoutUser(text: string): string {
  const [begin, end] = [text.indexOf("//"), text.lastIndexOf("@")];
  return begin === -1 || end < begin ? text : `${text.slice(0, begin)}//…${text.slice(end)}`;
}

/** A password may well be a token. */
const LONGEST_CREDENTIAL = 8_192;

/** User or password of one attempt; `field` says which. @throws FilledTooLong */
export function fillCredential(template: string, facts: JobFacts, field: string): string {
  const take = roomFor(LONGEST_CREDENTIAL)(field);
  const room = (piece: string) => take(decodeURIComponent(piece));
  return decodeURIComponent(fillText(template, facts, room, (value) => encodeURIComponent(value.toWellFormed())));
}
