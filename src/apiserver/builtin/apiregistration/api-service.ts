import { nameProblems } from '../../../api/object-names.ts';
import { fromBase64 } from '../../../util/bytes.ts';
import { goQuote } from '../../../util/go-quote.ts';
import { timestamp } from '../../../api/conditions.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, textIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { column, columns } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';
import { conditionOfType } from '../shared/cells.ts';

export const API_SERVICE: BuiltinKind = {
  resource: 'apiregistration.k8s.io/apiservices',
  ...STATUS_ONLY,
  nameFormat: 'pathSegment',
  unconditionalUpdate: false,
  hooks: {
    prepareForCreate: (service, { now }) => {
      if (isSet(objectIn(service, 'spec'), 'service')) return;
      service['status'] = { conditions: [localCondition(timestamp(now))] };
    },
  },
  validate: validateApiService,
  validateUpdate: (service, _previous, subresource) => {
    for (const condition of subresource === 'status'
      ? service.in('status').items('conditions')
      : []) {
      if (STATUSES.includes(condition.text('status'))) continue;
      condition.notSupported('status', STATUSES);
    }
  },
  defaults: { 'spec.service.port': 443 },
  columns: columns(
    column('Service', 'Service that serves the API.', (service) => {
      const reference = objectIn(objectIn(service, 'spec'), 'service');
      return reference ? `${textIn(reference, 'namespace')}/${textIn(reference, 'name')}` : 'Local';
    }),
    column('Available', 'Whether the API is available.', (service) => {
      const available = conditionOfType(service, 'Available');
      const value = textIn(available, 'status') || 'Unknown';
      const reason = textIn(available, 'reason');
      return value !== 'True' && reason ? `${value} (${reason})` : value;
    }),
  ),
};

/** Returns the condition of an API that this server has. */
export function localCondition(lastTransitionTime: string): JsonObject {
  return {
    type: 'Available',
    status: 'True',
    lastTransitionTime,
    reason: 'Local',
    message: 'Local APIServices are always available',
  };
}

const STATUSES = ['True', 'False', 'Unknown'];

const MAX_GROUP_PRIORITY = 20_000;
const MAX_VERSION_PRIORITY = 1000;

function validateApiService(service: CheckedObject): void {
  const spec = service.in('spec');
  const [group, version] = [spec.text('group'), spec.text('version')];
  const metadata = service.in('metadata');
  const expected = `${version}.${group}`;
  for (const field of ['generateName', 'name']) {
    const name = metadata.text(field);
    if (name === '' || name === expected || nameProblems(name, 'pathSegment').length > 0) continue;
    metadata.invalid(field, `must be \`spec.version+"."+spec.group\`: ${goQuote(expected)}`);
  }
  if (group === '' && version !== 'v1') {
    spec.required('group', 'only v1 may have an empty group and it better be legacy kube');
  }
  spec.requireFormat('group', 'dns1123Subdomain');
  spec.problems('version', nameProblems(version, 'dns1035Label'), version);
  for (const [field, max] of [
    ['groupPriorityMinimum', MAX_GROUP_PRIORITY],
    ['versionPriority', MAX_VERSION_PRIORITY],
  ] as const) {
    const priority = spec.number(field) ?? 0;
    if (priority > 0 && priority <= max) continue;
    spec.invalid(field, `must be positive and less than ${max}`, priority);
  }
  const bytes = fromBase64(spec.text('caBundle')).length;
  const isInsecure = spec.value['insecureSkipTLSVerify'] === true;
  const target = spec.get('service');
  if (!target) {
    const why = (field: string) => `local APIServices may not have ${field}`;
    if (bytes > 0) spec.invalid('caBundle', why('a caBundle'), `${bytes} bytes`);
    if (isInsecure) spec.invalid('insecureSkipTLSVerify', why('insecureSkipTLSVerify'));
    return;
  }
  target.requireText('namespace');
  target.requireText('name');
  const port = target.number('port') ?? 0;
  if (port < 1 || port > 65_535) {
    target.invalid('port', 'port is not valid: must be between 1 and 65535, inclusive', port);
  }
  if (isInsecure && bytes > 0) {
    spec.invalid('insecureSkipTLSVerify', 'may not be true if caBundle is present');
  }
}
