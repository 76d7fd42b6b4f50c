import { changedPaths, formatPath, valueAt } from '../api/field-path.ts';
import type { FieldPath } from '../api/field-path.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { countText } from '../serving/words.ts';
import { isSecretName, MASK, redactText } from '../util/redact.ts';
import type { FieldChange } from '../workqueue/queue-item.ts';

/** Bounds of the list of changed fields in a cause: number of fields, and characters. */
const MAX_FIELDS = 5;
const MAX_FIELDS_LENGTH = 300;

/** Maximum length of a value in a change, in characters. */
const MAX_VALUE_LENGTH = 80;

/** Number of characters in which credentials are searched for. */
const MAX_READ_LENGTH = 1000;

/** Description of an update, for people. */
export interface UpdateDescription {
  /** `changed: .status.phase, .metadata.labels.app` */
  readonly text: string;
  /** Absent if no field is named. */
  readonly changes?: readonly FieldChange[];
}

/** Describes an update by its changed fields. Values that can be secret are masked. */
export function updateOf(
  old: DeepReadonly<KubernetesObject>,
  object: DeepReadonly<KubernetesObject>,
): UpdateDescription {
  if (old.metadata.uid !== object.metadata.uid) {
    return { text: 'replaced by another object of its name' };
  }
  const paths = changedPaths(old, object, MAX_FIELDS + 1);
  if (paths.length === 0) return { text: 'changed: managedFields only' };
  const shown = paths.slice(0, MAX_FIELDS);
  const named = shown.map(formatPath).join(', ');
  const changes = shown.map((path) => changeAt(path, old, object));
  if (named.length > MAX_FIELDS_LENGTH) {
    return { text: `changed: ${named.slice(0, MAX_FIELDS_LENGTH)}…`, changes };
  }
  return { text: `changed: ${named}${paths.length > MAX_FIELDS ? ', …' : ''}`, changes };
}

function changeAt(
  path: FieldPath,
  old: DeepReadonly<KubernetesObject>,
  object: DeepReadonly<KubernetesObject>,
): FieldChange {
  const before = shownValue(valueAt(old, path), path, old);
  const after = shownValue(valueAt(object, path), path, object);
  return {
    field: formatPath(path),
    ...(before !== undefined && { before }),
    ...(after !== undefined && { after }),
  };
}

/** Returns a short text for a value. Lists and objects are counted, because formatting them takes time. */
function shownValue(
  value: unknown,
  path: FieldPath,
  { kind }: DeepReadonly<KubernetesObject>,
): string | undefined {
  if (value === undefined) return undefined;
  if (isSecretPath(path, kind)) return MASK;
  if (typeof value === 'string') {
    const text = redactText(value.slice(0, MAX_READ_LENGTH));
    return JSON.stringify(
      text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text,
    );
  }
  if (Array.isArray(value)) return `[${countText(value.length, 'item')}]`;
  if (typeof value === 'object' && value !== null) {
    return `{${countText(Object.keys(value).length, 'field')}}`;
  }
  return JSON.stringify(value);
}

/** Names of members whose values are masked as a whole: contents of a Secret, and environment variables. */
const SECRET_DATA: ReadonlySet<unknown> = new Set(['data', 'stringData']);

function isSecretPath(path: FieldPath, kind: string): boolean {
  if (kind === 'Secret' && SECRET_DATA.has(path[0])) return true;
  return path.some((step) => typeof step === 'string' && (step === 'env' || isSecretName(step)));
}
