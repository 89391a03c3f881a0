import { createRequire } from "node:module";
import { dirname } from "node:path";
import express, { type Express, type Request, type Response } from "express";
import type { ApiContext } from "./context.ts";
import { marked, sendHtml, sendPage } from "./html.ts";
import { createOpenApi } from "./openapi.ts";
import { PROBLEMS } from "./problems/catalogue.ts";
import { Problem, statusOf } from "./problems/problem.ts";
import { ROUTES } from "./table.ts";

/** What people open in a browser: the reference page, the error catalogue, and a page that leads to them. Nothing comes from elsewhere. */
const SCRIPTS_OF_OURS =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'";
export function mountPages(app: Express, context: ApiContext, hasBoard: boolean): void {
  let openapi: string | undefined;
  app.get("/openapi.json", (_request, response) => {
    openapi ??= JSON.stringify(createOpenApi(ROUTES, { version: context.version, publicUrl: context.publicUrl() }));
    response.set("content-type", "application/json; charset=utf-8").end(openapi);
  });

  const assets = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  app.get("/docs", (_request, response) => sendHtml(response, SCRIPTS_OF_OURS, referencePage()));
  app.get("/docs/start.js", (_request, response) => {
    response.set("content-type", "text/javascript; charset=utf-8").end(START_SCRIPT);
  });
  app.get("/docs/errors", (_request, response) => sendPage(response, "Punctual: errors", errorsPage()));
  app.use("/docs/assets", express.static(assets, { index: false, fallthrough: true, maxAge: "1h" }));
  app.get("/", (_request, response) => sendPage(response, "Punctual", landingPage(context.version, hasBoard)));
}

const NO_BOARD =
  "No Redis is in use: work is taken straight from PostgreSQL, and there are no queues to show. Bull Board would need redis-server on the PATH of `npm start`, or REDIS_URL";

/** Stands at /queues where there is no Redis. It shows nothing, so it asks for no key. */
export function answerWithoutBoard(request: Request, response: Response): void {
  if (request.accepts(["json", "html"]) !== "html") throw new Problem("no-redis", NO_BOARD);
  response.status(statusOf("no-redis")).set("cache-control", "no-store");
  sendPage(
    response,
    "Punctual: no queues",
    `<h1>No queues to show</h1><p>${marked(NO_BOARD)}.</p><p><a href="/">Back</a></p>`,
  );
}

function referencePage(): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Punctual API</title><link rel="icon" href="/docs/assets/favicon-32x32.png"><link rel="stylesheet" href="/docs/assets/swagger-ui.css"></head>
<body><div id="reference"></div><script src="/docs/assets/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></body></html>`;
}

const START_SCRIPT = `SwaggerUIBundle({ url: "/openapi.json", dom_id: "#reference", deepLinking: true, persistAuthorization: false, validatorUrl: null });`;

function errorsPage(): string {
  const rows = Object.entries(PROBLEMS).map(
    ([code, { status, title, remedy, retryable }]) =>
      `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${title}</td><td>${retryable ? "yes" : "no"}</td><td>${marked(remedy)}</td></tr>`,
  );
  return `<h1>Errors</h1><table><tr><th>code</th><th>status</th><th>meaning</th><th>retry</th><th>what to do</th></tr>${rows.join("")}</table>`;
}

function landingPage(version: string, hasBoard: boolean): string {
  const queues = hasBoard
    ? `<li><a href="/queues">Queues</a>: what waits in Redis (asks for an API key)</li>`
    : "<li>Queues: not shown here, because no Redis is in use and dispatch is direct</li>";
  return `<h1>Punctual ${version}</h1>
<p>A multi-tenant job scheduler: nothing due is forgotten, one run has one result, runs start on time and fairly.</p>
<ul><li><a href="/docs">API reference</a> (<a href="/openapi.json">OpenAPI 3.1</a>)</li><li><a href="/docs/errors">Errors</a></li>${queues}
<li><a href="/readyz">Readiness</a>, <a href="/metrics">metrics</a></li></ul>`;
}
