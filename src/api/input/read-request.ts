import express, { type Request, type Response } from "express";
import { SECRET } from "../../domain/secrets/forms.ts";
import type { Clock } from "../../kernel/clock.ts";
import { fieldProblem, Problem } from "../problems/problem.ts";
import { showPath, showValue } from "./issues.ts";
import { faultOfText, type Json, JsonSyntaxError, JsonValueError, parseJson } from "./json.ts";
import { refuseCrumbs } from "./pieces.ts";

const LONGEST_BODY_BYTES = 1_048_576;
/** Who needs longer to send one is not sending it. */
const LONGEST_MS = 60_000;
/** Pieces are kept until all are there, and a small one takes some hundred bytes for that. */
const CRUMBS = { most: 5_000, least: 64, withinMs: LONGEST_MS };
const readRaw = express.raw({ type: () => true, limit: LONGEST_BODY_BYTES, inflate: false });

/** The JSON body, or undefined when there is none. Throws problems for everything that is not plain UTF-8 JSON. */
export async function readBody(request: Request, response: Response, clock: Clock): Promise<Json | undefined> {
  const announced =
    request.headers["transfer-encoding"] !== undefined || Number(request.headers["content-length"] ?? 0) > 0;
  if (!announced) return undefined;
  refuseMediaType(request.headers["content-type"]);
  const patience = clock.after(LONGEST_MS, () => request.destroy());
  const hear = refuseCrumbs(clock, CRUMBS);
  await new Promise<void>((resolve, reject) => {
    readRaw(request, response, (error?: unknown) => (error === undefined ? resolve() : reject(error)));
    request.on("data", (piece: Buffer) => {
      try {
        hear(piece.length);
      } catch (error) {
        // Nobody waits for the rest, and what has come is let go of.
        request.pause().removeAllListeners();
        reject(error);
      }
    });
  }).finally(() => patience.cancel());
  const bytes = request.body as Buffer | undefined;
  return bytes === undefined || bytes.length === 0 ? undefined : parseBody(bytes);
}

function refuseMediaType(header: string | undefined): void {
  const [type = "", ...parameters] = (header ?? "")
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.slice("charset=".length)
    .replaceAll('"', "");
  if (type !== "application/json" || (charset !== undefined && charset !== "utf-8" && charset !== "utf8")) {
    throw new Problem(
      "unsupported-media-type",
      `Content-Type: found ${showValue(header)}; allowed: application/json in UTF-8`,
    );
  }
}

function parseBody(bytes: Buffer): Json {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Problem("invalid-json", "The body is not valid UTF-8");
  }
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) {
      throw new Problem("invalid-json", `Line ${error.line}, column ${error.column}: ${error.message}`, {
        more: { line: error.line, column: error.column },
      });
    }
    if (error instanceof JsonValueError) {
      // What stands in a secret is not said again, nor are its fields.
      const secretAt = error.path.indexOf(SECRET);
      throw fieldProblem({
        field: showPath(secretAt < 0 ? error.path : error.path.slice(0, secretAt + 1), "body"),
        message: error.message,
        found: secretAt < 0 ? error.found : "a secret",
        allowed: error.allowed,
      });
    }
    throw error;
  }
}

/** Query parameters as text, each at most once. */
export function readQuery(url: string): Record<string, string> {
  const mark = url.indexOf("?");
  const query: Record<string, string> = Object.create(null);
  if (mark < 0) return query;
  const raw = url.slice(mark + 1);
  refuseEscapes(raw);
  for (const [name, value] of new URLSearchParams(raw)) {
    if (name in query) {
      throw fieldProblem({
        field: showPath([name], "query"),
        message: "is given twice",
        found: showValue(value),
        allowed: "one value",
      });
    }
    refuseUnstorable(name, value);
    query[name] = value;
  }
  return { ...query };
}

/** Path parameters: already decoded by the router. */
export function refuseUnstorable(name: string, value: string): void {
  const fault = faultOfText(value) ?? faultOfText(name);
  if (fault !== undefined) {
    throw fieldProblem({
      field: showPath([name], "query"),
      message: `holds ${fault}`,
      found: fault,
      allowed: "text without NUL",
    });
  }
}

function refuseEscapes(raw: string): void {
  try {
    decodeURIComponent(raw.replaceAll("+", " "));
  } catch {
    throw fieldProblem({
      field: "query",
      message: "holds a percent escape that is not UTF-8",
      found: showValue(raw),
      allowed: "UTF-8, percent-encoded",
    });
  }
}
