import { parseDocument } from 'yaml';
import type { YAMLSeq } from 'yaml';
import { FORMAT, systemNamespace } from '../program/installation.ts';
import type { ReadManifest } from '../program/installation.ts';
import type { DeclaredMetric } from '../program/declared-metrics.ts';
import { isRecord } from '../../util/values.ts';

/** What Grafana and the Prometheus operator need for a program. */
export interface Monitoring {
  /** JSON of a dashboard. */
  readonly dashboard: string;
  /** Manifest of a PrometheusRule. */
  readonly alerts: string;
  /** Manifest of a ServiceMonitor. */
  readonly serviceMonitor: string;
}

/** The program whose dashboard and alerts are the templates of those of other programs. */
const TEMPLATE = 'crd-controller';

/** Metrics of a controller of that program. */
const OF_TEMPLATE = /\bcrd_controller_at_/;

/** Longest identifier of a dashboard. */
const LONGEST_UID = 40;

const COLUMNS = 3;
const PANEL = { w: 8, h: 8 };

/**
 * Returns the monitoring of a program: that of this package, with the names of the program, without the metrics of its
 * controllers, and with a row of panels for the custom metrics.
 *
 * @param read reads the files of this package's installation
 */
export function monitoringOf(
  program: string,
  metrics: readonly DeclaredMetric[],
  read: ReadManifest,
): Monitoring {
  const dashboard = read(`dashboard/${TEMPLATE}.json`);
  const alerts = read('alerts/prometheus-rule.yaml');
  const serviceMonitor = read('metrics/service-monitor.yaml');
  if (program === TEMPLATE) return { dashboard, alerts, serviceMonitor };
  return {
    dashboard: dashboardOf(program, metrics, JSON.parse(dashboard)),
    alerts: renamed(withoutTemplateRules(alerts), program),
    serviceMonitor: renamed(serviceMonitor, program),
  };
}

/** Returns the labels of the ConfigMap of a dashboard. */
export function dashboardLabels(program: string): Record<string, string> {
  return {
    'app.kubernetes.io/name': program,
    'app.kubernetes.io/component': 'dashboard',
    grafana_dashboard: '1',
  };
}

/** Names of alerts start with the name of the program: `StaticSiteControllerAbsent`. */
function renamed(text: string, program: string): string {
  const words = program.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return text
    .replaceAll(systemNamespace(TEMPLATE), systemNamespace(program))
    .replaceAll(TEMPLATE, program)
    .replaceAll('CrdController', words.join(''));
}

function withoutTemplateRules(alerts: string): string {
  const document = parseDocument(alerts);
  const groups = document.getIn(['spec', 'groups']) as YAMLSeq;
  for (let group = 0; group < groups.items.length; group++) {
    const path = ['spec', 'groups', group, 'rules'];
    const { items } = document.getIn(path) as YAMLSeq;
    for (let rule = items.length - 1; rule >= 0; rule--) {
      if (OF_TEMPLATE.test(String(document.getIn([...path, rule, 'expr']))))
        document.deleteIn([...path, rule]);
    }
  }
  return document.toString({ ...FORMAT, lineWidth: 100 });
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
  readonly targets?: readonly { readonly expr: string }[];
  readonly [field: string]: unknown;
}

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly name: string }[] };
  readonly panels: readonly Panel[];
}

function dashboardOf(
  program: string,
  metrics: readonly DeclaredMetric[],
  template: Dashboard,
): string {
  const { panels } = template;
  const isOfTemplate = ({ targets = [] }: Panel) =>
    targets.some(({ expr }) => OF_TEMPLATE.test(expr));
  const first = panels.findIndex(isOfTemplate) - 1;
  const last = panels.findLastIndex(isOfTemplate);
  const [row, prototype] = panels.slice(first);
  const next = panels[last + 1];
  if (!row || !prototype || !next) throw new Error('The template has no row of a controller');
  const top = row.gridPos.y;
  const ids = Math.max(...panels.map(({ id }) => id)) + 1;
  const own =
    metrics.length === 0
      ? []
      : [
          { ...row, title: `Metrics of ${program}` },
          ...metrics.map((metric, index) => ({
            ...panelOf(prototype, metric),
            id: ids + index,
            gridPos: {
              x: (index % COLUMNS) * PANEL.w,
              y: top + 1 + Math.floor(index / COLUMNS) * PANEL.h,
              ...PANEL,
            },
          })),
        ];
  const height = metrics.length === 0 ? 0 : 1 + Math.ceil(metrics.length / COLUMNS) * PANEL.h;
  const moved = top + height - next.gridPos.y;
  const dashboard = {
    ...template,
    title: program,
    uid: program.slice(0, LONGEST_UID),
    templating: {
      list: template.templating.list.map((variable) =>
        variable.name === 'job'
          ? { ...variable, current: { selected: true, text: [program], value: [program] } }
          : variable,
      ),
    },
    panels: [
      ...panels.slice(0, first),
      ...own,
      ...panels
        .slice(last + 1)
        .map((panel) => placed(panel, { ...panel.gridPos, y: panel.gridPos.y + moved })),
    ],
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

function placed(panel: Panel, gridPos: Panel['gridPos']): Panel {
  return { ...panel, gridPos };
}

const SELECTOR = '{job=~"$job", namespace=~"$namespace"}';

/** Returns a panel of a metric. */
function panelOf(prototype: Panel, { type, name, help, labels }: DeclaredMetric): Panel {
  const legend = labels.map((label) => `{{${label}}}`).join(' ');
  const by = (...names: readonly string[]) => `by (${[...names, ...labels].join(', ')})`;
  const rate = (metric: string) => `rate(${metric}${SELECTOR}[$__rate_interval])`;
  const queries: readonly (readonly [expr: string, legend: string])[] =
    type === 'counter'
      ? [[labels.length > 0 ? `sum ${by()} (${rate(name)})` : `sum(${rate(name)})`, legend || name]]
      : type === 'gauge'
        ? // Each replica has its own value.
          [[`max ${by('pod')} (${name}${SELECTOR})`, `{{pod}} ${legend}`.trim()]]
        : [0.5, 0.9, 0.99].map((quantile) => [
            `histogram_quantile(${quantile}, sum ${by('le')} (${rate(`${name}_bucket`)}))`,
            `p${quantile * 100} ${legend}`.trim(),
          ]);
  const [target] = prototype.targets ?? [];
  const { fieldConfig } = prototype;
  const defaults =
    isRecord(fieldConfig) && isRecord(fieldConfig['defaults']) ? fieldConfig['defaults'] : {};
  // Gauges can be negative.
  const { min: _, ...withoutMinimum } = defaults;
  return {
    ...prototype,
    title: name,
    description: help,
    targets: queries.map(([expr, legendFormat], index) =>
      Object.assign({}, target, {
        refId: String.fromCharCode('A'.charCodeAt(0) + index),
        expr,
        legendFormat,
      }),
    ),
    fieldConfig: {
      overrides: [],
      defaults: { ...(type === 'gauge' ? withoutMinimum : defaults), unit: unitOf(type, name) },
    },
  };
}

function unitOf(type: DeclaredMetric['type'], name: string): string {
  if (type === 'counter') return name.endsWith('_bytes_total') ? 'Bps' : 'ops';
  if (name.endsWith('_timestamp_seconds')) return 'dateTimeAsIso';
  if (name.endsWith('_seconds')) return 's';
  if (name.endsWith('_bytes')) return 'bytes';
  return name.endsWith('_ratio') ? 'percentunit' : 'short';
}
