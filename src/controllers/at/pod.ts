import type { Pod } from '../../api/builtin.ts';
import type { At } from '../../api/generated/at.ts';
import { labelValue } from '../../api/label-selector.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { controllerReference } from '../../api/metadata.ts';

/** Who writes, in managedFields, in labels and in events. */
export const COMPONENT = 'at-controller';

/**
 * Keeps a Pod until its At knows its uid. Without it, one that somebody deleted while no controller
 * looked would leave no trace, and the command would run twice.
 */
export const FINALIZER = 'cnat.programming-kubernetes.info/recorded';

export const LONGEST_POD_NAME = 253;

export function podName({ metadata }: DeepReadonly<At>): string {
  return `${metadata.name}-pod`;
}

/** The one Pod of an At. A command that fails has failed; it is not tried again. */
export function buildPod(at: DeepReadonly<At>, words: readonly string[]): Draft<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(at),
      namespace: at.metadata.namespace ?? '',
      labels: {
        'app.kubernetes.io/instance': labelValue(at.metadata.name),
        'app.kubernetes.io/managed-by': COMPONENT,
      },
      finalizers: [FINALIZER],
      ownerReferences: [controllerReference(at)],
    },
    spec: {
      restartPolicy: 'Never',
      // The command is the user's: it has no business with the API server unless it says so.
      automountServiceAccountToken: false,
      containers: [{ name: 'busybox', image: 'busybox:1.37', command: words.map(literal) }],
    },
  };
}

/** Keeps a container's runtime from replacing `$(NAME)` and `$$` in a word: `echo $$` says so. */
function literal(word: string): string {
  return word.replaceAll(/\$(?=[$(])/g, '$$$$');
}

/** How the command ended, for people: `exit code 3`. */
export function exitOf({ status }: DeepReadonly<Pod>): string {
  const ended = status?.containerStatuses
    ?.map(({ state }) => state?.terminated)
    .find((terminated) => terminated !== undefined && terminated.exitCode !== 0);
  if (ended) return `exit code ${ended.exitCode}`;
  return status?.message ?? status?.reason ?? 'no exit code';
}
