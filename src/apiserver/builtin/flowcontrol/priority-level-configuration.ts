import { equalJson } from '../../../api/equal.ts';
import { objectIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject, TableColumn } from '../../objects/resource-definition.ts';
import { columns, field, fieldColumn } from '../../table/column.ts';
import { mandatorySpec } from './mandatory-spec.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const PRIORITY_LEVEL_CONFIGURATION: BuiltinKind = {
  resource: 'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations',
  revalidatesName: 'object',
  tracksGeneration: true,
  statusKeeps: 'metadata',
  defaults: {
    ...defaultsAt('spec.exempt', { nominalConcurrencyShares: 0, lendablePercent: 0 }),
    ...defaultsAt('spec.limited', { nominalConcurrencyShares: 30, lendablePercent: 0 }),
  },
  hooks: { applyDefaults: applyQueuingDefaults },
  validate,
  columns: columns(
    field('Type', 'spec.type'),
    limit('NominalConcurrencyShares', 'spec.limited.nominalConcurrencyShares'),
    limit('Queues', 'spec.limited.limitResponse.queuing.queues'),
    limit('HandSize', 'spec.limited.limitResponse.queuing.handSize'),
    limit('QueueLengthLimit', 'spec.limited.limitResponse.queuing.queueLengthLimit'),
  ),
};

function limit(name: string, path: string): TableColumn {
  return fieldColumn(name, path, (value) => (typeof value === 'number' ? value : '<none>'));
}

function defaultsAt(path: string, values: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(
    Object.entries(values).map(([field, value]) => [`${path}.${field}`, value]),
  );
}

const QUEUING = { handSize: 8, queueLengthLimit: 50, queues: 64 };

/** As upstream, 0 is an absent value. */
function applyQueuingDefaults(level: ApiObject): void {
  const response = objectIn(objectIn(objectIn(level, 'spec'), 'limited'), 'limitResponse');
  const queuing = objectIn(response, 'queuing');
  if (!queuing) return;
  for (const [field, value] of Object.entries(QUEUING)) queuing[field] ||= value;
}

const ZERO_SHARES = 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares';

function validate(level: CheckedObject<StoredObject>): void {
  const { name, annotations = {} } = level.value.metadata;
  if (annotations[ZERO_SHARES] !== undefined) {
    level.forbidden('metadata.annotations', `annotation '${ZERO_SHARES}' is forbidden`);
  }
  const spec = level.in('spec');
  const type = spec.text('type');
  if ((name === 'exempt') !== (type === 'Exempt')) {
    spec.invalid('type', "must be 'Exempt' if and only if `name` is 'exempt'", type);
  }
  spec.requireText('type');
  spec.requireOneOf('type', ['Exempt', 'Limited']);
  const [limited, exempt] = [spec.get('limited'), spec.get('exempt')];
  if (limited) validateResponse(limited.in('limitResponse'));
  if (limited && type !== 'Limited') spec.forbidden('limited', '');
  if (exempt && type !== 'Exempt') spec.forbidden('exempt', '');
  if (type === 'Exempt' && exempt) validateShares(exempt);
  if (type === 'Limited') {
    if (limited) validateLimited(limited);
    else spec.required('limited');
  }
  const types = new Set<string>();
  for (const condition of level.in('status').items('conditions')) {
    condition.requireUnique('type', types);
    condition.requireText('type');
  }
  const fixed = mandatorySpec('prioritylevelconfigurations', name);
  if (!fixed) return;
  // The shares of the exempt level may change.
  const compared = name === 'exempt' ? { ...spec.value, exempt: fixed['exempt'] } : spec.value;
  if (equalJson(compared, fixed)) return;
  const except = name === 'exempt' ? " except the 'spec.exempt' field" : '';
  level.invalid('spec', `spec of '${name}'${except} must equal the fixed value`);
}

function validateShares(shares: CheckedObject): void {
  const negative = (field: string) => (shares.number(field) ?? 0) < 0;
  if (negative('nominalConcurrencyShares')) {
    shares.invalid('nominalConcurrencyShares', 'must be a non-negative integer');
  }
  if (negative('lendablePercent') || (shares.number('lendablePercent') ?? 0) > 100) {
    shares.invalid('lendablePercent', 'must be between 0 and 100, inclusive');
  }
  if (negative('borrowingLimitPercent')) {
    shares.invalid('borrowingLimitPercent', 'if specified, must be a non-negative integer');
  }
}

const MAX_QUEUES = 10_000_000;
const MAX_HASH_BITS = 60;

/** The declared rules, which upstream checks also in a part that is forbidden. */
function validateResponse(response: CheckedObject): void {
  response.requireText('type');
  const isQueue = response.text('type') === 'Queue';
  if (isQueue && !response.has('queuing')) response.required('queuing');
  if (!isQueue && response.has('queuing')) response.forbidden('queuing', '');
}

function validateLimited(limited: CheckedObject): void {
  validateShares(limited);
  const response = limited.in('limitResponse');
  const queuing = response.get('queuing');
  response.requireOneOf('type', ['Queue', 'Reject']);
  if (response.text('type') !== 'Queue' || !queuing) return;
  const number = (field: string) => queuing.number(field) ?? 0;
  for (const field of ['queueLengthLimit', 'queues', 'handSize']) {
    if (number(field) <= 0) queuing.invalid(field, 'must be positive', number(field));
  }
  const [queues, hand] = [number('queues'), number('handSize')];
  if (queues > MAX_QUEUES) queuing.invalid('queues', `must not be greater than ${MAX_QUEUES}`);
  if (hand <= 0) return;
  if (hand > queues) {
    queuing.invalid('handSize', `should not be greater than queues (${queues})`);
  } else if (Math.ceil(Math.log2(queues) * hand) > MAX_HASH_BITS) {
    const why = `required entropy bits of deckSize ${queues} and handSize ${hand} should not be greater than ${MAX_HASH_BITS}`;
    queuing.invalid('handSize', why);
  }
}
