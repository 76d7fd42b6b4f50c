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

function validate(object: CheckedObject<StoredObject>): void {
  const { name } = object.value.metadata;
  if (name.startsWith('system-')) {
    object.forbidden(
      'metadata.name',
      `priority class names with 'system-' prefix are reserved for system use only. error: ${name} is not a known system priority class`,
    );
  } else if ((object.number('value') ?? 0) > HIGHEST_VALUE) {
    const limit = `maximum allowed value of a user defined priority is ${HIGHEST_VALUE}`;
    object.forbidden('value', limit);
  }
  const policy = object.text('preemptionPolicy');
  if (!POLICIES.includes(policy)) object.notSupported('preemptionPolicy', POLICIES, policy);
}
