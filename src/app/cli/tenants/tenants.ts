import type { Command } from "commander";
import type { Tenant } from "../../../client/identity.ts";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printFields, printJson, printLine, printNote, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showUtc } from "../words.ts";
import { changedOutbound, type OutboundOptions, outboundOptions, showOutbound } from "./outbound.ts";

type ListOptions = ClientOptions & { status?: string; limit: string; after?: string };
type FieldOptions = ClientOptions & { name?: string; jobs?: string };
type EditOptions = FieldOptions & OutboundOptions;

/** Who schedules belong to; for admins. */
export function tenantsCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual tenants create --name Acme --jobs report.run-summary
  punctual tenants edit ten_01jd… --jobs all
  punctual tenants edit ten_01jd… --outbound-allow 10.2.0.0/16 --outbound-hosts '*.example.com,10.2.0.9' --outbound-ports 443
  punctual tenants suspend ten_01jd…
  punctual schedules list --tenant ten_01jd…`,
  );

  withClientOptions(pageOptions(group.command("list").description("list tenants, newest first")))
    .option("--status <status>", "only these: active or suspended")
    .action(
      act(async (config, { status, limit, after, ...options }: ListOptions) => {
        const page = await clientFor(options, config).tenants.list({
          limit: readLimit(limit),
          ...(status === undefined ? {} : { status }),
          ...(after === undefined ? {} : { after }),
        });
        if (options.json) return printJson(page);
        if (page.items.length === 0) return printNote("No tenants here.");
        printTable(
          ["TENANT", "NAME", "STATUS", "JOBS", "CREATED (UTC)"],
          page.items.map((one) => [one.tenantId, one.name, one.status, showJobs(one), showUtc(one.createdAt)]),
        );
        if (page.next !== null) printLine(`More: --after ${page.next}`);
      }),
    );

  withClientOptions(group.command("show <tenant>").description("show one tenant")).action(
    act(async (config, options: ClientOptions, id: string) => {
      const tenant = await clientFor(options, config).tenants.get(id);
      if (options.json) return printJson(tenant);
      printTenant(tenant);
    }),
  );

  fieldOptions(
    withClientOptions(group.command("create").description("make a tenant; the name is nobody else's")),
  ).action(
    act(async (config, { name, jobs, ...options }: FieldOptions) => {
      if (name === undefined) throw new UsageError("--name <name>: not given, and required (--help says more)");
      const made = await clientFor(options, config).tenants.create({ name, ...readJobs(jobs) });
      if (options.json) return printJson(made);
      printTenant(made);
    }),
  );

  outboundOptions(
    fieldOptions(
      withClientOptions(
        group
          .command("edit <tenant>")
          .description("rename it, or say which jobs it may use and where its calls may lead"),
      ),
    ),
  ).action(
    act(
      async (
        config,
        { name, jobs, outboundAllow, outboundHosts, outboundPorts, ...options }: EditOptions,
        id: string,
      ) => {
        const client = clientFor(options, config);
        const rules = { outboundAllow, outboundHosts, outboundPorts };
        const outbound = await changedOutbound(rules, async () => (await client.tenants.get(id)).outbound);
        const change = { ...(name === undefined ? {} : { name }), ...readJobs(jobs), ...outbound };
        if (Object.keys(change).length === 0) {
          throw new UsageError("nothing to change: give --name, --jobs or --outbound-…");
        }
        const answer = await client.tenants.edit(id, change);
        if (options.json) return printJson(answer);
        printTenant(answer.tenant);
      },
    ),
  );

  for (const [verb, status, description] of [
    ["suspend", "suspended", "let nothing of it start, and let it read only"],
    ["resume", "active", "let it go on, with what has waited"],
  ] as const) {
    withClientOptions(group.command(`${verb} <tenant>`).description(description)).action(
      act(async (config, options: ClientOptions, id: string) => {
        const { tenant, changed } = await clientFor(options, config).tenants.edit(id, { status });
        if (options.json) return printJson({ tenant, changed });
        printLine(changed ? `${id} (${tenant.name}) is ${status}` : `${id} (${tenant.name}) was ${status} already`);
      }),
    );
  }
}

function fieldOptions(command: Command): Command {
  return command
    .option("--name <name>", "its name")
    .option("--jobs <names>", "the job types it may use, apart by commas; all, or none");
}

function readJobs(text: string | undefined): { allowedJobs?: string[] | null } {
  if (text === undefined) return {};
  if (text === "all") return { allowedJobs: null };
  const names = text === "none" ? [] : text.split(",").map((name) => name.trim());
  if (!names.includes("")) return { allowedJobs: names };
  throw new UsageError(`--jobs: found "${text}"; allowed: names apart by commas, all, or none`);
}

function showJobs({ allowedJobs }: Tenant): string {
  if (allowedJobs === null) return "all";
  return allowedJobs.length === 0 ? "none" : allowedJobs.join(", ");
}

function printTenant(tenant: Tenant): void {
  printFields({
    tenant: tenant.tenantId,
    name: tenant.name,
    status: tenant.status,
    jobs: showJobs(tenant),
    outbound: showOutbound(tenant.outbound),
    created: showUtc(tenant.createdAt),
  });
}
