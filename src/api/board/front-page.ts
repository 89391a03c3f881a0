import type { Response } from "express";
import { showId } from "../../kernel/ids.ts";
import { listBusiestLanes, listTenantsNamed, type TenantLane } from "../../store/reads/tenants/busiest.ts";
import type { ApiContext } from "../context.ts";
import { escapeHtml, sendPage } from "../html.ts";

const MOST = 50;

/** For admins: the tenants whose lanes are busiest, or whose names hold what was asked for. */
export async function sendFrontPage(
  context: ApiContext,
  response: Response,
  search: string | undefined,
): Promise<void> {
  const found = search === undefined ? await busiest(context) : await named(context, search);
  sendPage(
    response.set("cache-control", "no-store"),
    "Punctual: queues",
    `<h1>Queues</h1><form method="get" action="/queues"><label>Tenant, or a part of its name
<input name="search" value="${escapeHtml(search ?? "")}"></label> <button>Search</button></form>${found}
<p><a href="/">Back</a> · <a href="/sign-out">Sign out</a></p>`,
  );
}

async function busiest({ db }: ApiContext): Promise<string> {
  const lanes = await listBusiestLanes(db, MOST);
  if (lanes.length === 0) return "<p>Nothing has run yet.</p>";
  const rows = [...Map.groupBy(lanes, (lane) => lane.tenantId).values()].map((of) => [linkTo(of[0]!), laneText(of)]);
  return `<h2>Busiest now</h2>${table(["tenant", "running"], rows)}`;
}

async function named({ db }: ApiContext, search: string): Promise<string> {
  const tenants = await listTenantsNamed(db, search, MOST);
  if (tenants.length === 0) return "<p>No tenant's name holds this.</p>";
  return table(
    ["tenant", "id"],
    tenants.map(({ id, name }) => [linkTo({ tenantId: id, name }), `<code>${showId("ten", id)}</code>`]),
  );
}

function linkTo({ tenantId, name }: Pick<TenantLane, "tenantId" | "name">): string {
  return `<a href="/queues/${showId("ten", tenantId)}">${escapeHtml(name)}</a>`;
}

function laneText(lanes: readonly TenantLane[]): string {
  return lanes.map((lane) => `${lane.running} ${escapeHtml(lane.class)}`).join(", ");
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[], tag: string) => cells.map((cell) => `<${tag}>${cell}</${tag}>`).join("");
  return `<table><tr>${line(heads, "th")}</tr>${rows.map((row) => `<tr>${line(row, "td")}</tr>`).join("")}</table>`;
}
