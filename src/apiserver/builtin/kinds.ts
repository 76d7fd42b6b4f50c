import type { ResourceDefinition } from '../resource-definition.ts';
import { SELF_SUBJECT_REVIEW, TOKEN_REVIEW } from './authentication.ts';
import {
  LOCAL_SUBJECT_ACCESS_REVIEW,
  SELF_SUBJECT_ACCESS_REVIEW,
  SELF_SUBJECT_RULES_REVIEW,
  SUBJECT_ACCESS_REVIEW,
} from './authorization.ts';
import { CONFIG_MAP, SECRET, SERVICE_ACCOUNT } from './config.ts';
import { CUSTOM_RESOURCE_DEFINITION } from './custom-resource-definition.ts';
import { DEPLOYMENT } from './deployment.ts';
import { POD_DISRUPTION_BUDGET } from './disruption-budget.ts';
import { EVENT } from './event.ts';
import { LEASE } from './lease.ts';
import { NAMESPACE } from './namespace.ts';
import { NODE } from './node.ts';
import { POD } from './pod.ts';
import { PRIORITY_CLASS } from './priority-class.ts';
import { CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING } from './rbac.ts';
import { REPLICA_SET } from './replica-set.ts';
import { SERVICE } from './service.ts';

/** Every kind the server has without a CRD. */
export const BUILTIN_KINDS: readonly ResourceDefinition[] = [
  CONFIG_MAP,
  EVENT,
  NAMESPACE,
  NODE,
  POD,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  DEPLOYMENT,
  REPLICA_SET,
  SELF_SUBJECT_REVIEW,
  TOKEN_REVIEW,
  LOCAL_SUBJECT_ACCESS_REVIEW,
  SELF_SUBJECT_ACCESS_REVIEW,
  SELF_SUBJECT_RULES_REVIEW,
  SUBJECT_ACCESS_REVIEW,
  POD_DISRUPTION_BUDGET,
  CLUSTER_ROLE,
  CLUSTER_ROLE_BINDING,
  ROLE,
  ROLE_BINDING,
  PRIORITY_CLASS,
  LEASE,
  CUSTOM_RESOURCE_DEFINITION,
];
