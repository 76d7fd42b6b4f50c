import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { obstacleIn } from '../../../../src/controllers/count/obstacle.ts';
import { aCount } from '../../../support/objects.ts';

describe('What keeps a Count from having its Pods', () => {
  it('is nothing at the bounds of the count', () => {
    for (const count of [0, 1, 1000]) {
      assert.equal(obstacleIn(aCount({ spec: { count } })), undefined);
    }
  });

  for (const [what, spec] of [
    ['a negative count', { count: -1 }],
    ['more Pods than a Count may have', { count: 1001 }],
    ['a fraction', { count: 1.5 }],
    ['no image', { name: '' }],
  ] as const) {
    it(`is ${what}, until the user changes it`, () => {
      const obstacle = obstacleIn(aCount({ spec }));
      assert.equal(obstacle?.reason, 'InvalidSpec');
      assert.equal(obstacle?.stalled, true);
    });
  }

  it('is a name with which the last Pod would have more than 253 characters', () => {
    const ofLength = (length: number, count: number) =>
      obstacleIn(aCount({ name: 'a'.repeat(length), spec: { count } }));
    // The Pods of ten have ordinals of one digit.
    assert.equal(ofLength(251, 10), undefined);
    assert.equal(ofLength(251, 11)?.reason, 'NameTooLong');
    assert.equal(ofLength(250, 11), undefined);
    assert.equal(ofLength(252, 1)?.reason, 'NameTooLong');
    assert.equal(ofLength(251, 0), undefined);
  });

  it('is described in a message that is shorter than the name', () => {
    const { message = '', stalled } =
      obstacleIn(aCount({ name: 'a'.repeat(253), spec: { count: 1 } })) ?? {};
    assert.ok(message.length < 200, message);
    assert.match(message, /255/);
    assert.equal(stalled, true);
  });
});
