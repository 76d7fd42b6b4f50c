/**
 * The alerts and the dashboard under Prometheus' own engine, over scrapes of daemons that are well
 * and of daemons that are not. Part of `npm run test:real`, because it takes Go.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { dashboardExpressions, ruleGroups } from '../../test/support/observability.ts';
import { Prometheus, whyNoPrometheus } from './engine.ts';
import { PEACE, SCENARIOS, scrapesOf } from './scenarios.ts';

/** Panels, and letters, that are rightly empty in peace: they show trouble, or work, or a limit that is not set. */
const EMPTY_IN_PEACE = new Set([
  'Repeated A',
  'Runs by result A',
  ...['Errors', 'Held back'].flatMap((panel) => [`${panel} B`, `${panel} C`, `${panel} D`]),
  ...['A', 'B', 'C', 'D'].map((letter) => `Trouble ${letter}`),
  ...['A', 'B', 'C'].map((letter) => `Wait for --kube-api-qps ${letter}`),
]);

const why = await whyNoPrometheus();
if (why !== undefined) console.log(`promql: SKIPPED, no alert was evaluated: ${why}`);

describe('under Prometheus', { skip: why }, () => {
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

  it('every query of the dashboard has an answer, but for what is rightly empty', async () => {
    const queries = new Map(
      dashboardExpressions().map(([where, expression]) => [where, asGrafana(expression)]),
    );
    const scrapes = await scrapesOf(PEACE);
    const { errors, series } = await prometheus.evaluate([], scrapes, [...queries.values()]);
    assert.deepEqual(errors, []);
    const empty = [...queries].filter(([, query]) => series[query] === 0).map(([where]) => where);
    assert.deepEqual(new Set(empty), EMPTY_IN_PEACE);
  });
});

/** With the variables that a reader chose, or Grafana. */
function asGrafana(expression: string): string {
  return expression
    .replaceAll('$job', 'crd-controller')
    .replaceAll('$namespace', '.+')
    .replaceAll('$__rate_interval', '2m');
}
