import type { ComponentChildren } from 'preact';
import type { HistoryStep } from './monitor.ts';

/** Size of a small chart in its own units; the style sets the shown size. */
const WIDTH = 120;
const HEIGHT = 28;

/** Size of a chart with bars, and their number: those of 15 minutes. */
const BARS_WIDTH = 900;
const BARS_HEIGHT = 56;
const BARS = 90;

interface ChartProps {
  readonly class: string;
  readonly size: readonly [width: number, height: number];
  /** Says in words what the chart shows. */
  readonly label: string;
  readonly children: ComponentChildren;
}

/** An image that its style stretches. */
export function Chart({ class: className, size: [width, height], label, children }: ChartProps) {
  return (
    <svg
      class={className}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
      preserveAspectRatio="none"
    >
      {children}
    </svg>
  );
}

/** Line of values, which starts at 0. */
export function Sparkline(props: {
  readonly values: readonly number[];
  readonly label: string;
  readonly atLeast?: number;
}) {
  const { values, label, atLeast = 1 } = props;
  const most = Math.max(atLeast, ...values);
  const step = values.length > 1 ? WIDTH / (values.length - 1) : 0;
  const points = values.map(
    (value, at) => `${round(at * step)},${round(HEIGHT - 2 - (value / most) * (HEIGHT - 4))}`,
  );
  const line = points.join(' ');
  return (
    <Chart class="spark" size={[WIDTH, HEIGHT]} label={label}>
      {values.length > 1 && <polygon points={`0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} />}
      {values.length > 1 && <polyline points={line} />}
    </Chart>
  );
}

/**
 * Stacked bars of syncs: failures are hatched, so that they differ without their colour, and times at which /readyz failed have a
 * ground.
 */
export function Bars({
  steps,
  label,
}: {
  readonly steps: readonly HistoryStep[];
  readonly label: string;
}) {
  const most = Math.max(1, ...steps.map(({ successes, failures }) => successes + failures));
  const step = BARS_WIDTH / BARS;
  const scale = (BARS_HEIGHT - 8) / most;
  const hatch = { patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' } as const;
  return (
    <Chart class="bars" size={[BARS_WIDTH, BARS_HEIGHT]} label={label}>
      <defs>
        <pattern id="hatch" width={4} height={4} {...hatch}>
          <rect class="hatch-ground" width={4} height={4} />
          <rect class="hatch-line" width={2} height={4} />
        </pattern>
      </defs>
      {steps.map(({ sample, successes, failures }, at) => {
        const x = round((BARS - steps.length + at) * step);
        const bar = (kind: string, from: number, value: number) =>
          value > 0 && (
            <rect
              class={kind}
              x={x}
              y={round(BARS_HEIGHT - (from + value) * scale)}
              width={round(step * 0.8)}
              height={round(value * scale)}
            />
          );
        return [
          !sample.isReady && (
            <rect class="unready" x={x} width={round(step)} height={BARS_HEIGHT} />
          ),
          bar('ok', 0, successes),
          bar('failed', successes, failures),
        ];
      })}
      <line class="axis" x1={0} x2={BARS_WIDTH} y1={BARS_HEIGHT - 0.5} y2={BARS_HEIGHT - 0.5} />
    </Chart>
  );
}

/** Share of a limit that is in use. */
export function Meter(props: {
  readonly used: number;
  readonly limit: number | undefined;
  readonly label: string;
}) {
  const { used, limit, label } = props;
  const share = limit ? Math.min(1, used / limit) : 0;
  const size = { height: 8, rx: 2 };
  return (
    <Chart class="meter" size={[40, 8]} label={label}>
      <rect class="track" width={40} {...size} />
      {share > 0 && (
        <rect class={share >= 1 ? 'exhausted' : 'fill'} width={round(40 * share)} {...size} />
      )}
    </Chart>
  );
}

/** Rounds a coordinate. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
