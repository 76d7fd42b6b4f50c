import type {
  CustomResourceDefinition,
  DaemonSet,
  Deployment,
  Job,
  PersistentVolumeClaim,
  Pod,
  ReplicaSet,
  Service,
  StatefulSet,
} from './builtin.ts';
import type { DeepReadonly, KubernetesObject } from './object.ts';
import type { Readiness } from './readiness.ts';
import { apiGroupOf } from './resource.ts';
import { conditionOf, finishedCondition } from './workloads.ts';

/** Time in which a Pod can be scheduled before it counts as unschedulable, in milliseconds. */
const SCHEDULE_MS = 15_000;

/** Value of `progressDeadlineSeconds` of a Deployment that has no deadline. */
const NO_DEADLINE = 2 ** 31 - 1;

/**
 * Returns the readiness of an object of any kind, by the rules of kstatus, as Flux does. In this order: its deletion and
 * `observedGeneration`, the conditions Reconciling and Stalled, the rules of its built-in kind, the condition Ready. An object
 * without any of these is ready.
 *
 * As in kstatus, a Job is ready once it has started, and a custom resource is ready until its controller writes a condition.
 *
 * @param nowMs milliseconds since the epoch; a Pod that cannot be scheduled is stalled after 15 s
 */
export function readinessOf(
  object: DeepReadonly<KubernetesObject>,
  nowMs: number = Date.now(),
): Readiness {
  // The rule is that of the object's kind.
  const rule = BUILTIN[groupKindOf(object)] as Rule<KubernetesObject> | undefined;
  return (
    genericReadiness(object) ??
    rule?.(object, nowMs) ??
    byReadyCondition(object) ??
    ready('Resource is current')
  );
}

/**
 * Returns the readiness of an object whose controller writes the condition Ready, such as `objectController`: unlike
 * `readinessOf`, it is not ready before it has this condition.
 */
export function readinessByCondition(object: DeepReadonly<KubernetesObject>): Readiness {
  return (
    genericReadiness(object) ??
    byReadyCondition(object) ??
    reconciling('NoReadyCondition', 'It does not have the condition Ready yet')
  );
}

/** A condition of any kind. */
interface AnyCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

/** The fields of a status that any kind can have. */
interface AnyStatus {
  readonly observedGeneration?: number | undefined;
  readonly conditions?: readonly AnyCondition[] | undefined;
}

type AnyObject = DeepReadonly<KubernetesObject> & { readonly status?: AnyStatus };

function ready(message: string): Readiness {
  return { kind: 'ready', reason: 'Current', message };
}

function reconciling(reason: string, message: string): Readiness {
  return { kind: 'reconciling', reason, message };
}

function stalled(reason: string, message: string): Readiness {
  return { kind: 'stalled', reason, message };
}

function genericReadiness({ kind, metadata, status }: AnyObject): Readiness | undefined {
  if (metadata.deletionTimestamp !== undefined) {
    return reconciling('Terminating', 'Resource scheduled for deletion');
  }
  const { generation } = metadata;
  const { observedGeneration: observed, conditions = [] } = status ?? {};
  if (generation !== undefined && observed !== undefined && observed !== generation) {
    const message = `${kind} generation is ${generation}, but latest observed generation is ${observed}`;
    return reconciling('LatestGenerationNotObserved', message);
  }
  for (const { type, status: value, reason = '', message = '' } of conditions) {
    if (value !== 'True') continue;
    if (type === 'Reconciling') return reconciling(reason, message);
    if (type === 'Stalled') return stalled(reason, message);
  }
  return undefined;
}

function byReadyCondition({ status }: AnyObject): Readiness | undefined {
  const condition = status?.conditions?.find(({ type }) => type === 'Ready');
  if (!condition) return undefined;
  const { reason = '', message = '' } = condition;
  return condition.status === 'True' ? ready('Resource is Ready') : reconciling(reason, message);
}

type Rule<T = never> = (object: DeepReadonly<T>, nowMs: number) => Readiness | undefined;

const alwaysReady: Rule = () => ready('Resource is always ready');

/** Rules by group and kind. */
const BUILTIN: Readonly<Record<string, Rule>> = {
  '/ConfigMap': alwaysReady,
  '/PersistentVolumeClaim': claim,
  '/Pod': pod,
  '/Secret': alwaysReady,
  '/Service': service,
  'apiextensions.k8s.io/CustomResourceDefinition': customResourceDefinition,
  'apps/DaemonSet': daemonSet,
  'apps/Deployment': deployment,
  'apps/ReplicaSet': replicaSet,
  'apps/StatefulSet': statefulSet,
  'batch/CronJob': alwaysReady,
  'batch/Job': job,
  'policy/PodDisruptionBudget': () => ready('AllowedDisruptions has been computed.'),
};

function groupKindOf({ apiVersion, kind }: DeepReadonly<KubernetesObject>): string {
  return `${apiGroupOf(apiVersion)}/${kind}`;
}

/** Number of replicas, as in `Ready: 1/3`, with the reason if there are too few. */
type Count = readonly [reason: string, name: string, actual: number | undefined, wanted: number];

/** Returns the first count that is too low, or undefined. */
function tooFew(...counts: readonly Count[]): Readiness | undefined {
  for (const [reason, name, actual = 0, wanted] of counts) {
    if (wanted > actual) return reconciling(reason, `${name}: ${actual}/${wanted}`);
  }
  return undefined;
}

function tooMany(replicas: number, wanted: number): Readiness | undefined {
  if (replicas <= wanted) return undefined;
  return reconciling('ExtraPods', `Pending termination: ${replicas - wanted}`);
}

function deployment({ spec, status = {} }: DeepReadonly<Deployment>): Readiness {
  const { replicas = 0, updatedReplicas: updated = 0, availableReplicas, readyReplicas } = status;
  const wanted = spec?.replicas ?? 1;
  const progressing = status.conditions?.find(({ type }) => type === 'Progressing');
  if (progressing?.reason === 'ProgressDeadlineExceeded') {
    return stalled(progressing.reason, 'Progress deadline exceeded');
  }
  const hasDeadline = (spec?.progressDeadlineSeconds ?? NO_DEADLINE) !== NO_DEADLINE;
  const isRolledOut =
    progressing?.status === 'True' && progressing.reason === 'NewReplicaSetAvailable';
  const problem =
    tooFew(
      ['LessReplicas', 'Replicas', replicas, wanted],
      ['LessUpdated', 'Updated', updated, wanted],
    ) ??
    tooMany(replicas, wanted) ??
    tooFew(
      ['LessAvailable', 'Available', availableReplicas, updated],
      ['LessReady', 'Ready', readyReplicas, wanted],
    );
  if (problem) return problem;
  if (hasDeadline && !isRolledOut) {
    return reconciling('ReplicaSetNotAvailable', 'ReplicaSet not Available');
  }
  return conditionOf(status.conditions, 'Available', 'True')
    ? ready(`Deployment is available. Replicas: ${replicas}`)
    : reconciling('DeploymentNotAvailable', 'Deployment not Available');
}

function replicaSet({ spec, status }: DeepReadonly<ReplicaSet>): Readiness {
  const { replicas = 0, fullyLabeledReplicas, availableReplicas, readyReplicas } = status ?? {};
  const wanted = spec?.replicas ?? 1;
  if (conditionOf(status?.conditions, 'ReplicaFailure', 'True')) {
    return reconciling('ReplicaFailure', 'Replica Failure condition. Check Pods');
  }
  return (
    tooFew(
      ['LessLabelled', 'Labelled', fullyLabeledReplicas, wanted],
      ['LessAvailable', 'Available', availableReplicas, wanted],
      ['LessReady', 'Ready', readyReplicas, wanted],
    ) ??
    tooMany(replicas, wanted) ??
    ready(`ReplicaSet is available. Replicas: ${replicas}`)
  );
}

function statefulSet({ spec, status }: DeepReadonly<StatefulSet>): Readiness {
  const { replicas = 0, readyReplicas, updatedReplicas = 0, currentReplicas } = status ?? {};
  const wanted = spec?.replicas ?? 1;
  const { type, rollingUpdate } = spec?.updateStrategy ?? {};
  if (type === 'OnDelete') return ready('StatefulSet is using the ondelete update strategy');
  const problem =
    tooFew(
      ['LessReplicas', 'Replicas', replicas, wanted],
      ['LessReady', 'Ready', readyReplicas, wanted],
    ) ?? tooMany(replicas, wanted);
  if (problem) return problem;
  if (rollingUpdate?.partition !== undefined) {
    return (
      tooFew(['PartitionRollout', 'updated', updatedReplicas, wanted - rollingUpdate.partition]) ??
      ready(`Partition rollout complete. updated: ${updatedReplicas}`)
    );
  }
  const tooFewCurrent = tooFew(['LessCurrent', 'current', currentReplicas, wanted]);
  if (tooFewCurrent) return tooFewCurrent;
  return status?.currentRevision === status?.updateRevision
    ? ready(`All replicas scheduled as expected. Replicas: ${replicas}`)
    : reconciling('RevisionMismatch', 'Waiting for updated revision to match current');
}

function daemonSet({ kind, metadata, status }: DeepReadonly<DaemonSet>): Readiness {
  if (metadata.generation === undefined) {
    return reconciling('NoGeneration', `${kind} metadata.generation not found`);
  }
  if (status?.observedGeneration === undefined) {
    return reconciling('NoObservedGeneration', `${kind} status.observedGeneration not found`);
  }
  // Required by the schema, but a client can write a status without it.
  const { desiredNumberScheduled: wanted }: Partial<typeof status> = status;
  if (wanted === undefined) {
    return reconciling('NoDesiredNumber', 'Missing .status.desiredNumberScheduled');
  }
  return (
    tooFew(
      ['LessCurrent', 'Current', status.currentNumberScheduled, wanted],
      ['LessUpdated', 'Updated', status.updatedNumberScheduled, wanted],
      ['LessAvailable', 'Available', status.numberAvailable, wanted],
      ['LessReady', 'Ready', status.numberReady, wanted],
    ) ?? ready(`All replicas scheduled as expected. Replicas: ${wanted}`)
  );
}

function job(object: DeepReadonly<Job>): Readiness {
  const { spec, status = {} } = object;
  const { succeeded = 0, failed = 0, active = 0, startTime } = status;
  const completions = spec?.completions ?? spec?.parallelism ?? 1;
  switch (finishedCondition(object)?.type) {
    case 'Complete':
      return ready(`Job Completed. succeeded: ${succeeded}/${completions}`);
    case 'Failed':
      return stalled('JobFailed', `Job Failed. failed: ${failed}/${completions}`);
    default:
      return startTime === undefined
        ? reconciling('JobNotStarted', 'Job not started')
        : ready(`Job in progress. success:${succeeded}, active: ${active}, failed: ${failed}`);
  }
}

function pod({ metadata, status }: DeepReadonly<Pod>, nowMs: number): Readiness | undefined {
  switch (status?.phase) {
    case 'Succeeded':
      return ready('Pod has completed successfully');
    case 'Failed':
      return ready('Pod has completed, but not successfully');
    case 'Running': {
      if (conditionOf(status.conditions, 'Ready', 'True')) return ready('Pod is Ready');
      const names = (status.containerStatuses ?? [])
        .filter(({ state }) => state?.waiting?.reason === 'CrashLoopBackOff')
        .map(({ name }) => name);
      return names.length > 0
        ? stalled('ContainerCrashLooping', `Containers in CrashLoop state: ${names.join(',')}`)
        : reconciling('PodRunningNotReady', 'Pod is running but is not Ready');
    }
    case 'Pending': {
      const scheduled = conditionOf(status.conditions, 'PodScheduled', 'False');
      if (scheduled?.reason !== 'Unschedulable') {
        return reconciling('PodPending', 'Pod is in the Pending phase');
      }
      return nowMs - Date.parse(metadata.creationTimestamp ?? '') < SCHEDULE_MS
        ? reconciling('PodNotScheduled', 'Pod has not been scheduled')
        : stalled('PodUnschedulable', 'Pod could not be scheduled');
    }
    case undefined:
      return reconciling('PodNotObserved', 'Pod phase not available');
    default:
      return undefined;
  }
}

function claim({ status }: DeepReadonly<PersistentVolumeClaim>): Readiness {
  const { phase = 'unknown' } = status ?? {};
  return phase === 'Bound'
    ? ready('PVC is Bound')
    : reconciling('NotBound', `PVC is not Bound. phase: ${phase}`);
}

function service({ spec }: DeepReadonly<Service>): Readiness {
  return spec?.type === 'LoadBalancer' && !spec.clusterIP
    ? reconciling('NoIPAssigned', 'ClusterIP not set. Service type: LoadBalancer')
    : ready('Service is ready');
}

function customResourceDefinition({ status }: DeepReadonly<CustomResourceDefinition>): Readiness {
  for (const { type, status: value, reason = '', message = '' } of status?.conditions ?? []) {
    if (type === 'NamesAccepted' && value === 'False') return stalled(reason, message);
    if (type !== 'Established') continue;
    if (value === 'True') return ready('CRD is established');
    if (value === 'False' && reason !== 'Installing') return stalled(reason, message);
  }
  return reconciling('Installing', 'Install in progress');
}
