import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, field, flagColumn, numeric } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const PRIORITY_CLASS: BuiltinKind = {
  resource: 'scheduling.k8s.io/priorityclasses',
  defaults: { preemptionPolicy: 'PreemptLowerPriority' },
  hooks: { prepareForCreate },
  validate,
  validateUpdate: (next, previous) => {
    if (next.value['value'] !== previous['value']) {
      next.forbidden('value', 'may not be changed in an update.');
    }
    if (next.value['preemptionPolicy'] !== previous['preemptionPolicy']) {
      next.invalid('preemptionPolicy', 'field is immutable');
    }
  },
  columns: [
    NAME_COLUMN,
    numeric('Value', 'value'),
    flagColumn('Global-Default', 'globalDefault'),
    AGE_COLUMN,
    field('PreemptionPolicy', 'preemptionPolicy'),
  ],
};

/** Above this are the system's own. */
const HIGHEST_VALUE = 1_000_000_000;
const POLICIES = ['PreemptLowerPriority', 'Never'];

/** Its generation never grows. */
function prepareForCreate(object: ApiObject): void {
  object.metadata.generation = 1;
}

/** Values of the classes of the system. */
const SYSTEM_VALUES: ReadonlyMap<string, number> = new Map([
  ['system-node-critical', 2_000_001_000],
  ['system-cluster-critical', 2_000_000_000],
]);

/** Returns why an object is no class of the system. */
function systemProblem(object: CheckedObject, name: string): string | undefined {
  const value = SYSTEM_VALUES.get(name);
  if (value === undefined) return `${name} is not a known system priority class`;
  if ((object.number('value') ?? 0) !== value) {
    return `value of ${name} PriorityClass must be ${value}`;
  }
  return object.value['globalDefault'] === true
    ? `globalDefault of ${name} PriorityClass must be false`
    : undefined;
}

function validate(object: CheckedObject<StoredObject>, previous: StoredObject | undefined): void {
  if (previous) return;
  const { name } = object.value.metadata;
  if (name.startsWith('system-')) {
    const problem = systemProblem(object, name);
    const reserved = "priority class names with 'system-' prefix are reserved for system use only";
    if (problem) object.forbidden('metadata.name', `${reserved}. error: ${problem}`);
  } else if ((object.number('value') ?? 0) > HIGHEST_VALUE) {
    const limit = `maximum allowed value of a user defined priority is ${HIGHEST_VALUE}`;
    object.forbidden('value', limit);
  }
  const policy = object.text('preemptionPolicy');
  if (policy === '') object.required('preemptionPolicy');
  else if (!POLICIES.includes(policy)) object.notSupported('preemptionPolicy', POLICIES, policy);
}
