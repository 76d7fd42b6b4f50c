import type { JsonObject } from '../../../util/json-value.ts';
import { objectsIn, setDefault, textIn } from '../../../util/json-value.ts';

/**
 * Sets what the default admission plugins of a kube-apiserver add to a new Pod: priority 0, and tolerations of 300 s
 * for a node that is not ready or unreachable (DefaultTolerationSeconds).
 */
export function admitPod(spec: JsonObject): void {
  setDefault(spec, 'priority', 0);
  setDefault(spec, 'preemptionPolicy', 'PreemptLowerPriority');
  const tolerations = objectsIn(spec, 'tolerations');
  const added = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
    .filter((key) => !tolerations.some((toleration) => tolerates(toleration, key)))
    .map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }));
  if (added.length > 0) spec['tolerations'] = [...tolerations, ...added];
}

function tolerates(toleration: JsonObject, key: string): boolean {
  return (
    ['', key].includes(textIn(toleration, 'key')) &&
    ['', 'NoExecute'].includes(textIn(toleration, 'effect'))
  );
}
