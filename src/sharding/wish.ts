import type { Lease } from '../api/builtin.ts';
import { holderOf } from '../leaderelection/election.ts';

/**
 * Where a process that holds too few shards asks for one of another's: on the Lease of that shard.
 * The number is of the term that is asked to end; under the next holder the wish is none any more.
 */
const ANNOTATION = 'crd-controller.example.io/wanted-by';

/** `lease`, with the wish of `identity` to be its next holder. */
export function asking(lease: Lease, identity: string): Lease {
  const annotations = {
    ...lease.metadata.annotations,
    [ANNOTATION]: `${termOf(lease)} ${identity}`,
  };
  return { ...lease, metadata: { ...lease.metadata, annotations } };
}

/** Who asked the holder for the lease, or asked the one who has given it back since. */
export function askedBy(lease: Lease): string | undefined {
  const { annotations = {} } = lease.metadata;
  if (!Object.hasOwn(annotations, ANNOTATION)) return undefined;
  const [, term, identity] = /^(\d+) (.+)$/.exec(annotations[ANNOTATION] ?? '') ?? [];
  return term === String(termOf(lease)) && identity !== holderOf(lease) ? identity : undefined;
}

/** Changes whenever the lease passes to another. */
function termOf({ spec }: Lease): number {
  return spec?.leaseTransitions ?? 0;
}
