import { z } from "zod";
import { PunctualError } from "../../../kernel/errors.ts";
import { readId } from "../../../kernel/ids.ts";
import { findResult } from "../../../store/reads/runs.ts";
import { runParams } from "../../input/fields.ts";
import { fileNameOf } from "../../present/file-name.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";

/**
 * Results are written by tenants' jobs and served from the console's own origin: nothing in them may run, whatever
 * media type they claim. Downloads may: a report carries its rows as a file.
 */
const CAGE = "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:";

export const getObjectRoute = defineRoute({
  method: "get",
  path: "/v1/objects/{run}",
  tag: "runs",
  summary: "Read a result's bytes by a signed link",
  description: "The link is the permission: no API key is needed. Take it from `/v1/runs/{run}/result`.",
  roles: "everybody",
  params: runParams,
  query: z.strictObject({ expires: z.string().regex(/^\d{1,12}$/), signature: z.string().max(100) }),
  answer: { kind: "ok", description: "The bytes", mediaType: "application/octet-stream" },
  problems: ["invalid-link", "result-expired"],
  async handle({ params, query }, context) {
    const id = readId("run", params.run);
    const result = id && (await findResult(context.db, id));
    const expires = Number(query.expires);
    if (
      !result ||
      !context.links.isValid({ run: params.run, sha256: result.sha256, expires }, query.signature, context.clock.now())
    ) {
      throw new Problem("invalid-link", "The link has expired or was changed; get a new one from the run's result");
    }
    return {
      kind: "ok",
      headers: {
        "content-type": result.mediaType ?? "application/octet-stream",
        "content-length": String(result.size),
        "content-security-policy": CAGE,
        "content-disposition": `inline; filename="${fileNameOf(params.run, result.mediaType)}"`,
        "repr-digest": `sha-256=:${Buffer.from(result.sha256, "hex").toString("base64")}:`,
      },
      stream: await context.objects.open(result).catch((error: unknown) => {
        if (!(error instanceof PunctualError) || error.code !== "object-missing") throw error;
        context.log.error({ run: params.run, uri: result.uri }, "a referenced result is not in the object store");
        throw new Problem("result-expired", "The result's bytes are gone");
      }),
    };
  },
});
