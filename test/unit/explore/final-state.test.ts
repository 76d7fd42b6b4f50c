import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { differenceOf, finalStateOf } from '../../../src/explore/final-state.ts';
import type { FinalState } from '../../../src/explore/final-state.ts';
import type { StateComparison } from '../../../src/explore/faults.ts';
import { History } from '../../../src/explore/history.ts';

interface Written {
  readonly uid: string;
  readonly owner?: string;
  readonly conditions?: readonly string[];
  readonly replicas?: number;
  readonly isRemoved?: boolean;
}

const EXISTING = new Map([['demo/things default/old', thing({ uid: 'old' })]]);

/** Returns the state after writes of objects whose names are their uids. `old` existed before. */
function stateOf(...writes: Written[]): FinalState {
  const history = new History(() => 0);
  history.reset(EXISTING);
  for (const write of writes) history.record('demo/things', thing(write), write.isRemoved ?? false);
  return finalStateOf(history);
}

function thing({ uid, owner, conditions, replicas }: Written) {
  const reference = { apiVersion: 'demo/v1', kind: 'Thing', name: 'x', controller: true };
  return {
    apiVersion: 'demo/v1',
    kind: 'Thing',
    metadata: {
      namespace: 'default',
      name: uid,
      uid,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(owner && { ownerReferences: [{ ...reference, uid: owner }] }),
    },
    status: { replicas, conditions: conditions?.map((type) => ({ type })) },
  };
}

const removed = (uid: string): Written => ({ uid, isRemoved: true });

interface Row {
  readonly name: string;
  readonly expected: FinalState;
  readonly actual: FinalState;
  readonly comparison?: StateComparison;
  readonly differs: boolean;
}

const ROWS: readonly Row[] = [
  {
    name: 'conditions in another order',
    expected: stateOf({ uid: 'a', conditions: ['Ready', 'Synced'] }),
    actual: stateOf({ uid: 'a', conditions: ['Synced', 'Ready'] }),
    differs: false,
  },
  {
    name: 'a missing condition',
    expected: stateOf({ uid: 'a', conditions: ['Ready', 'Synced'] }),
    actual: stateOf({ uid: 'a', conditions: ['Ready'] }),
    differs: true,
  },
  {
    name: 'garbage that a controller deleted without faults, before the owner was deleted',
    expected: stateOf({ uid: 'a' }, { uid: 'b', owner: 'a' }, removed('b'), removed('a')),
    actual: stateOf({ uid: 'a' }, { uid: 'b', owner: 'a' }, removed('a')),
    differs: false,
  },
  {
    name: 'garbage that did not exist without faults',
    expected: stateOf({ uid: 'a' }, removed('a')),
    actual: stateOf({ uid: 'a' }, { uid: 'b', owner: 'a' }, removed('a')),
    differs: true,
  },
  {
    name: 'an object that was not deleted, and whose owner exists',
    expected: stateOf({ uid: 'a' }, { uid: 'b', owner: 'a' }, removed('b')),
    actual: stateOf({ uid: 'a' }, { uid: 'b', owner: 'a' }),
    differs: true,
  },
  {
    name: 'another content of an object of the scenario, beside other objects',
    expected: stateOf({ uid: 'a', replicas: 1 }),
    actual: stateOf({ uid: 'a', replicas: 2 }, { uid: 'a-twin', replicas: 1 }),
    comparison: 'contains',
    differs: true,
  },
  {
    name: 'another content of an object that existed before, beside other objects',
    expected: stateOf({ uid: 'old', replicas: 1 }, { uid: 'a' }),
    actual: stateOf({ uid: 'old', replicas: 2 }, { uid: 'a' }, { uid: 'a-twin' }),
    comparison: 'contains',
    differs: false,
  },
];

describe('a difference of final states', () => {
  for (const { name, expected, actual, comparison = 'equal', differs } of ROWS) {
    it(`${differs ? 'is' : 'is not'} ${name}`, () => {
      const difference = differenceOf(expected, actual, comparison);
      assert.equal(difference !== undefined, differs, difference);
    });
  }
});
