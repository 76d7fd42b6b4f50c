import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { ATS } from '../../src/api/generated/at.ts';
import { SCENARIOS } from '../support/scenarios.ts';
import { play } from '../support/trial.ts';
import type { Outcome, Trouble } from '../support/trial.ts';

const DISRUPTIONS: Readonly<Record<string, Trouble>> = {
  'daemons crash after every write': { death: { atWrite: 1, when: 'after' } },
  'daemons crash before every second write': { death: { atWrite: 2, when: 'before' } },
  'responses to writes are lost': { losesAnswers: true },
  'caches lag behind': { lagMs: 700 },
};

/** The warning after a lost response. It is correct and has no consequences. */
const LOST_RESPONSE = /The request may have been carried out/;

for (const scenario of SCENARIOS) {
  describe(`A scenario with ${scenario.name}`, () => {
    let undisturbed: Promise<Outcome>;

    before(() => {
      undisturbed = play(scenario);
      return undisturbed;
    });

    for (const [name, trouble] of Object.entries(DISRUPTIONS)) {
      it(`ends in the undisturbed state: ${name}`, async () => {
        const { events, ...objects } = await play(scenario, trouble);
        const reported = events.filter((event) => !LOST_RESPONSE.test(event));
        assert.deepEqual({ ...objects, events: reported }, await undisturbed);
      });
    }

    it('ends in the undisturbed state when another client deletes, edits and replaces owned objects', async () => {
      const { events, ...objects } = await play(scenario, { isMeddledWith: true });
      // An At does not run its command again after its Pod was deleted.
      if (scenario.trade.resource === ATS) return;
      const expected = await undisturbed;
      assert.deepEqual({ ...objects, events: expected.events }, expected);
      assert.deepEqual(new Set(expected.events).difference(new Set(events)), new Set());
    });
  });
}
