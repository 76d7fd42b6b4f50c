/**
 * Evaluates the alerts and the dashboard with the Prometheus engine, over scrapes of healthy and unhealthy
 * daemons. Part of `npm run test:real`, because it needs Go.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { dashboardExpressions, ruleGroups } from '../../test/support/observability.ts';
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
});

/** Replaces variables by values that a user, or Grafana, would choose. */
function asGrafana(expression: string): string {
  return expression
    .replaceAll('$job', 'crd-controller')
    .replaceAll('$namespace', '.+')
    .replaceAll('$__rate_interval', '2m');
}
