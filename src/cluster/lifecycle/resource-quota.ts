import { PODS, RESOURCE_QUOTAS, SERVICES } from '../../api/builtin.ts';
import type { Pod, ResourceQuota } from '../../api/builtin.ts';
import { equalJson } from '../../api/equal.ts';
import { keyOf } from '../../api/object-key.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import {
  hasDeadline,
  isWithinScopes,
  quotaEvaluator,
  quotaResources,
  usesCompute,
} from '../../api/quota.ts';
import { addLists, selectResources } from '../../api/resource-list.ts';
import type { ResourceList } from '../../api/resource-list.ts';
import { discover } from '../../client/discovery.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext, WatchesOptions } from '../../manager/controller-options.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import { requeueAfter, done } from '../../workqueue/outcome.ts';
import type { ClusterDeps, ResourceMonitors } from '../support/resource-monitors.ts';

/** Interval at which usage is computed without an event, the default of kube-controller-manager. */
const RESYNC_MS = 300_000;

/**
 * ResourceQuota controller: computes the status of quotas when they or their limits change, and when objects
 * are deleted or end. Admission adds the usage of new objects; this controller ignores such changes of the
 * status, because its list could miss the object that admission has just counted.
 */
export function resourceQuotas(deps: ClusterDeps, monitors: ResourceMonitors): Controller {
  const quotas = deps.informers.for(RESOURCE_QUOTAS);
  const statuses = new StatusWriter(RESOURCE_QUOTAS, 'resourcequota-controller');
  const keysIn = (
    namespace: string | undefined,
    isAffected: (quota: DeepReadonly<ResourceQuota>) => boolean,
  ) => quotas.lister.list({ namespace }).filter(isAffected).map(keyOf);
  const toQuotas = ({ metadata }: DeepReadonly<KubernetesObject>) =>
    keysIn(metadata.namespace, () => true);
  const controller = new Controller(deps, {
    name: 'resourcequota',
    kind: RESOURCE_QUOTAS.kind,
    concurrency: 5,
    sync: async (key, context) => {
      const quota = quotas.lister.get(key);
      if (!quota) return done();
      const hard = quota.spec?.hard ?? {};
      const used = await usageOf(quota, deps.clock.now(), context);
      const status = { hard: { ...hard }, used: { ...quota.status?.used, ...used } };
      const names = Object.keys(hard);
      const next = {
        ...status,
        used: selectResources(status.used, (name) => names.includes(name)),
      };
      if (statuses.differs(quota, next)) await statuses.write(context, quota, next);
      return requeueAfter(RESYNC_MS);
    },
  })
    .for(quotas, { predicates: [{ update: (old, quota) => !equalJson(old.spec, quota.spec) }] })
    .watches(
      deps.informers.for(PODS),
      toQuotas,
      onUpdate((old, pod) => changesUsage(old, pod, deps.clock.now())),
    )
    .watches(
      deps.informers.for(SERVICES),
      toQuotas,
      onUpdate((old, service) => old.spec?.type !== service.spec?.type),
    );
  monitors.addHandler((resource) => {
    const evaluator = quotaEvaluator(resource);
    const isAffected = ({ spec }: DeepReadonly<ResourceQuota>) =>
      Object.keys(spec?.hard ?? {}).some((name) => evaluator?.tracks(name));
    return {
      onDelete: ({ metadata }) => {
        if (!evaluator || !metadata.namespace) return;
        for (const key of keysIn(metadata.namespace, isAffected)) controller.queue.add(key);
      },
    };
  });
  return controller;
}

/** Accepts only updates that change the usage of an object. */
function onUpdate<T extends KubernetesObject>(
  update: (old: DeepReadonly<T>, object: DeepReadonly<T>) => boolean,
): WatchesOptions<T> {
  return { predicates: [{ create: () => false, update, delete: () => false }] };
}

function changesUsage(old: DeepReadonly<Pod>, pod: DeepReadonly<Pod>, nowMs: number): boolean {
  return (
    hasDeadline(old) !== hasDeadline(pod) || (usesCompute(old, nowMs) && !usesCompute(pod, nowMs))
  );
}

/** Returns the usage of all quantities that can be measured. */
async function usageOf(
  quota: DeepReadonly<ResourceQuota>,
  nowMs: number,
  { client, signal }: SyncContext,
): Promise<ResourceList> {
  const { namespace } = quota.metadata;
  const names = Object.keys(quota.spec?.hard ?? {});
  const served = (await discover(client, signal)).resources;
  let used: ResourceList = {};
  for (const { group, plural } of quotaResources(names)) {
    const resource = served.find((each) => each.group === group && each.plural === plural);
    const evaluator = quotaEvaluator({ group, plural });
    if (!resource?.namespaced || !evaluator) continue;
    const tracked = names.filter((name) => evaluator.tracks(name));
    used = addLists(used, Object.fromEntries(tracked.map((name) => [name, '0'])));
    const { items } = await client.list(resource, { namespace, signal });
    for (const object of items.filter((item) => isWithinScopes(evaluator, quota, item))) {
      const usage = evaluator.usage(object, nowMs);
      used = addLists(
        used,
        selectResources(usage, (name) => tracked.includes(name)),
      );
    }
  }
  return used;
}
