import type { JsonObject } from '../../../util/json-value.ts';

/** Rules of mandatory flow schemas, for all requests of these groups. */
function rulesFor(...groups: readonly string[]): JsonObject[] {
  return [
    {
      subjects: groups.map((name) => ({ kind: 'Group', group: { name } })),
      resourceRules: [
        { verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] },
      ],
      nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
    },
  ];
}

/** Specs of flow schemas that no client may change, by their names. */
export const MANDATORY_FLOW_SCHEMAS: ReadonlyMap<string, JsonObject> = new Map([
  [
    'exempt',
    {
      priorityLevelConfiguration: { name: 'exempt' },
      matchingPrecedence: 1,
      rules: rulesFor('system:masters'),
    },
  ],
  [
    'catch-all',
    {
      priorityLevelConfiguration: { name: 'catch-all' },
      matchingPrecedence: 10_000,
      distinguisherMethod: { type: 'ByUser' },
      rules: rulesFor('system:unauthenticated', 'system:authenticated'),
    },
  ],
]);

/** Specs of priority levels that no client may change, except the field `exempt` of the exempt one. */
export const MANDATORY_PRIORITY_LEVELS: ReadonlyMap<string, JsonObject> = new Map<
  string,
  JsonObject
>([
  ['exempt', { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } }],
  [
    'catch-all',
    {
      type: 'Limited',
      limited: {
        nominalConcurrencyShares: 5,
        limitResponse: { type: 'Reject' },
        lendablePercent: 0,
      },
    },
  ],
]);
