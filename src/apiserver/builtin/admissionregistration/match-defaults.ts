import type { KindTraits } from '../shared/builtin-kind.ts';

/** Defaults of the `MatchResources` at a path. */
export function matchDefaults(path: string): Readonly<Record<string, unknown>> {
  return {
    [`${path}.matchPolicy`]: 'Equivalent',
    [`${path}.namespaceSelector`]: {},
    [`${path}.objectSelector`]: {},
    [`${path}.resourceRules[].scope`]: '*',
    [`${path}.excludeResourceRules[].scope`]: '*',
  };
}

export const POLICY_TRAITS = {
  tracksGeneration: true,
  unconditionalUpdate: false,
} satisfies KindTraits;
