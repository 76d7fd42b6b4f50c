import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IncompleteBodies } from '../../../../src/apiserver/http/incomplete-bodies.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

describe('IncompleteBodies', () => {
  const setUp = () => {
    const clock = new FakeClock();
    const givenUp: string[] = [];
    const giveUp = (body: string) => void givenUp.push(body);
    return { clock, givenUp, bodies: new IncompleteBodies({ maxBytes: 100, giveUp, clock }) };
  };

  it('gives up the body with the lowest rate, and not the oldest', async () => {
    const { clock, givenUp, bodies } = setUp();
    bodies.add('old and fast', 10);
    await clock.advance(1000);
    bodies.add('new and slow', 20);
    await clock.advance(1000);
    bodies.add('old and fast', 40);
    bodies.add('new', 40);
    assert.deepEqual(givenUp, ['new and slow']);
  });

  it('gives up as few as free a tenth of the maximum', async () => {
    const { clock, givenUp, bodies } = setUp();
    for (let number = 0; number < 10; number++) {
      bodies.add(`body ${number}`, 10);
      await clock.advance(1);
    }
    bodies.add('new', 1);
    assert.deepEqual(givenUp, ['body 0', 'body 1']);
  });

  it('does not count bodies that have ended', () => {
    const { givenUp, bodies } = setUp();
    bodies.add('complete', 90);
    bodies.delete('complete');
    bodies.delete('unknown');
    bodies.add('next', 100);
    assert.deepEqual(givenUp, []);
  });
});
