import type { Lease } from '../api/builtin.ts';
import { holderOf } from '../leaderelection/lease-state.ts';

/**
 * Annotation on the Lease of a shard by which a replica with too few shards requests it. The value starts with
 * the lease transition that the request applies to; after the next transition it has no effect.
 */
const ANNOTATION = 'crd-controller.example.io/wanted-by';

/** Returns `lease` with a request of `identity` to become its next holder. */
export function withRequest(lease: Lease, identity: string): Lease {
  const annotations = {
    ...lease.metadata.annotations,
    [ANNOTATION]: `${transitionOf(lease)} ${identity}`,
  };
  return { ...lease, metadata: { ...lease.metadata, annotations } };
}

/** Returns who requested the lease from its holder, or from the holder that has released it since. */
export function requesterOf(lease: Lease): string | undefined {
  const { annotations = {} } = lease.metadata;
  if (!Object.hasOwn(annotations, ANNOTATION)) return undefined;
  const [, transition, identity] = /^(\d+) (.+)$/.exec(annotations[ANNOTATION] ?? '') ?? [];
  return transition === String(transitionOf(lease)) && identity !== holderOf(lease)
    ? identity
    : undefined;
}

/** Returns the number of the lease transition, which changes with each new holder. */
function transitionOf({ spec }: Lease): number {
  return spec?.leaseTransitions ?? 0;
}
