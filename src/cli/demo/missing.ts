import type { Pod } from '../../api/builtin.ts';
import type { Count } from '../../api/generated/count.ts';
import { isReady } from './scene.ts';

/** The Count of the story. */
export const NAME = 'test-count';

export function podName(ordinal: number): string {
  return `${NAME}-${ordinal}`;
}

/** What `pods` lack to be exactly `wanted` ready Pods of the Count; undefined if nothing. */
export function missingPods(pods: ReadonlyMap<string, Pod>, wanted: number): string | undefined {
  for (let ordinal = 0; ordinal < wanted; ordinal++) {
    const pod = pods.get(podName(ordinal));
    if (!pod) return `${podName(ordinal)} does not exist`;
    if (!isReady(pod)) return `${podName(ordinal)} is not ready`;
  }
  return pods.size === wanted ? undefined : `there are ${pods.size} Pods, not ${wanted}`;
}

/** Why the Count does not say that it has `wanted` healthy Pods; undefined if it does. */
export function missingStatus(count: Count | undefined, wanted: number): string | undefined {
  if (!count) return 'the Count does not exist';
  const { observedGeneration, healthy, replicas, readyReplicas } = count.status ?? {};
  if (observedGeneration !== count.metadata.generation) return 'the status is out of date';
  return healthy && replicas === wanted && readyReplicas === wanted
    ? undefined
    : `the status says ${JSON.stringify({ healthy, replicas, readyReplicas })}`;
}
