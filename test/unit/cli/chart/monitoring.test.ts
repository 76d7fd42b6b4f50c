import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { monitoringOf } from '../../../../src/cli/chart/monitoring.ts';
import { ownManifests } from '../../../../src/cli/commands/generate-helm.ts';
import type { DeclaredMetric } from '../../../../src/cli/program/declared-metrics.ts';
import { dashboard, dashboardText, ruleGroups } from '../../../support/observability.ts';
import type { Dashboard, Panel, RuleGroup } from '../../../support/observability.ts';

const METRICS: readonly DeclaredMetric[] = [
  { type: 'counter', name: 'backup_runs_total', help: 'Runs by result', labels: ['result'] },
  { type: 'counter', name: 'backup_sent_bytes_total', help: 'Bytes sent', labels: [] },
  { type: 'gauge', name: 'backup_size_bytes', help: 'Size by tier', labels: ['tier'] },
  { type: 'histogram', name: 'backup_duration_seconds', help: 'Duration', labels: [] },
];

function assertNoOverlap(panels: readonly Panel[]): void {
  const rows = new Map<number, number>();
  for (const { title, gridPos } of panels) {
    for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
      const taken = rows.get(y) ?? 0;
      assert.ok(gridPos.x >= taken, `${title} covers another panel`);
      rows.set(y, gridPos.x + gridPos.w);
    }
  }
  // No line is empty.
  assert.equal(rows.size, Math.max(...rows.keys()) + 1);
}

test('the monitoring of the bundled program is that of its installation', () => {
  const own = monitoringOf('crd-controller', [], ownManifests());
  assert.equal(own.dashboard, dashboardText());
  const other = monitoringOf('a-program-with-a-name-of-more-than-40-letters', [], ownManifests());
  assert.equal(JSON.parse(other.dashboard).uid.length, 40, 'as Grafana requires');
});

for (const metrics of [[], METRICS.slice(0, 3), METRICS]) {
  test(`the monitoring of a program with ${metrics.length} metrics has its names, and a panel for each metric`, () => {
    const own = monitoringOf('backup-operator', metrics, ownManifests());
    for (const text of Object.values(own)) {
      assert.doesNotMatch(text, /crd-controller|CrdController|crd_controller_at_/);
    }
    const { title, uid, panels }: Dashboard = JSON.parse(own.dashboard);
    assert.deepEqual([title, uid], ['backup-operator', 'backup-operator']);
    assertNoOverlap(panels);
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const known = new Set(dashboard().panels.map((panel) => panel.title));
    const added = panels.filter((panel) => !known.has(panel.title));
    assert.deepEqual(
      added.map((panel) => panel.title),
      metrics.length === 0
        ? []
        : ['Metrics of backup-operator', ...metrics.map(({ name }) => name)],
    );
    const rules = (groups: readonly RuleGroup[]) => groups.flatMap((group) => group.rules);
    const groups: readonly RuleGroup[] = parse(own.alerts).spec.groups;
    assert.deepEqual(
      rules(groups).map(({ alert }) => alert),
      rules(ruleGroups())
        .filter(({ expr }) => !expr.includes('_at_'))
        .map(({ alert }) => alert.replace('CrdController', 'BackupOperator')),
    );
  });
}

test('a panel has the query, the legend and the unit of its metric', () => {
  const { dashboard: text } = monitoringOf('backup-operator', METRICS, ownManifests());
  interface Field {
    readonly fieldConfig: { readonly defaults: { readonly unit: string; readonly min?: number } };
  }
  const { panels }: { readonly panels: readonly (Panel & Field)[] } = JSON.parse(text);
  const selector = '{job=~"$job", namespace=~"$namespace"}';
  const found = METRICS.map(({ name }) => {
    const { targets = [], fieldConfig } = panels.find((panel) => panel.title === name)!;
    const [last] = targets.slice(-1);
    return [
      last?.refId,
      last?.expr.replaceAll(selector, ''),
      last?.legendFormat,
      fieldConfig.defaults.unit,
      fieldConfig.defaults.min,
    ];
  });
  assert.deepEqual(found, [
    ['A', 'sum by (result) (rate(backup_runs_total[$__rate_interval]))', '{{result}}', 'ops', 0],
    [
      'A',
      'sum(rate(backup_sent_bytes_total[$__rate_interval]))',
      'backup_sent_bytes_total',
      'Bps',
      0,
    ],
    ['A', 'max by (pod, tier) (backup_size_bytes)', '{{pod}} {{tier}}', 'bytes', undefined],
    [
      'C',
      'histogram_quantile(0.99, sum by (le) (rate(backup_duration_seconds_bucket[$__rate_interval])))',
      'p99',
      's',
      0,
    ],
  ]);
});
