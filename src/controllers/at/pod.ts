import type { Pod } from '../../api/builtin.ts';
import type { At } from '../../api/generated/at.ts';
import { labelValue } from '../../api/label-selector.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { controllerReference } from '../../api/metadata.ts';

/** Name of the controller in managedFields, labels and events. */
export const AT_COMPONENT = 'at-controller';

/**
 * Keeps a Pod until its uid is in the status of its At. Without it, a Pod that was deleted while the
 * controller was stopped would leave no trace, and the command would run twice.
 */
export const AT_FINALIZER = 'cnat.programming-kubernetes.info/recorded';

export function podName({ metadata: { name = '' } }: DeepReadonly<Draft<At>>): string {
  return `${name}-pod`;
}

/** Returns the only Pod of an At. A command that fails is not retried. */
export function buildAtPod(at: DeepReadonly<At>, words: readonly string[]): Draft<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(at),
      namespace: at.metadata.namespace ?? '',
      labels: {
        'app.kubernetes.io/instance': labelValue(at.metadata.name),
        'app.kubernetes.io/managed-by': AT_COMPONENT,
      },
      finalizers: [AT_FINALIZER],
      ownerReferences: [controllerReference(at)],
    },
    spec: {
      restartPolicy: 'Never',
      // The command is chosen by the user: it gets no access to the API server.
      automountServiceAccountToken: false,
      containers: [{ name: 'busybox', image: 'busybox:1.37', command: words.map(literal) }],
    },
  };
}

/** Escapes `$(NAME)` and `$$`, which the kubelet would expand. */
function literal(word: string): string {
  return word.replaceAll(/\$(?=[$(])/g, '$$$$');
}

/** Describes how the command failed: `exit code 3`. */
export function exitOf({ status }: DeepReadonly<Pod>): string {
  const ended = status?.containerStatuses
    ?.map(({ state }) => state?.terminated)
    .find((terminated) => terminated !== undefined && terminated.exitCode !== 0);
  if (ended) return `exit code ${ended.exitCode}`;
  return status?.message ?? status?.reason ?? 'no exit code';
}
