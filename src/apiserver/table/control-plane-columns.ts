import { numberIn, objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import type { CustomResourceDefinition } from '../../api/builtin.ts';
import type { StoredObject, TableColumn } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import type { KindColumns } from './column.ts';
import {
  AGE_COLUMN,
  CREATED_AT_COLUMN,
  NAME_COLUMN,
  WIDE,
  column,
  columns,
  count,
  field,
  fieldColumn,
  humanDuration,
  numeric,
  qualified,
  trueCondition,
  wide,
} from './column.ts';
import { selectorCell } from './workload-columns.ts';

const crdColumn = column<CustomResourceDefinition>;
const wideCrdColumn = wide<CustomResourceDefinition>;

const BINDING_COLUMNS = [
  ...columns(
    column('Role', 'Role that the subjects are bound to.', (binding) => {
      const role = objectIn(binding, 'roleRef');
      return `${textIn(role, 'kind')}/${textIn(role, 'name')}`;
    }),
  ),
  subjectsColumn('Users', 'User'),
  subjectsColumn('Groups', 'Group'),
  subjectsColumn('ServiceAccounts', 'ServiceAccount'),
];

const WEBHOOK_COLUMNS = columns(count('Webhooks', 'webhooks'));

const PARAM_KIND = column('ParamKind', 'Kind of the parameters.', (policy) => {
  const kind = objectIn(objectIn(policy, 'spec'), 'paramKind');
  return kind ? `${textIn(kind, 'apiVersion')}/${textIn(kind, 'kind')}` : '<unset>';
});

const POLICY_BINDING_COLUMNS = columns(
  field('PolicyName', 'spec.policyName'),
  column('ParamRef', 'Reference to the parameters.', (binding) => {
    const reference = objectIn(objectIn(binding, 'spec'), 'paramRef');
    const name = textIn(reference, 'name');
    if (name !== '') return `${textIn(reference, 'namespace') || '*'}/${name}`;
    const selector = objectIn(reference, 'selector');
    return selector ? selectorCell(selector) : '<unset>';
  }),
);

/** Columns of the kinds that configure the API server. */
export const CONTROL_PLANE_COLUMNS: KindColumns = {
  'admissionregistration.k8s.io/mutatingadmissionpolicies': columns(
    count('Mutations', 'spec.mutations'),
    PARAM_KIND,
  ),
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings': POLICY_BINDING_COLUMNS,
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': WEBHOOK_COLUMNS,
  'admissionregistration.k8s.io/validatingadmissionpolicies': columns(
    count('Validations', 'spec.validations'),
    PARAM_KIND,
  ),
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': POLICY_BINDING_COLUMNS,
  'admissionregistration.k8s.io/validatingwebhookconfigurations': WEBHOOK_COLUMNS,

  'apiextensions.k8s.io/customresourcedefinitions': [
    NAME_COLUMN,
    field('Scope', 'spec.scope'),
    crdColumn('Versions', 'Served versions.', ({ spec }) =>
      spec.versions
        .filter(({ served }) => served)
        .map(({ name, storage }) => (storage ? `${name}(storage)` : name))
        .sort()
        .join(),
    ),
    CREATED_AT_COLUMN,
    field('Group', 'spec.group', '', WIDE),
    field('Kind', 'spec.names.kind', '', WIDE),
    wideCrdColumn('ShortNames', 'Short names.', ({ spec }) => (spec.names.shortNames ?? []).join()),
    wideCrdColumn(
      'Established',
      'Whether the objects are served.',
      ({ status }) =>
        status?.conditions?.some(
          ({ type, status: value }) => type === 'Established' && value === 'True',
        ) ?? false,
      { type: 'boolean' },
    ),
  ],

  'apiregistration.k8s.io/apiservices': columns(
    column('Service', 'Service that serves the API.', (service) => {
      const reference = objectIn(objectIn(service, 'spec'), 'service');
      return reference ? `${textIn(reference, 'namespace')}/${textIn(reference, 'name')}` : 'Local';
    }),
    column('Available', 'Whether the API is available.', (service) => {
      const available = condition(service, 'Available');
      const value = textIn(available, 'status') || 'Unknown';
      const reason = textIn(available, 'reason');
      return value !== 'True' && reason ? `${value} (${reason})` : value;
    }),
  ),

  'certificates.k8s.io/certificatesigningrequests': [
    NAME_COLUMN,
    AGE_COLUMN,
    field('SignerName', 'spec.signerName', '<none>'),
    field('Requestor', 'spec.username'),
    column('RequestedDuration', 'Requested validity of the certificate.', (request) => {
      const seconds = numberIn(objectIn(request, 'spec'), 'expirationSeconds');
      return seconds === undefined ? '<none>' : humanDuration(seconds * 1000);
    }),
    column('Condition', 'State of the request.', (request) => {
      const has = (type: string) => condition(request, type) !== undefined;
      const state = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending';
      const issued = textIn(objectIn(request, 'status'), 'certificate') ? ',Issued' : '';
      return `${state}${has('Failed') ? ',Failed' : ''}${issued}`;
    }),
  ],
  'certificates.k8s.io/clustertrustbundles': [
    NAME_COLUMN,
    field('SignerName', 'spec.signerName', '<none>'),
  ],
  'certificates.k8s.io/podcertificaterequests': [
    NAME_COLUMN,
    field('PodName', 'spec.podName'),
    field('ServiceAccountName', 'spec.serviceAccountName'),
    field('NodeName', 'spec.nodeName'),
    field('SignerName', 'spec.signerName'),
    column('State', 'State of the request.', (request) => {
      const conditions = objectsIn(objectIn(request, 'status'), 'conditions');
      const types = conditions.map((one) => textIn(one, 'type'));
      return types.findLast((type) => ['Issued', 'Denied', 'Failed'].includes(type)) ?? 'Pending';
    }),
  ],

  'flowcontrol.apiserver.k8s.io/flowschemas': [
    ...columns(
      field('PriorityLevel', 'spec.priorityLevelConfiguration.name'),
      numeric('MatchingPrecedence', 'spec.matchingPrecedence', 'string'),
      field('DistinguisherMethod', 'spec.distinguisherMethod.type', '<none>'),
    ),
    column('MissingPL', 'Whether the priority level does not exist.', (schema) => {
      const dangling = condition(schema, 'Dangling');
      return dangling ? textIn(dangling, 'status') : '?';
    }),
  ],
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': columns(
    field('Type', 'spec.type'),
    limit('NominalConcurrencyShares', 'spec.limited.nominalConcurrencyShares'),
    limit('Queues', 'spec.limited.limitResponse.queuing.queues'),
    limit('HandSize', 'spec.limited.limitResponse.queuing.handSize'),
    limit('QueueLengthLimit', 'spec.limited.limitResponse.queuing.queueLengthLimit'),
  ),

  'rbac.authorization.k8s.io/clusterrolebindings': BINDING_COLUMNS,
  'rbac.authorization.k8s.io/rolebindings': BINDING_COLUMNS,

  'storagemigration.k8s.io/storageversionmigrations': [
    { ...NAME_COLUMN, format: '' },
    column('Resource', 'Resource to migrate.', (migration) => {
      const resource = objectIn(objectIn(migration, 'spec'), 'resource');
      return qualified(textIn(resource, 'resource'), textIn(resource, 'group'));
    }),
    column(
      'Status',
      'Status of the migration.',
      (migration) => trueCondition(migration, ['Succeeded', 'Failed', 'Running']) ?? 'Unknown',
    ),
  ],
};

function limit(name: string, path: string): TableColumn {
  return fieldColumn(name, path, (value) => (typeof value === 'number' ? value : '<none>'));
}

function condition(object: StoredObject, type: string): JsonObject | undefined {
  const conditions = objectsIn(objectIn(object, 'status'), 'conditions');
  return conditions.find((each) => each['type'] === type);
}

function subjectsColumn(title: string, kind: string): TableColumn {
  return wide(title, `Subjects of kind ${kind}.`, (binding) =>
    objectsIn(binding, 'subjects')
      .filter((subject) => subject['kind'] === kind)
      .map((subject) => {
        const name = textIn(subject, 'name');
        return kind === 'ServiceAccount' ? `${textIn(subject, 'namespace')}/${name}` : name;
      })
      .join(', '),
  );
}
