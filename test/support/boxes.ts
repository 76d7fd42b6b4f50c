import * as s from '../../src/schema.ts';
import { required } from '../../src/webhook/field-errors.ts';
import { invalid } from '../../src/webhook/field-errors.ts';
import { Webhooks } from '../../src/webhook/webhooks.ts';

const BOX = { group: 'boxes.example.com', kind: 'Box', plural: 'boxes' } as const;

/** `spec.size` is `WIDTHxHEIGHT`. */
export const BOXES_V1 = s.customResource({
  ...BOX,
  version: 'v1',
  spec: s.object({ size: s.string(), owner: s.optional(s.string()) }),
  status: s.object({ phase: s.optional(s.string()) }),
});

/** The stored version. */
export const BOXES_V2 = s.customResource({
  ...BOX,
  version: 'v2',
  spec: s.object({ width: s.integer(), height: s.integer(), owner: s.optional(s.string()) }),
  status: s.object({ phase: s.optional(s.string()) }),
  otherVersions: [BOXES_V1],
});

/** Declares the webhooks of boxes, which convert, set the owner, and reject flat boxes. */
export function declareBoxes(webhooks: Webhooks): Webhooks {
  return webhooks
    .converts(BOXES_V1, BOXES_V2, {
      up: ({ spec, status }) => {
        const { size, ...same } = spec ?? {};
        const [width, height] = size?.split('x').map(Number) ?? [];
        return { spec: spec && { ...same, width, height }, status };
      },
      down: ({ spec, status }) => {
        const { width, height, ...same } = spec ?? {};
        const isKnown = width !== undefined || height !== undefined;
        const size = isKnown ? `${width ?? 0}x${height ?? 0}` : undefined;
        return { spec: spec && { ...same, size }, status };
      },
    })
    .defaults(BOXES_V2, (draft, { user }) => {
      draft.spec.owner ??= user.username;
    })
    .validates(BOXES_V2, ({ spec }, { warn, old }) => {
      if (old && old.spec.owner !== spec.owner) warn('The owner changes');
      return [
        ...(spec.height === 0 ? [invalid('spec.height', 'must not be flat')] : []),
        ...(spec.owner === '' ? [required('spec.owner')] : []),
      ];
    });
}

/** The webhooks of boxes, and rules that the API server evaluates. */
export const BOX_WEBHOOKS = declareBoxes(new Webhooks())
  .rules(BOXES_V2, [
    { rule: 'self.spec.width <= 100', message: 'must be narrow', fieldPath: '.spec.width' },
    {
      rule: 'self.spec.width >= oldSelf.spec.width',
      messageExpression: '"must be " + string(oldSelf.spec.width) + " or more"',
      fieldPath: '.spec.width',
      reason: 'FieldValueForbidden',
    },
  ])
  .rules(BOXES_V2, [{ rule: '!("kept" in self.metadata.labels)', message: 'is kept' }], {
    name: 'deletion',
    operations: ['DELETE'],
    matchConditions: [{ name: 'labelled', expression: 'has(oldObject.metadata.labels)' }],
  })
  .rules(
    BOXES_V2,
    [{ rule: 'self.metadata.name != "schema"', message: 'must have another name' }],
    {
      as: 'schema',
    },
  );

/** Returns a box in v1. */
export function boxV1(name: string, spec: { size: string; owner?: string }) {
  return {
    apiVersion: 'boxes.example.com/v1',
    kind: 'Box',
    metadata: { namespace: 'default', name },
    spec,
  };
}

/** Returns a box in v2. */
export function boxV2(name: string, spec: { width: number; height: number; owner?: string }) {
  return { ...boxV1(name, { size: '' }), apiVersion: 'boxes.example.com/v2', spec };
}
