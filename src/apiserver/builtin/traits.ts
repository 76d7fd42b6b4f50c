import { isSet, objectIn } from '../../util/json-value.ts';
import { fieldsAt } from '../objects/field-path.ts';
import { fieldError } from '../../api/field-error.ts';
import { ADMISSION_POLICY, POLICY_BINDING } from './admission-policy.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from './admission-registration.ts';
import { SELF_SUBJECT_REVIEW, TOKEN_REVIEW } from './authentication.ts';
import {
  LOCAL_SUBJECT_ACCESS_REVIEW,
  SELF_SUBJECT_ACCESS_REVIEW,
  SELF_SUBJECT_RULES_REVIEW,
  SUBJECT_ACCESS_REVIEW,
} from './authorization.ts';
import { AUTOSCALER, AUTOSCALER_V1 } from './autoscaling.ts';
import { CRON_JOB, JOB } from './batch.ts';
import { CONFIG_MAP, SECRET, SERVICE_ACCOUNT } from './config.ts';
import { CUSTOM_RESOURCE_DEFINITION } from './custom-resource-definition.ts';
import type { KindTraits } from './definition.ts';
import { authorizeAdminAccess, authorizeClaimStatus } from './device-claims.ts';
import { DEPLOYMENT } from './deployment.ts';
import { POD_DISRUPTION_BUDGET } from './disruption-budget.ts';
import { ENDPOINTS_TRAITS, ENDPOINT_SLICE } from './endpoints.ts';
import { EVENT, EVENTS_EVENT } from './event.ts';
import { LEASE } from './lease.ts';
import { LIMIT_RANGE } from './limits.ts';
import { NAMESPACE } from './namespace.ts';
import { INGRESS, NETWORK_POLICY } from './networking.ts';
import { NODE } from './node.ts';
import { POD } from './pod.ts';
import { PRIORITY_CLASS } from './priority-class.ts';
import { CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING } from './rbac.ts';
import { REPLICA_SET } from './replica-set.ts';
import { RESOURCE_QUOTA } from './resource-quota.ts';
import { SERVICE } from './service.ts';
import { PERSISTENT_VOLUME, VOLUME_CLAIM } from './storage.ts';
import {
  DAEMON_SET,
  POD_TEMPLATE,
  REPLICATION_CONTROLLER,
  STATEFUL_SET,
} from './workload-kinds.ts';

function defaultsAt(path: string, values: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(
    Object.entries(values).map(([field, value]) => [`${path}.${field}`, value]),
  );
}

/** Kinds whose status cannot be written together with metadata. */
const STATUS_ONLY = {
  statusKeeps: ['labels', 'annotations', 'finalizers', 'ownerReferences'],
} as const satisfies KindTraits;

/**
 * Differences of each kind from a plain object; kinds without an entry have none. Those of requests for certificates need
 * cryptography and are in `kinds.ts`.
 */
export const TRAITS: Readonly<Record<string, KindTraits>> = {
  componentstatuses: {
    deprecationWarning: 'v1 ComponentStatus is deprecated in v1.19+',
  },
  configmaps: CONFIG_MAP,
  endpoints: ENDPOINTS_TRAITS,
  events: EVENT,
  limitranges: LIMIT_RANGE,
  namespaces: NAMESPACE,
  nodes: NODE,
  persistentvolumeclaims: VOLUME_CLAIM,
  persistentvolumes: PERSISTENT_VOLUME,
  pods: POD,
  podtemplates: POD_TEMPLATE,
  replicationcontrollers: REPLICATION_CONTROLLER,
  resourcequotas: RESOURCE_QUOTA,
  secrets: SECRET,
  serviceaccounts: SERVICE_ACCOUNT,
  services: SERVICE,

  'admissionregistration.k8s.io/mutatingadmissionpolicies': ADMISSION_POLICY,
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings': POLICY_BINDING,
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': MUTATING_WEBHOOKS,
  'admissionregistration.k8s.io/validatingadmissionpolicies': {
    ...STATUS_ONLY,
    ...ADMISSION_POLICY,
  },
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': POLICY_BINDING,
  'admissionregistration.k8s.io/validatingwebhookconfigurations': VALIDATING_WEBHOOKS,

  'apiextensions.k8s.io/customresourcedefinitions': CUSTOM_RESOURCE_DEFINITION,

  'apiregistration.k8s.io/apiservices': {
    ...STATUS_ONLY,
    unconditionalUpdate: false,
    defaults: { 'spec.service.port': 443 },
  },

  'apps/daemonsets': DAEMON_SET,
  'apps/deployments': DEPLOYMENT,
  'apps/replicasets': REPLICA_SET,
  'apps/statefulsets': STATEFUL_SET,

  'authentication.k8s.io/selfsubjectreviews': SELF_SUBJECT_REVIEW,
  'authentication.k8s.io/tokenreviews': TOKEN_REVIEW,

  'authorization.k8s.io/localsubjectaccessreviews': LOCAL_SUBJECT_ACCESS_REVIEW,
  'authorization.k8s.io/selfsubjectaccessreviews': SELF_SUBJECT_ACCESS_REVIEW,
  'authorization.k8s.io/selfsubjectrulesreviews': SELF_SUBJECT_RULES_REVIEW,
  'authorization.k8s.io/subjectaccessreviews': SUBJECT_ACCESS_REVIEW,

  'autoscaling/horizontalpodautoscalers': AUTOSCALER,
  'autoscaling/v1/horizontalpodautoscalers': AUTOSCALER_V1,

  'batch/cronjobs': CRON_JOB,
  'batch/jobs': JOB,

  'certificates.k8s.io/clustertrustbundles': {
    nameFormat: 'pathSegment',
    unconditionalUpdate: false,
  },
  'certificates.k8s.io/podcertificaterequests': {
    ...STATUS_ONLY,
    unconditionalUpdate: false,
  },

  'coordination.k8s.io/leases': LEASE,

  'discovery.k8s.io/endpointslices': ENDPOINT_SLICE,

  'events.k8s.io/events': EVENTS_EVENT,

  'flowcontrol.apiserver.k8s.io/flowschemas': {
    tracksGeneration: true,
    defaults: { 'spec.matchingPrecedence': 1000 },
  },
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': {
    tracksGeneration: true,
    defaults: {
      ...defaultsAt('spec.exempt', { nominalConcurrencyShares: 0, lendablePercent: 0 }),
      ...defaultsAt('spec.limited', { nominalConcurrencyShares: 30, lendablePercent: 0 }),
      ...defaultsAt('spec.limited.limitResponse.queuing', {
        handSize: 8,
        queueLengthLimit: 50,
        queues: 64,
      }),
    },
  },

  'networking.k8s.io/ingressclasses': {
    tracksGeneration: true,
    defaults: { 'spec.parameters.scope': 'Cluster' },
    immutable: ['spec.controller'],
  },
  'networking.k8s.io/ingresses': INGRESS,
  'networking.k8s.io/ipaddresses': {
    immutable: ['spec'],
    nameFormat: 'pathSegment',
  },
  'networking.k8s.io/networkpolicies': NETWORK_POLICY,
  'networking.k8s.io/servicecidrs': {
    ...STATUS_ONLY,
    immutable: ['spec.cidrs'],
  },

  'node.k8s.io/runtimeclasses': {
    createOnUpdate: true,
    unconditionalUpdate: false,
    immutable: ['handler'],
  },

  'policy/poddisruptionbudgets': POD_DISRUPTION_BUDGET,

  'rbac.authorization.k8s.io/clusterrolebindings': CLUSTER_ROLE_BINDING,
  'rbac.authorization.k8s.io/clusterroles': CLUSTER_ROLE,
  'rbac.authorization.k8s.io/rolebindings': ROLE_BINDING,
  'rbac.authorization.k8s.io/roles': ROLE,

  'resource.k8s.io/deviceclasses': {
    tracksGeneration: true,
    returnsDeleted: true,
  },
  'resource.k8s.io/devicetaintrules': {
    ...STATUS_ONLY,
    tracksGeneration: true,
  },
  'resource.k8s.io/resourceclaims': {
    ...STATUS_ONLY,
    returnsDeleted: true,
    immutable: ['spec'],
    defaults: deviceRequests('spec.devices.requests[]'),
    hooks: {
      authorize: (claim, previous, context) =>
        previous && context.subresource === 'status'
          ? authorizeClaimStatus(claim, previous, context)
          : authorizeAdminAccess(claim, previous, context),
    },
  },
  'resource.k8s.io/resourceclaimtemplates': {
    returnsDeleted: true,
    immutable: ['spec'],
    defaults: deviceRequests('spec.spec.devices.requests[]'),
    hooks: { authorize: authorizeAdminAccess },
  },
  'resource.k8s.io/resourceslices': {
    tracksGeneration: true,
    returnsDeleted: true,
    immutable: ['spec.nodeName', 'spec.driver', 'spec.pool.name'],
    selectableFields: fieldsAt('spec.nodeName', 'spec.driver', 'spec.pool.name'),
  },

  'scheduling.k8s.io/priorityclasses': PRIORITY_CLASS,

  'storage.k8s.io/csidrivers': {
    returnsDeleted: true,
    unconditionalUpdate: false,
    immutable: ['spec.attachRequired', 'spec.volumeLifecycleModes'],
    defaults: {
      'spec.attachRequired': true,
      'spec.podInfoOnMount': false,
      'spec.storageCapacity': false,
      'spec.fsGroupPolicy': 'ReadWriteOnceWithFSType',
      'spec.volumeLifecycleModes': ['Persistent'],
      'spec.requiresRepublish': false,
      'spec.seLinuxMount': false,
      'spec.preventPodSchedulingIfMissing': false,
    },
  },
  'storage.k8s.io/csinodes': {
    returnsDeleted: true,
    unconditionalUpdate: false,
    defaults: { 'spec.drivers': [] },
  },
  'storage.k8s.io/csistoragecapacities': {
    unconditionalUpdate: false,
    immutable: ['nodeTopology', 'storageClassName'],
  },
  'storage.k8s.io/storageclasses': {
    returnsDeleted: true,
    defaults: { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
    immutable: ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'],
  },
  'storage.k8s.io/volumeattachments': {
    ...STATUS_ONLY,
    returnsDeleted: true,
    unconditionalUpdate: false,
    immutable: ['spec'],
    hooks: {
      validate: (attachment) => {
        const source = objectIn(objectIn(attachment, 'spec'), 'source') ?? {};
        const isOne = isSet(source, 'inlineVolumeSpec') !== isSet(source, 'persistentVolumeName');
        const detail = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
        return isOne ? [] : [fieldError.required('spec.source', detail)];
      },
    },
  },
  'storage.k8s.io/volumeattributesclasses': {
    returnsDeleted: true,
    immutable: ['driverName', 'parameters'],
    hooks: {
      validate: (object) => {
        if (Object.keys(objectIn(object, 'parameters') ?? {}).length > 0) return [];
        return [fieldError.required('parameters', 'must contain at least one key/value pair')];
      },
    },
  },

  'storagemigration.k8s.io/storageversionmigrations': {
    ...STATUS_ONLY,
    unconditionalUpdate: false,
    immutable: ['spec'],
  },
};

function deviceRequests(path: string): Record<string, unknown> {
  return {
    [`${path}.exactly.allocationMode`]: 'ExactCount',
    [`${path}.exactly.count`]: 1,
    [`${path}.firstAvailable[].allocationMode`]: 'ExactCount',
    [`${path}.firstAvailable[].count`]: 1,
  };
}
