import { z } from "zod";
import { pinResult } from "../../../authority/objects/pin-result.ts";
import { showId } from "../../../kernel/ids.ts";
import { READERS } from "../../context.ts";
import { runParams, shownInstant } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { fileNameOf } from "../../present/file-name.ts";
import { showInstant } from "../../present/instant.ts";
import { Problem } from "../../problems/problem.ts";
import { getRun } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

const LINK_LIVES_S = 300;

export const getResultRoute = defineRoute({
  method: "get",
  path: "/v1/runs/{run}/result",
  tag: "runs",
  summary: "Get a short-lived link to a run's result",
  description: "The result is kept at least until the link expires.",
  roles: READERS,
  params: runParams,
  query: noFields,
  answer: {
    kind: "ok",
    description: "Where the bytes are, and what they must be",
    schema: z.strictObject({
      runId: z.string(),
      url: z.url(),
      expiresAt: shownInstant,
      sha256: z.string(),
      size: z.int(),
      mediaType: z.string().nullable(),
    }),
  },
  problems: ["not-found", "history-removed", "no-result", "result-expired"],
  async handle({ params }, context, caller) {
    const run = await getRun(context, caller, params.run);
    if (run.result === null)
      throw new Problem("no-result", `The run is ${run.state} and has no result`, { more: { state: run.state } });
    const expires = Math.ceil(context.clock.now() / 1000) + LINK_LIVES_S;
    const pinned = await pinResult(context.authority, {
      tenantId: caller.tenantId,
      runId: run.id,
      forMs: LINK_LIVES_S * 1000,
    });
    if (!pinned) throw new Problem("result-expired", "The result has been removed, or is being removed");
    const shown = showId("run", run.id);
    const { sha256, mediaType } = run.result;
    const linked = await context.objects.downloadLink(run.result, {
      mediaType: mediaType ?? "application/octet-stream",
      fileName: fileNameOf(shown, mediaType),
      forMs: LINK_LIVES_S * 1000,
    });
    const signature = context.links.sign({ run: shown, sha256, expires });
    return {
      kind: "ok",
      body: {
        runId: shown,
        url: linked ?? `${context.publicUrl()}/v1/objects/${shown}?expires=${expires}&signature=${signature}`,
        expiresAt: showInstant(expires * 1000),
        sha256,
        size: run.result.size,
        mediaType,
      },
    };
  },
});
