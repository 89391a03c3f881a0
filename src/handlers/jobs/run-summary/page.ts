import { showId } from "../../../kernel/ids.ts";
import type { Period } from "../period.ts";
import { latenessChart, PERCENTILES, runsChart } from "./charts.ts";
import { formatCount, formatMs, formatShare, type ZoneFormat } from "./format.ts";
import { html, type Markup } from "./markup.ts";
import { STYLE } from "./style.ts";
import { OUTCOMES, type ScheduleTally, type Tally } from "./tally.ts";

export type Heading = { title: string; period: Period; format: ZoneFormat };

const SCHEDULES_SHOWN = 50;
const ERRORS_SHOWN = 20;

/**
 * Everything before the CSV's base64 text; `pageBody` continues right after it. The link stands at the top, so the
 * rows can be written while they are read and only their tally is kept. STYLE is ours; the policy lets nothing else in.
 */
export function pageHead({ title, period, format }: Heading): string {
  const opening = html`<title>${title}</title>`;
  const heading = html`<body><main><header><div><h1>${title}</h1><p class="soft">${format.period(period)} · ${format.zone}</p></div>`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
${opening}<style>${STYLE}</style></head>${heading}<a class="download" download="runs.csv" href="data:text/csv;charset=utf-8;base64,`;
}

export function pageBody(tally: Tally, heading: Heading, csvRows: number): string {
  const body = tally.total === 0 ? html`<p class="empty">No runs in this period.</p>` : sections(tally, heading.format);
  const cut =
    csvRows < tally.total
      ? html` The CSV holds the first ${formatCount(csvRows)} of ${formatCount(tally.total)} runs.`
      : undefined;
  const notes = html`<footer>Lateness is the first start minus the due instant; a duration runs from the first start to the end, retries included. Percentiles are exact to 1 %.${cut}</footer>`;
  return `">Download CSV</a></header>${body}${notes}</main></body></html>\n`;
}

function sections(tally: Tally, format: ZoneFormat): Markup {
  return html`${figures(tally)}
<h2>Runs</h2>${legend(OUTCOMES.filter((outcome) => tally.outcomes[outcome] > 0).map((outcome) => [outcome, `${outcome} ${formatCount(tally.outcomes[outcome])}`]))}
${runsChart(tally.buckets, format)}
${tally.lateMs.count() === 0 ? undefined : html`<h2>Lateness</h2>${legend(PERCENTILES.map((p) => [`p${p}`, `p${p}`]))}${latenessChart(tally.buckets, format)}`}
${schedulesTable(tally)}${errorsTable(tally)}${slowestTable(tally, format)}`;
}

function figures({ total, outcomes, lateMs, durationMs }: Tally): Markup {
  const ended = outcomes.succeeded + outcomes.failed;
  return html`<dl>
${figure("Runs", formatCount(total), `${formatCount(outcomes.open)} still open`)}
${figure("Succeeded", formatShare(outcomes.succeeded, ended), `${formatCount(outcomes.failed)} failed`)}
${figure("Late by, median", formatMs(lateMs.percentile(50)), `p99 ${formatMs(lateMs.percentile(99))}`)}
${figure("Duration, median", formatMs(durationMs.percentile(50)), `p99 ${formatMs(durationMs.percentile(99))}`)}
</dl>`;
}

function figure(name: string, value: string, beside: string): Markup {
  return html`<div><dt>${name}</dt><dd>${value}</dd><dd>${beside}</dd></div>`;
}

function legend(entries: readonly (readonly [name: string, label: string])[]): Markup {
  return html`<ul class="legend">${entries.map(([name, label]) => html`<li><span class="dot dot-${name}"></span>${label}</li>`)}</ul>`;
}

function schedulesTable(tally: Tally): Markup {
  const all = [...tally.schedules.values()].sort((a, b) => b.total - a.total);
  const more = all.length - SCHEDULES_SHOWN;
  return html`<h2>Schedules</h2><div class="table"><table><thead><tr><th>Schedule</th><th class="number">Runs</th><th class="number">Succeeded</th><th class="number">Failed</th><th class="number">Skipped</th><th class="number">Late, mean</th><th class="number">Late, most</th></tr></thead>
<tbody>${all.slice(0, SCHEDULES_SHOWN).map(scheduleRow)}</tbody></table></div>${more > 0 ? html`<p class="soft small">and ${formatCount(more)} more with fewer runs</p>` : undefined}`;
}

function scheduleRow(schedule: ScheduleTally): Markup {
  const { outcomes, started } = schedule;
  return html`<tr><td class="name">${schedule.name}</td><td class="number">${formatCount(schedule.total)}</td><td class="number">${formatShare(outcomes.succeeded, outcomes.succeeded + outcomes.failed)}</td><td class="number">${formatCount(outcomes.failed)}</td><td class="number">${formatCount(outcomes.skipped)}</td><td class="number">${started === 0 ? "–" : formatMs(schedule.lateSum / started)}</td><td class="number">${started === 0 ? "–" : formatMs(schedule.lateMax)}</td></tr>`;
}

function errorsTable(tally: Tally): Markup | undefined {
  if (tally.errors.size === 0) return undefined;
  const worst = [...tally.errors].sort(([, a], [, b]) => b.count - a.count).slice(0, ERRORS_SHOWN);
  const rows = worst.map(
    ([code, error]) =>
      html`<tr><td class="name">${code || "other errors"}</td><td class="number">${formatCount(error.count)}</td><td class="message">${error.message}</td></tr>`,
  );
  return html`<h2>Failures</h2><div class="table"><table><thead><tr><th>Error</th><th class="number">Runs</th><th>Last message</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function slowestTable(tally: Tally, format: ZoneFormat): Markup | undefined {
  if (tally.slowest.length === 0) return undefined;
  const rows = tally.slowest.map(
    (run) =>
      html`<tr><td class="name">${run.scheduleName ?? "–"}</td><td class="instant">${format.dateTime(run.scheduledAt)}</td><td class="number">${formatMs(run.tookMs)}</td><td class="number">${run.attempts}</td><td>${run.state}</td><td class="id">${showId("run", run.id)}</td></tr>`,
  );
  return html`<h2>Slowest runs</h2><div class="table"><table><thead><tr><th>Schedule</th><th>Scheduled</th><th class="number">Duration</th><th class="number">Attempts</th><th>State</th><th>Run</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}
