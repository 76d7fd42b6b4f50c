import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../../src/api/object.ts';
import { predicates } from '../../../src/manager/predicate.ts';
import type { Predicate } from '../../../src/manager/predicate.ts';
import { aCount } from '../../support/objects.ts';

const COUNT: KubernetesObject = aCount();

function changed(metadata: Partial<KubernetesObject['metadata']>): KubernetesObject {
  return { ...COUNT, metadata: { ...COUNT.metadata, resourceVersion: '2', ...metadata } };
}

const LABELLED = changed({ labels: { app: 'web' } });
const ANNOTATED = changed({ annotations: { note: 'x' } });
const NEXT_GENERATION = changed({ generation: 2 });
const NEXT_VERSION = changed({});

const accepts = (predicate: Predicate, object: KubernetesObject, old = COUNT) =>
  predicate.update?.(old, object);

describe('the predicates', () => {
  const cases = [
    ['generationChanged', [NEXT_GENERATION], [LABELLED, ANNOTATED, NEXT_VERSION]],
    ['labelsChanged', [LABELLED], [ANNOTATED, NEXT_GENERATION, NEXT_VERSION]],
    ['annotationsChanged', [ANNOTATED], [LABELLED, NEXT_GENERATION, NEXT_VERSION]],
    ['resourceVersionChanged', [LABELLED, ANNOTATED, NEXT_GENERATION, NEXT_VERSION], []],
  ] as const;
  for (const [name, accepted, rejected] of cases) {
    it(`${name} accepts the updates it is named after, and no others`, () => {
      for (const object of accepted) assert.equal(accepts(predicates[name], object), true);
      for (const object of rejected) assert.equal(accepts(predicates[name], object), false);
    });

    it(`${name} accepts the first list, creations and deletions, and rejects resyncs`, () => {
      const predicate = predicates.and(predicates[name]);
      assert.equal(predicate.create(COUNT, true), true);
      assert.equal(predicate.create(COUNT, false), true);
      assert.equal(predicate.delete(COUNT), true);
      assert.equal(predicate.update(COUNT, COUNT), false);
    });
  }

  it('labelsChanged compares values, and treats absent labels as an empty set', () => {
    const { labelsChanged, annotationsChanged } = predicates;
    assert.equal(accepts(annotationsChanged, changed({ annotations: {} })), false);
    assert.equal(accepts(labelsChanged, changed({ labels: {} })), false);
    assert.equal(accepts(labelsChanged, changed({ labels: { app: 'api' } }), LABELLED), true);
    assert.equal(accepts(labelsChanged, changed({ labels: { app: 'web' } }), LABELLED), false);
  });

  it('changed compares the value of a function in the previous and the current object', () => {
    const uidChanged = predicates.changed(({ metadata }) => ({ uid: metadata.uid }));
    assert.equal(accepts(uidChanged, NEXT_GENERATION), false);
    assert.equal(accepts(uidChanged, changed({ uid: 'other' })), true);
    assert.equal(predicates.and(uidChanged).create(COUNT, true), true);
  });

  it('and accepts what all members accept; without members, everything', () => {
    const both = predicates.and(predicates.labelsChanged, predicates.annotationsChanged);
    assert.equal(accepts(both, LABELLED), false);
    assert.equal(accepts(both, changed({ labels: { a: 'b' }, annotations: { a: 'b' } })), true);
    assert.equal(both.create(COUNT, true), true);
    const none = predicates.and({ create: () => false }, predicates.labelsChanged);
    assert.equal(none.create(COUNT, true), false);
    assert.equal(none.delete(COUNT), true);
    assert.equal(predicates.and().update(COUNT, COUNT), true);
  });

  it('or accepts what one member accepts', () => {
    const either = predicates.or(predicates.generationChanged, predicates.annotationsChanged);
    assert.equal(accepts(either, ANNOTATED), true);
    assert.equal(accepts(either, NEXT_GENERATION), true);
    assert.equal(accepts(either, LABELLED), false);
    const rejecting: Predicate = { create: () => false, delete: () => false };
    assert.equal(predicates.or(rejecting, rejecting).create(COUNT, true), false);
    const lenient = predicates.or(rejecting, predicates.labelsChanged);
    assert.equal(lenient.create(COUNT, true), true);
    assert.equal(lenient.delete(COUNT), true);
    const initial: Predicate = { create: (_, isInInitialList) => isInInitialList };
    assert.equal(predicates.or(initial, rejecting).create(COUNT, false), false);
  });

  it('not negates every type of event: an absent method rejects', () => {
    const negated = predicates.not(predicates.labelsChanged);
    assert.equal(negated.update(COUNT, LABELLED), false);
    assert.equal(negated.update(COUNT, ANNOTATED), true);
    assert.equal(negated.create(COUNT, true), false);
    assert.equal(negated.delete(COUNT), false);
    const initial: Predicate = { create: (_, isInInitialList) => isInInitialList };
    assert.equal(predicates.not(initial).create(COUNT, true), false);
    assert.equal(predicates.not(initial).create(COUNT, false), true);
  });
});
