/**
 * Evaluates the alerts and the dashboard with the Prometheus engine, over scrapes of healthy and unhealthy
 * daemons. Part of `npm run test:real`, because it needs Go.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { COUNTS } from '../../src/api/generated/count.ts';
import { monitoringOf } from '../../src/cli/chart/monitoring.ts';
import { ownManifests } from '../../src/cli/commands/generate-helm.ts';
import { declaredMetrics } from '../../src/cli/program/declared-metrics.ts';
import type { ProgramOptions } from '../../src/cli/program/program.ts';
import type { CustomMetrics } from '../../src/metrics/custom-metrics.ts';
import { metricsOf } from '../../src/metrics/metrics.ts';
import { createRegistry, expose } from '../../src/metrics/registry.ts';
import {
  dashboardExpressions,
  expressionsOf,
  ruleGroups,
} from '../../test/support/observability.ts';
import type { RuleGroup } from '../../test/support/observability.ts';
import type { Scrape } from '../../test/support/scraped-daemons.ts';
import { Prometheus, whyNoPrometheus } from './engine.ts';
import { HEALTHY, SCENARIOS, scrapesOf } from './scenarios.ts';

/** Queries without a result for a healthy daemon: they show failures, load, or a limit that is not set. */
const EMPTY_WHEN_HEALTHY = new Set([
  'Retried requests A',
  'Syncs by result A',
  ...['Errors', 'Postponed syncs'].flatMap((panel) => [`${panel} B`, `${panel} C`, `${panel} D`]),
  ...['A', 'B', 'C', 'D'].map((letter) => `Failures ${letter}`),
  ...['A', 'B', 'C'].map((letter) => `Wait for --kube-api-qps ${letter}`),
]);

const why = await whyNoPrometheus();
if (why !== undefined) console.log(`promql: SKIPPED, no alert was evaluated: ${why}`);

describe('in the Prometheus engine', { skip: why }, () => {
  let prometheus: Prometheus;
  const groups = ruleGroups();

  before(async () => {
    prometheus = await Prometheus.build();
  });
  after(() => prometheus.remove());

  for (const scenario of SCENARIOS) {
    const { name, fires } = scenario;
    it(`${name}: ${fires.join(' and ') || 'nothing'} fires`, async () => {
      const scrapes = await scrapesOf(scenario);
      const { ruleErrors, errors, fired } = await prometheus.evaluate(groups, scrapes);
      assert.deepEqual([...ruleErrors, ...errors], []);
      assert.deepEqual(new Set(fired.map(({ alert }) => alert)), new Set(fires));
      for (const { alert, annotations } of fired) {
        for (const text of Object.values(annotations)) {
          assert.doesNotMatch(text, /<error|<no value>|\{\{|%!/, alert);
        }
      }
    });
  }

  it('every alert has a scenario in which it fires', () => {
    const known = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    assert.deepEqual(new Set(SCENARIOS.flatMap(({ fires }) => fires)), new Set(known));
  });

  it('every dashboard query has a result, except those that are empty for a healthy daemon', async () => {
    const queries = new Map(
      dashboardExpressions().map(([where, expression]) => [where, asGrafana(expression)]),
    );
    const scrapes = await scrapesOf(HEALTHY);
    const { errors, series } = await prometheus.evaluate([], scrapes, [...queries.values()]);
    assert.deepEqual(errors, []);
    const empty = [...queries].filter(([, query]) => series[query] === 0).map(([where]) => where);
    assert.deepEqual(new Set(empty), EMPTY_WHEN_HEALTHY);
  });

  it('the alerts of another program are evaluated, and the queries of its metrics have results', async () => {
    const monitoring = monitoringOf(OPERATOR.name, await declaredMetrics(OPERATOR), ownManifests());
    const rules = parse(monitoring.alerts) as { readonly spec: { readonly groups: RuleGroup[] } };
    const queries = expressionsOf(JSON.parse(monitoring.dashboard))
      .filter(([where]) => where.startsWith('backup_'))
      .map(([, expression]) => asGrafana(expression, OPERATOR.name));
    assert.equal(queries.length, 7);
    const { ruleErrors, errors, fired, series } = await prometheus.evaluate(
      rules.spec.groups,
      await scrapesOfOperator(),
      queries,
    );
    assert.deepEqual([...ruleErrors, ...errors, ...fired], []);
    for (const query of queries) assert.ok((series[query] ?? 0) > 0, query);
  });
});

/** A program with a metric of each type, of which some have labels. */
const OPERATOR: ProgramOptions = {
  name: 'backup-operator',
  version: '1.0.0',
  controllers: {
    backups: {
      resource: COUNTS,
      build: ({ customMetrics }) => {
        record(customMetrics);
        return [];
      },
    },
  },
};

/** Requests the metrics of that program, and changes each. */
function record(custom: CustomMetrics): void {
  custom
    .counter({ name: 'backup_runs_total', help: 'Runs', labels: ['result'] })
    .inc({ result: 'ok' });
  custom.counter({ name: 'backup_starts_total', help: 'Starts' }).inc();
  custom.gauge({ name: 'backup_size_bytes', help: 'Size', labels: ['tier'] }).set(1, { tier: 'a' });
  custom.gauge({ name: 'backup_last_timestamp_seconds', help: 'Last' }).set(1);
  custom.histogram({ name: 'backup_duration_seconds', help: 'Duration' }).observe(1);
}

/** Returns the scrapes of a program in ten minutes. */
async function scrapesOfOperator(): Promise<Scrape[]> {
  const registry = createRegistry();
  const { custom } = metricsOf(registry);
  const target = { job: OPERATOR.name, namespace: 'ops', pod: 'a', instance: 'a:8443' };
  const scrapes: Scrape[] = [];
  for (let minute = 0; minute < 10; minute++) {
    record(custom);
    scrapes.push({ target, atMs: minute * 60_000, text: (await expose(registry)).text });
  }
  return scrapes;
}

/** Replaces variables by values that a user, or Grafana, would choose. */
function asGrafana(expression: string, job: string = 'crd-controller'): string {
  return expression
    .replaceAll('$job', job)
    .replaceAll('$namespace', '.+')
    .replaceAll('$__rate_interval', '2m');
}
