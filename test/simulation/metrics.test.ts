import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { settle } from '../../src/util/fake-clock.ts';
import { page } from '../support/docs.ts';
import { parseExposition } from '../support/exposition.ts';
import type { Sample } from '../support/exposition.ts';
import {
  dashboard,
  dashboardExpressions,
  dashboardText,
  ruleGroups,
} from '../support/observability.ts';
import { mentionsOf } from '../support/promql.ts';
import { ScrapedDaemons } from '../support/scraped-daemons.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const OPERATIONS = page('docs/operations.md');

/** Metrics that Prometheus generates, and labels that it adds to every sample. */
const OF_PROMETHEUS: readonly Sample[] = [{ name: 'up', labels: {}, value: 1 }];
const TARGET_LABELS = ['job', 'namespace', 'pod', 'instance'];

describe('A daemon that has run all controllers', () => {
  let simulation: ScrapedDaemons;
  let text: string;
  let samples: readonly Sample[];
  /** Label names of each metric. */
  let labelsOf: Map<string, Set<string>>;

  before(async () => {
    simulation = new ScrapedDaemons();
    simulation.startCluster();
    await simulation.installAll();
    await simulation.applyExamples();
    // The daemon has its own rate limit, and two responses that make it retry.
    simulation.server.faults.failNext({ verb: 'list' }, 429, { retryAfterSeconds: 1, times: 2 });
    simulation.startScraped('a', { qps: 100 });
    await simulation.pass(60_000);
    // Node reports a garbage collection with a short delay.
    for (text = ''; !text.includes('nodejs_gc_duration_seconds_sum');) {
      collectGarbage();
      await settle();
      await simulation.scrape();
      text = simulation.scrapes.at(-1)?.text ?? '';
    }
    samples = parseExposition(text);
    labelsOf = new Map();
    for (const { name, labels } of [...samples, ...OF_PROMETHEUS]) {
      const known = labelsOf.get(name) ?? new Set(TARGET_LABELS);
      for (const label of Object.keys(labels)) known.add(label);
      labelsOf.set(name, known);
    }
  });
  after(() => simulation.end());

  it('all controllers synced without errors, and an At has run', () => {
    assert.deepEqual(simulation.errors(), []);
    const value = (name: string, wanted: Record<string, string> = {}) =>
      samples.find(
        (sample) =>
          sample.name === name &&
          Object.entries(wanted).every(([label, is]) => sample.labels[label] === is),
      )?.value ?? 0;
    for (const controller of ['count', 'webapp', 'at', 'foo', 'pod-count']) {
      const success = { controller, result: 'success' };
      assert.ok(value('controller_runtime_reconcile_total', success) > 0, controller);
      assert.equal(value('running_managed_controllers', { name: controller }), 1, controller);
    }
    assert.equal(value('leader_election_master_status'), 1);
    assert.equal(value('crd_controller_at_due_total'), 1);
    assert.equal(value('crd_controller_at_start_delay_seconds_count'), 1);
    assert.equal(value('crd_controller_at_missed_total'), 0, 'a new At is not missed');
  });

  /** Returns the metrics and labels in an expression that the daemon does not export. */
  const problems = ([where, expression]: readonly [string, string]): string[] => {
    const { selectors, grouping } = mentionsOf(expression);
    const known = new Set<string>();
    const found = selectors.flatMap(({ metric, labels }) => {
      const has = labelsOf.get(metric);
      if (!has) return [`unknown metric ${metric}`];
      for (const label of has) known.add(label);
      return [
        ...labels.filter((label) => !has.has(label)).map((label) => `${metric} has no ${label}`),
        // Other programs export metrics with these names, too.
        ...(labels.includes('job') ? [] : [`${metric} of which job?`]),
      ];
    });
    if (selectors.length === 0) found.push('no metric in the expression');
    for (const label of grouping)
      if (!known.has(label)) found.push(`no metric has the label ${label}`);
    return found.map((problem) => `${where}: ${problem}`);
  };

  it('exports every metric and label that the alerts use', () => {
    const rules = ruleGroups().flatMap((group) => group.rules);
    assert.deepEqual(
      rules.flatMap(({ alert, expr }) => problems([alert, expr])),
      [],
    );
  });

  it('exports every metric and label that the dashboard uses', () => {
    assert.deepEqual(dashboardExpressions().flatMap(problems), []);
  });

  it('the check finds missing metrics and labels', () => {
    assert.deepEqual(
      [
        'workqueue_depht{job="a"}',
        'workqueue_depth{job="a", queue="b"}',
        'sum by (queue) (workqueue_depth)',
        '1 + 1',
      ].flatMap((expression) => problems(['x', expression])),
      [
        'x: unknown metric workqueue_depht',
        'x: workqueue_depth has no queue',
        'x: workqueue_depth of which job?',
        'x: no metric has the label queue',
        'x: no metric in the expression',
      ],
    );
  });

  it('the operations page documents each metric of this project', () => {
    const ours = text.matchAll(/^# TYPE (crd_controller_\w+) /gm);
    const missing = Array.from(ours, ([, name = '']) => name).filter(
      (name) => !OPERATIONS.includes(`\`${name}\``),
    );
    assert.deepEqual(missing, []);
  });

  it('labels contain no object, namespace or path, and the number of series is bounded', () => {
    const names =
      /test-count|webapp-sample|example-at|example-foo|web-|default|kube-system|\/apis?\//;
    const telling = samples.flatMap(({ name, labels }) =>
      Object.values(labels)
        .filter((value) => names.test(value))
        .map((value) => `${name}: ${value}`),
    );
    assert.deepEqual(telling, []);
    assert.ok(samples.length < 5000, `${samples.length} series`);
  });
});

describe('The alerts', () => {
  const rules = ruleGroups().flatMap((group) => group.rules);

  it('are at most 15; each has a severity, a description and instructions', () => {
    assert.ok(rules.length > 0 && rules.length <= 15, `${rules.length} alerts`);
    for (const { alert, labels, annotations } of rules) {
      assert.match(alert, /^CrdController[A-Z]\w+$/);
      assert.match(labels['severity'] ?? '', /^(critical|warning|info)$/, alert);
      assert.deepEqual(Object.keys(annotations), ['summary', 'description', 'runbook'], alert);
      for (const [name, value] of Object.entries(annotations)) {
        assert.ok(value.length > 20, `${alert}: ${name}`);
        assert.ok(!value.includes('  '), `${alert}: ${name} was folded with blanks`);
      }
      assert.ok((annotations['summary'] ?? '').length < 100, `${alert}: a summary is one line`);
    }
  });

  it('have unique names, and the operations page lists each with its severity', () => {
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
    for (const { alert, labels } of rules) {
      const row = OPERATIONS.split('\n').find((line) => line.includes(`\`${alert}\``)) ?? '';
      assert.ok(row.includes(`| ${labels['severity']} `), `${alert}: ${row}`);
    }
  });
});

describe('The dashboard', () => {
  const { panels, templating, ...board } = dashboard();

  it('has the schema of Grafana 10.4 and later', () => {
    assert.equal(board.schemaVersion, 39);
    assert.equal(board.title, 'crd-controller');
    assert.match(board.uid, /^[\w-]{1,40}$/);
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const cells = new Set<string>();
    for (const { title, type, gridPos, targets = [] } of panels) {
      assert.match(type, /^(row|stat|timeseries|state-timeline)$/, title);
      assert.equal(targets.length === 0, type === 'row', title);
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
      const { x, y, w, h } = gridPos;
      assert.ok(x >= 0 && w > 0 && h > 0 && x + w <= 24, title);
      for (let row = y; row < y + h; row++) {
        for (let column = x; column < x + w; column++) {
          const cell = `${row}/${column}`;
          assert.ok(!cells.has(cell), `${title} covers another panel`);
          cells.add(cell);
        }
      }
    }
  });

  it('uses the data source, jobs and namespaces that the user selects', () => {
    assert.deepEqual(
      templating.list.map(({ name, type }) => `${name} ${type}`),
      ['datasource datasource', 'job query', 'namespace query'],
    );
    const sources = Array.from(dashboardText().matchAll(/"uid": "([^"]*)"/g), ([, uid]) => uid);
    assert.deepEqual(new Set(sources), new Set([board.uid, '${datasource}']));
    for (const [where, expression] of dashboardExpressions()) {
      const { selectors } = mentionsOf(expression);
      const chosen = expression.split('job=~"$job", namespace=~"$namespace"').length - 1;
      assert.equal(chosen, selectors.length, where);
    }
  });
});
