import { scaleBand, scaleLinear, scaleLog } from "d3-scale";
import { curveMonotoneX, line } from "d3-shape";
import { formatCount, formatMs, type ZoneFormat } from "./format.ts";
import { html, type Markup } from "./markup.ts";
import { type Bucket, OUTCOMES } from "./tally.ts";

const WIDTH = 800;
const HEIGHT = 220;
const LEFT = 52;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = HEIGHT - 24;
const MOST_LABELS = 8;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const LABEL_STEPS_MS = [
  HOUR_MS / 60,
  HOUR_MS / 12,
  HOUR_MS / 6,
  HOUR_MS / 4,
  HOUR_MS / 2,
  HOUR_MS,
  3 * HOUR_MS,
  6 * HOUR_MS,
  12 * HOUR_MS,
  DAY_MS,
  2 * DAY_MS,
  7 * DAY_MS,
  14 * DAY_MS,
  28 * DAY_MS,
];

/** Runs per stretch of time, stacked by outcome, the good ones at the bottom. */
export function runsChart(buckets: readonly Bucket[], format: ZoneFormat): Markup {
  const x = bandsOf(buckets);
  const most = Math.max(1, ...buckets.map(totalOf));
  const y = scaleLinear([0, most], [BOTTOM, TOP]).nice(4);
  const ticks = y.ticks(4).filter(Number.isInteger);
  const bars = buckets.map((bucket, i) => {
    let below = 0;
    const parts = OUTCOMES.filter((outcome) => bucket.outcomes[outcome] > 0).map((outcome) => {
      const from = below;
      below += bucket.outcomes[outcome];
      const top = y(below);
      return html`<rect class="fill-${outcome}" x="${px(x(i)!)}" y="${px(top)}" width="${px(x.bandwidth())}" height="${px(y(from) - top)}"/>`;
    });
    const said = OUTCOMES.filter((outcome) => bucket.outcomes[outcome] > 0).map(
      (o) => `${formatCount(bucket.outcomes[o])} ${o}`,
    );
    return hoverable(x(i)!, x.bandwidth(), `${format.period(bucket)}: ${said.join(", ") || "no runs"}`, parts);
  });
  const grid = ticks.map((tick) => gridLine(y(tick), formatCount(tick)));
  return frame("Runs over time, stacked by outcome", [...grid, ...bars, ...timeLabels(buckets, x, format)]);
}

export const PERCENTILES = [50, 95, 99] as const;

/** Round durations, so that a logarithmic axis reads like a clock. */
const LATENESS_TICKS = [
  1,
  10,
  100,
  1000,
  10_000,
  60_000,
  600_000,
  HOUR_MS,
  6 * HOUR_MS,
  DAY_MS,
  10 * DAY_MS,
  100 * DAY_MS,
];

/** Percentiles of start minus due instant; logarithmic, because 20 ms and 20 s must both be readable. */
export function latenessChart(buckets: readonly Bucket[], format: ZoneFormat): Markup {
  const x = bandsOf(buckets);
  const worst = Math.max(1, ...buckets.map((bucket) => bucket.lateMs.percentile(99) ?? 0));
  const top = LATENESS_TICKS.find((tick) => tick >= Math.max(worst, 100)) ?? worst;
  const y = scaleLog([1, top], [BOTTOM, TOP]).clamp(true);
  const middle = (i: number) => x(i)! + x.bandwidth() / 2;
  // The higher ones first and thicker: where they coincide, each is still seen.
  const curves = [...PERCENTILES].reverse().map((p) => {
    const points = buckets.flatMap((bucket, i) => {
      const ms = bucket.lateMs.percentile(p);
      return ms === undefined ? [] : [{ i, x: middle(i), y: y(Math.max(1, ms)) }];
    });
    const path = line<(typeof points)[number]>(
      (point) => point.x,
      (point) => point.y,
    ).curve(curveMonotoneX)(points);
    const dots =
      points.length > 30
        ? []
        : points.map((dot) => html`<circle class="fill-p${p}" cx="${px(dot.x)}" cy="${px(dot.y)}" r="2.5"/>`);
    return html`<path class="line line-p${p}" d="${path ?? ""}"/>${dots}`;
  });
  const hovers = buckets.map((bucket, i) => {
    const said = PERCENTILES.map((p) => `p${p} ${formatMs(bucket.lateMs.percentile(p))}`).join(", ");
    return hoverable(x(i)!, x.bandwidth(), `${format.period(bucket)}: ${said}`, []);
  });
  const grid = LATENESS_TICKS.filter((tick) => tick <= top).map((tick) => gridLine(y(tick), formatMs(tick)));
  return frame("Lateness percentiles over time", [...grid, ...curves, ...hovers, ...timeLabels(buckets, x, format)]);
}

type Bands = ReturnType<typeof bandsOf>;

function bandsOf(buckets: readonly Bucket[]) {
  return scaleBand<number>(buckets.keys(), [LEFT, WIDTH - RIGHT])
    .paddingInner(0.22)
    .paddingOuter(0.1);
}

function totalOf(bucket: Bucket): number {
  return OUTCOMES.reduce((sum, outcome) => sum + bucket.outcomes[outcome], 0);
}

function frame(label: string, content: readonly Markup[]): Markup {
  return html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">${content}</svg>`;
}

function gridLine(y: number, label: string): Markup {
  return html`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${px(y)}" y2="${px(y)}"/><text class="tick end" x="${LEFT - 8}" y="${px(y + 3.5)}">${label}</text>`;
}

function hoverable(x: number, width: number, said: string, content: readonly Markup[]): Markup {
  return html`<g class="hover"><title>${said}</title><rect class="hit" x="${px(x)}" y="${TOP}" width="${px(width)}" height="${BOTTOM - TOP}"/>${content}</g>`;
}

function timeLabels(buckets: readonly Bucket[], x: Bands, format: ZoneFormat): Markup[] {
  const first = buckets[0];
  const last = buckets.at(-1);
  if (first === undefined || last === undefined) return [];
  const label = last.toAt - first.fromAt > 2 * DAY_MS ? format.day : format.time;
  const widthMs = (buckets[1] ?? last).toAt - (buckets[1] ?? last).fromAt;
  const stepMs = LABEL_STEPS_MS.find((step) => step >= widthMs && (widthMs * buckets.length) / step <= MOST_LABELS);
  const every = Math.max(1, Math.round((stepMs ?? 56 * DAY_MS) / widthMs));
  return buckets.flatMap((bucket, i) => {
    if (i % every !== 0) return [];
    return [
      html`<text class="tick middle" x="${px(x(i)! + x.bandwidth() / 2)}" y="${HEIGHT - 6}">${label(bucket.fromAt)}</text>`,
    ];
  });
}

const px = (value: number) => Math.round(value * 10) / 10;
