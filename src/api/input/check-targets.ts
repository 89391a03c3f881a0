import type { Work } from "../../domain/definition.ts";
import { readBrokerUrl } from "../../domain/jobs/broker-url.ts";
import { HOW_TO_OPEN, outboundPolicy, type Target } from "../../domain/outbound/policy.ts";
import type { OutboundRules } from "../../domain/outbound/rules.ts";
import type { ApiContext, Caller } from "../context.ts";
import { type FieldFault, problemOfFaults } from "../problems/problem.ts";
import { showValue } from "./issues.ts";

/**
 * Refuses targets that can be seen to lead where this tenant may not: addresses that are not public, hosts and ports it is
 * not held to. What a name stands for is looked at when a connection is made, and every time. What stood there before may stay.
 */
export function checkTargets(
  context: Pick<ApiContext, "outboundAllow">,
  caller: Pick<Caller, "outbound">,
  work: Work,
  before?: Work,
): void {
  const known = new Set(before === undefined ? [] : targetsOf(before).map((one) => one.url));
  const faults = targetsOf(work).flatMap(({ field, url, target }) =>
    known.has(url) || target === undefined ? [] : (findFault(context, caller, field, target) ?? []),
  );
  if (faults.length > 0) throw problemOfFaults("invalid-request", faults);
}

/** What is wrong with one http or https URL, as far as it can be seen. */
export function findTargetFault(
  context: Pick<ApiContext, "outboundAllow">,
  caller: Pick<Caller, "outbound">,
  field: string,
  url: string,
): FieldFault | undefined {
  const target = targetOf(url);
  return target && findFault(context, caller, field, target);
}

type SeenTarget = Target & { shown: string };

function findFault(
  { outboundAllow }: Pick<ApiContext, "outboundAllow">,
  { outbound }: Pick<Caller, "outbound">,
  field: string,
  target: SeenTarget,
): FieldFault | undefined {
  const refusal = outboundPolicy(outbound, outboundAllow).refusalOf(target);
  if (refusal === undefined) return undefined;
  return { field, message: refusal, found: showValue(target.shown), allowed: allowedBy(outbound) };
}

function targetOf(url: string): SeenTarget | undefined {
  const parsed = URL.parse(url);
  if (parsed === null) return undefined;
  const port = parsed.port === "" ? (parsed.protocol === "https:" ? 443 : 80) : Number(parsed.port);
  return { host: parsed.hostname, port, shown: parsed.host };
}

function brokerOf(url: string): SeenTarget | undefined {
  const parsed = readBrokerUrl(url);
  return parsed && { host: parsed.host, port: parsed.port, shown: `${parsed.host}:${parsed.port}` };
}

function targetsOf({ job, effects = [] }: Work): { field: string; url: string; target: SeenTarget | undefined }[] {
  const jobUrl = job.kind === "http" || job.kind === "queue" ? job.url : undefined;
  return [
    ...(jobUrl === undefined
      ? []
      : [{ field: "job.url", url: jobUrl, target: job.kind === "queue" ? brokerOf(jobUrl) : targetOf(jobUrl) }]),
    ...effects.flatMap((effect, i) =>
      effect.kind === "webhook" ? [{ field: `effects[${i}].url`, url: effect.url, target: targetOf(effect.url) }] : [],
    ),
  ];
}

function allowedBy(rules: OutboundRules | null): string {
  const hosts = rules?.hosts ?? null;
  const beyond = rules === null || rules.allow.length === 0 ? "" : `, or ${rules.allow.join(", ")}`;
  const where = hosts === null ? `a public address${beyond} (${HOW_TO_OPEN})` : hosts.join(", ") || "none";
  return rules?.ports == null ? where : `${where}; ports ${rules.ports.join(", ") || "none"}`;
}
