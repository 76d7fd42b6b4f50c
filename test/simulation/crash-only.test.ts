import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { ATS } from '../../src/api/generated/at.ts';
import { SCENARIOS } from '../support/scenarios.ts';
import { play } from '../support/trial.ts';
import type { Outcome, Trouble } from '../support/trial.ts';

const TROUBLES: Readonly<Record<string, Trouble>> = {
  'its daemons die after every write': { death: { atWrite: 1, when: 'after' } },
  'its daemons die before every second write': { death: { atWrite: 2, when: 'before' } },
  'the answers of its writes are lost': { losesAnswers: true },
  'its caches lag behind': { lagMs: 700 },
};

/** What a lost answer is told as: it tells no lie, and nothing comes of it. */
const DOUBT = /The request may have been carried out/;

for (const scenario of SCENARIOS) {
  describe(`given ${scenario.name}`, () => {
    let inPeace: Promise<Outcome>;

    before(() => {
      inPeace = play(scenario);
      return inPeace;
    });

    for (const [name, trouble] of Object.entries(TROUBLES)) {
      it(`it ends where it would in peace, though ${name}`, async () => {
        const { events, ...objects } = await play(scenario, trouble);
        const told = events.filter((event) => !DOUBT.test(event));
        assert.deepEqual({ ...objects, events: told }, await inPeace);
      });
    }

    it('it ends well, though somebody deletes, edits and replaces its children', async () => {
      const { events, ...objects } = await play(scenario, { isMeddledWith: true });
      // A command whose Pod was deleted is not run again.
      if (scenario.trade.resource === ATS) return;
      const peace = await inPeace;
      assert.deepEqual({ ...objects, events: peace.events }, peace);
      assert.deepEqual(new Set(peace.events).difference(new Set(events)), new Set());
    });
  });
}
