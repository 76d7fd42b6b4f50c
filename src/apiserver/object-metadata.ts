import type { DeepReadonly, ObjectMeta, OwnerReference } from '../api/object.ts';
import type { NameFormat, StoredObject } from './resource-definition.ts';
import type { FieldError } from './schema/field-error.ts';
import { fieldError } from './schema/field-error.ts';

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';

/** Wording and rules of one kind of name. */
interface NameRule {
  readonly pattern: RegExp;
  readonly text: string;
  readonly source: string;
  readonly examples: readonly string[];
  readonly maxLength: number;
}

const SUBDOMAIN_RULE: NameRule = {
  pattern: new RegExp(`^${SUBDOMAIN}$`),
  text: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  source: SUBDOMAIN,
  examples: ['example.com'],
  maxLength: 253,
};
const LABEL_RULE: NameRule = {
  pattern: new RegExp(`^${LABEL}$`),
  text: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  source: LABEL,
  examples: ['my-name', '123-abc'],
  maxLength: 63,
};
const LABEL_1035_RULE: NameRule = {
  pattern: new RegExp(`^${LABEL_1035}$`),
  text: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  source: LABEL_1035,
  examples: ['my-name', 'abc-123'],
  maxLength: 63,
};
const QUALIFIED_NAME_RULE: NameRule = {
  pattern: new RegExp(`^${QUALIFIED}$`),
  text: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  source: QUALIFIED,
  examples: ['MyName', 'my.name', '123-abc'],
  maxLength: 63,
};
const LABEL_VALUE_RULE: NameRule = {
  pattern: new RegExp(`^(${QUALIFIED})?$`),
  text: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  source: `(${QUALIFIED})?`,
  examples: ['MyValue', 'my_value', '12345'],
  maxLength: 63,
};

/** Keys and values of all annotations together. */
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

const ORPHAN = 'orphan';
const FOREGROUND = 'foregroundDeletion';

/** What is wrong with the metadata of any object. Hostile shapes are the schema's business. */
export function validateMetadata(
  metadata: DeepReadonly<ObjectMeta>,
  namespaced: boolean,
  nameFormat: NameFormat,
): FieldError[] {
  const { name, namespace, labels, annotations, ownerReferences, finalizers } = metadata;
  const errors: FieldError[] = [];
  if (!name) {
    errors.push(fieldError.required('metadata.name', 'name or generateName is required'));
  } else {
    for (const problem of nameProblems(name, nameFormat)) {
      errors.push(fieldError.invalid('metadata.name', name, problem));
    }
  }
  if (namespaced && !namespace) errors.push(fieldError.required('metadata.namespace'));
  if (!namespaced && namespace) {
    errors.push(fieldError.forbidden('metadata.namespace', 'not allowed on this type'));
  }
  errors.push(
    ...validateLabels(labels),
    ...validateAnnotations(annotations),
    ...validateOwners(ownerReferences),
    ...validateFinalizers(finalizers),
  );
  return errors;
}

/** What is wrong with the step from `previous`, for any object. */
export function validateMetadataUpdate(
  next: DeepReadonly<ObjectMeta>,
  previous: DeepReadonly<ObjectMeta>,
): FieldError[] {
  const errors: FieldError[] = [];
  if (previous.deletionTimestamp) {
    const added = (next.finalizers ?? [])
      .filter((finalizer) => !previous.finalizers?.includes(finalizer))
      .sort();
    if (added.length > 0) {
      const list = `[]string{${added.map((finalizer) => JSON.stringify(finalizer)).join(', ')}}`;
      errors.push(
        fieldError.forbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`,
        ),
      );
    }
  }
  if (!next.resourceVersion) {
    errors.push(
      fieldError.invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
    );
  }
  for (const field of [
    'name',
    'namespace',
    'uid',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  ] as const) {
    if (next[field] !== previous[field]) {
      errors.push(
        fieldError.invalid(`metadata.${field}`, next[field] ?? null, 'field is immutable'),
      );
    }
  }
  return errors;
}

/** Why `name` is no name of this format; empty if it is one. */
export function nameProblems(name: string, format: NameFormat): string[] {
  switch (format) {
    case 'dns1123Subdomain':
      return problems(name, SUBDOMAIN_RULE);
    case 'dns1123Label':
      return problems(name, LABEL_RULE);
    case 'dns1035Label':
      return problems(name, LABEL_1035_RULE);
    case 'pathSegment': {
      if (name === '.' || name === '..') return [`may not be '${name}'`];
      return ['/', '%']
        .filter((character) => name.includes(character))
        .map((character) => `may not contain '${character}'`);
    }
  }
}

/** True if something still keeps a deleted object. */
export function hasFinalizers({ metadata }: StoredObject): boolean {
  return (metadata.finalizers?.length ?? 0) > 0;
}

/** The finalizers that a deletion with this policy leaves on an object. */
export function deletionFinalizers(
  finalizers: readonly string[] = [],
  policy: string | undefined,
): string[] {
  const own = finalizers.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  switch (policy) {
    case 'Orphan':
      return [...own, ORPHAN];
    case 'Foreground':
      return [...own, FOREGROUND];
    case 'Background':
      return own;
    default:
      return [...finalizers];
  }
}

function problems(name: string, rule: NameRule): string[] {
  const found: string[] = [];
  if (Buffer.byteLength(name) > rule.maxLength) found.push(tooLong(rule));
  // An over-long name is not matched: the expressions backtrack.
  if (name.length > 10 * rule.maxLength || !rule.pattern.test(name)) found.push(mismatch(rule));
  return found;
}

function tooLong({ maxLength }: NameRule): string {
  return `must be no more than ${maxLength} bytes`;
}

function mismatch({ text, examples, source }: NameRule): string {
  const shown = examples.map((example) => `'${example}', `).join(' or ');
  return `${text} (e.g. ${shown}regex used for validation is '${source}')`;
}

function qualifiedNameProblems(key: string): string[] {
  const parts = key.split('/');
  const name = parts.at(-1) ?? '';
  if (parts.length > 2) {
    return [
      `a valid label key ${mismatch(QUALIFIED_NAME_RULE)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const found: string[] = [];
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '') found.push('prefix part must be non-empty');
    else found.push(...problems(prefix, SUBDOMAIN_RULE).map((problem) => `prefix part ${problem}`));
  }
  if (name === '') found.push('name part must be non-empty');
  found.push(...problems(name, QUALIFIED_NAME_RULE).map((problem) => `name part ${problem}`));
  return found;
}

function validateLabels(labels: ObjectMeta['labels'] = {}): FieldError[] {
  const path = 'metadata.labels';
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(labels)) {
    for (const problem of qualifiedNameProblems(key)) {
      errors.push(fieldError.invalid(path, key, problem));
    }
    for (const problem of problems(value, LABEL_VALUE_RULE)) {
      errors.push(fieldError.invalid(path, value, problem));
    }
  }
  return errors;
}

function validateAnnotations(annotations: ObjectMeta['annotations'] = {}): FieldError[] {
  let bytes = 0;
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(annotations)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    for (const problem of qualifiedNameProblems(key.toLowerCase())) {
      errors.push(fieldError.invalid('metadata.annotations', key, problem));
    }
  }
  if (bytes > MAX_ANNOTATIONS_BYTES) {
    errors.push(fieldError.tooLong('metadata.annotations', MAX_ANNOTATIONS_BYTES));
  }
  return errors;
}

function validateOwners(owners: readonly DeepReadonly<OwnerReference>[] = []): FieldError[] {
  const path = 'metadata.ownerReferences';
  const errors: FieldError[] = [];
  let controller: string | undefined;
  for (const owner of owners) {
    const { apiVersion, kind, name, uid } = owner;
    if (!apiVersion) {
      errors.push(
        fieldError.invalid(`${path}.apiVersion`, apiVersion ?? '', 'version must not be empty'),
      );
    }
    for (const [field, value] of Object.entries({ kind, name, uid })) {
      if (!value) {
        errors.push(fieldError.invalid(`${path}.${field}`, value ?? '', 'must not be empty'));
      }
    }
    if (apiVersion === 'v1' && kind === 'Event') {
      errors.push(
        fieldError.invalid(path, owner, '/v1, Kind=Event is disallowed from being an owner'),
      );
    }
    if (owner.controller !== true) continue;
    const current = `${kind}/${name}`;
    if (controller !== undefined) {
      errors.push(
        fieldError.invalid(
          path,
          owners,
          `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`,
        ),
      );
    }
    controller ??= current;
  }
  return errors;
}

function validateFinalizers(finalizers: readonly string[] = []): FieldError[] {
  const path = 'metadata.finalizers';
  const errors = finalizers.flatMap((finalizer) =>
    qualifiedNameProblems(finalizer).map((problem) => fieldError.invalid(path, finalizer, problem)),
  );
  if (finalizers.includes(ORPHAN) && finalizers.includes(FOREGROUND)) {
    errors.push(
      fieldError.invalid(
        path,
        finalizers,
        `finalizer ${ORPHAN} and ${FOREGROUND} cannot be both set`,
      ),
    );
  }
  return errors;
}
