import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { ATS } from '../../src/api/generated/at.ts';
import { SCENARIOS } from '../support/scenarios.ts';
import { runScenario } from '../support/scenario-run.ts';
import type { Outcome, Disruption } from '../support/scenario-run.ts';

const DISRUPTIONS: Readonly<Record<string, Disruption>> = {
  'daemons crash after every write': { crash: { atWrite: 1, when: 'after' } },
  'daemons crash before every second write': { crash: { atWrite: 2, when: 'before' } },
  'responses to writes are lost and caches lag behind': {
    losesResponses: true,
    watchDelayMs: 700,
  },
};

/** The warning after a lost response. It is correct and has no consequences. */
const LOST_RESPONSE = /The server may have processed the request/;

/** An event ends with its count, if it was repeated. */
const COUNT = / ×(\d+)$/;

const nameOf = (event: string) => event.replace(COUNT, '');
const countOf = (event: string = '') => Number(COUNT.exec(event)?.[1] ?? 1);

for (const scenario of SCENARIOS) {
  describe(`A scenario with ${scenario.name}`, () => {
    let undisturbed: Promise<Outcome>;

    before(() => {
      undisturbed = runScenario(scenario);
      return undisturbed;
    });

    for (const [name, disruption] of Object.entries(DISRUPTIONS)) {
      it(`ends in the undisturbed state: ${name}`, async () => {
        const { events, ...objects } = await runScenario(scenario, disruption);
        const { events: expected, ...others } = await undisturbed;
        const reported = events.filter((event) => !LOST_RESPONSE.test(event));
        assert.deepEqual(objects, others);
        assert.deepEqual(reported.map(nameOf), expected.map(nameOf));
        const repeated = reported.filter((event, at) => countOf(event) > countOf(expected[at]));
        assert.deepEqual(repeated, []);
      });
    }

    it('ends in the undisturbed state when another client deletes, edits and replaces owned objects', async () => {
      const { events, ...objects } = await runScenario(scenario, { hasCompetingClient: true });
      // An At does not run its command again after its Pod was deleted.
      if (scenario.controller.resource === ATS) return;
      const expected = await undisturbed;
      assert.deepEqual({ ...objects, events: expected.events }, expected);
      const names = new Set(events.map(nameOf));
      assert.deepEqual(new Set(expected.events.map(nameOf)).difference(names), new Set());
    });
  });
}
