import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { attempt, openTarget, reset, type Target } from "./scene.ts";

let target: Target;
beforeAll(async () => {
  target = await openTarget();
});
beforeEach(() => reset(target));
afterAll(() => target.close());

describe("the log of an attempt", () => {
  const ms = / after \d+ ms/g;
  const logOf = async (job: Record<string, unknown>, path = "/a?token=t") => {
    const { ctx } = await attempt({ url: `${target.url}${path}`, ...job });
    expect(ctx.captured.length).toBeLessThan(2);
    return ctx.captured.join("").replaceAll(target.url, "").replaceAll(ms, "");
  };

  it("has a line of each call where it failed or was redirected, without the query", async () => {
    target.answer = (response, { path }) => {
      if (path.startsWith("/a")) response.writeHead(302, { location: `${path.replace("/a", "/b")}&more` }).end();
      else response.writeHead(path.startsWith("/b") ? 200 : 503).end("there");
    };
    expect(await logOf({ redirects: { policy: "follow", max: 1 } })).toBe("POST /a: 302\nGET /b: 200\n");
    expect(await logOf({})).toBe("POST /a: 302\n");
    expect(await logOf({}, "/c")).toBe("POST /c: 503\n");
    target.answer = () => undefined;
    expect(await logOf({ timeoutMs: 200 })).toBe("POST /a: http-timeout\n");
    target.answer = (response) => void response.destroy();
    expect(await logOf({})).toBe("POST /a: http-connection\n");
  });

  it("is empty, and costs nothing, after a call that succeeded or went on elsewhere, or that was to be stopped", async () => {
    expect(await logOf({})).toBe("");
    target.answer = (response) => void response.writeHead(202).end();
    expect(await logOf({ completion: "callback" })).toBe("");
    const stop = new AbortController();
    target.answer = () => stop.abort("shutdown");
    const { ctx } = await attempt({ url: target.url }, { signal: stop.signal });
    expect(ctx.captured).toEqual([]);
  });
});
