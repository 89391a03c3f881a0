import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { exportedMetrics } from "./exported-metrics.ts";

type Rule = {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string };
};

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(`${root}/${path}`, "utf8");

const prometheus: {
  rule_files: string[];
  scrape_configs: { job_name: string; dns_sd_configs: { names: string[]; port: number }[] }[];
} = parse(read("ops/prometheus/prometheus.yml"));
const compose: { services: Record<string, { image: string; command?: string[] }> } = parse(read("docker-compose.yml"), {
  merge: true,
});
const alerts: Rule[] = parse(read("ops/prometheus/alerts.yml")).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
);
const dashboard: { panels: { title: string; targets: { expr: string; legendFormat: string }[] }[] } = JSON.parse(
  read("ops/grafana/punctual.json"),
);
const expressions = [
  ...alerts.map((rule) => rule.expr),
  ...dashboard.panels.flatMap((panel) => panel.targets.map((target) => target.expr)),
];

/** Series name → metric: a histogram is asked for by `_bucket`, `_sum`, `_count`. */
const known = new Map<string, { labels: readonly string[] }>();
for (const { name, kind, labels } of exportedMetrics()) {
  for (const suffix of kind === "histogram" ? ["_bucket", "_sum", "_count"] : [""]) {
    known.set(name + suffix, { labels: suffix === "_bucket" ? ["le", ...labels] : labels });
  }
}

/** What an expression asks for that nobody exports: unknown series, and labels their metrics do not have. */
function mistakesIn(expression: string): string[] {
  const mistakes: string[] = [];
  const labels = new Set(["job", "instance"]);
  for (const [, series = "", selector = ""] of expression.matchAll(/(punctual_\w+)(?:\{([^}]*)\})?/g)) {
    const metric = known.get(series);
    if (metric === undefined) mistakes.push(series);
    for (const label of metric?.labels ?? []) labels.add(label);
    for (const [, label = ""] of selector.matchAll(/(\w+)\s*[=!]~?/g)) {
      if (metric !== undefined && !metric.labels.includes(label)) mistakes.push(`${series}{${label}}`);
    }
  }
  for (const [, list = ""] of expression.matchAll(/\bby \(([^)]*)\)/g)) {
    mistakes.push(...list.split(/,\s*/).filter((label) => !labels.has(label)));
  }
  return mistakes;
}

describe("alerts and dashboard", () => {
  it("ask only for metrics and labels that exist", () => {
    expect(expressions.flatMap((expression) => mistakesIn(expression))).toEqual([]);
    expect(expressions.length).toBeGreaterThan(20);
  });

  it("would be caught asking for anything else", () => {
    expect(mistakesIn("max(punctual_scan_lagg_seconds)")).toEqual(["punctual_scan_lagg_seconds"]);
    expect(mistakesIn("punctual_run_lateness_seconds")).toEqual(["punctual_run_lateness_seconds"]);
    expect(mistakesIn('punctual_claims_total{result="x"}')).toEqual(["punctual_claims_total{result}"]);
    expect(mistakesIn("sum by (tenant) (punctual_claims_total)")).toEqual(["tenant"]);
  });

  it("name in a legend or a sentence only labels that their expression keeps", () => {
    const texts = [
      ...dashboard.panels.flatMap((panel) =>
        panel.targets.map(({ expr, legendFormat }) => ({ expr, text: legendFormat })),
      ),
      ...alerts.map(({ expr, annotations }) => ({ expr, text: `${annotations.summary} ${annotations.description}` })),
    ];
    const lost = texts.flatMap(({ expr, text }) => {
      const kept = (/\bby \(([^)]*)\)/.exec(expr)?.[1] ?? "job, instance").split(/,\s*/);
      const named = [...text.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label]) => label ?? "");
      return named.filter((label) => !kept.includes(label)).map((label) => `${label} in ${text}`);
    });
    expect(lost).toEqual([]);
  });

  it("every alert says how bad it is, what happens and what it means", () => {
    for (const rule of alerts) {
      expect(rule.alert).toMatch(/^Punctual[A-Z]/);
      expect(["page", "ticket"]).toContain(rule.labels.severity);
      expect(rule.annotations.summary.length, rule.alert).toBeGreaterThan(10);
      expect(rule.annotations.description.length, rule.alert).toBeGreaterThan(10);
    }
    expect(new Set(alerts.map((rule) => rule.alert)).size).toBe(alerts.length);
  });
});

describe("the scrape configuration", () => {
  it("finds every lasting role of docker-compose.yml, on the port it serves metrics on", () => {
    const scraped = prometheus.scrape_configs
      .flatMap((job) => job.dns_sd_configs)
      .flatMap(({ names, port }) => names.map((name) => [name, port]));
    const roles = Object.entries(compose.services).filter(
      ([name, one]) => one.image === "punctual:local" && name !== "migrate",
    );
    expect(Object.fromEntries(scraped)).toEqual(
      Object.fromEntries(roles.map(([name]) => [name, name === "api" ? 8080 : 9464])),
    );
  });

  it("loads the alerts", () => {
    expect(prometheus.rule_files).toEqual(["alerts.yml"]);
  });
});
