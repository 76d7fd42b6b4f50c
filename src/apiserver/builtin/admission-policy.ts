import {
  MUTATING_POLICY_COLUMNS,
  POLICY_BINDING_COLUMNS,
  VALIDATING_POLICY_COLUMNS,
} from '../table/kind-columns.ts';
import type { KindTraits } from './definition.ts';

/** Defaults of the `MatchResources` at a path. */
function matchDefaults(path: string): Readonly<Record<string, unknown>> {
  return {
    [`${path}.matchPolicy`]: 'Equivalent',
    [`${path}.namespaceSelector`]: {},
    [`${path}.objectSelector`]: {},
    [`${path}.resourceRules[].scope`]: '*',
    [`${path}.excludeResourceRules[].scope`]: '*',
  };
}

const TRAITS = { tracksGeneration: true, unconditionalUpdate: false } satisfies KindTraits;

const POLICY = {
  ...TRAITS,
  defaults: { 'spec.failurePolicy': 'Fail', ...matchDefaults('spec.matchConstraints') },
} satisfies KindTraits;

export const MUTATING_POLICY: KindTraits = { ...POLICY, columns: MUTATING_POLICY_COLUMNS };
export const VALIDATING_POLICY: KindTraits = { ...POLICY, columns: VALIDATING_POLICY_COLUMNS };

export const POLICY_BINDING: KindTraits = {
  ...TRAITS,
  columns: POLICY_BINDING_COLUMNS,
  defaults: matchDefaults('spec.matchResources'),
};
