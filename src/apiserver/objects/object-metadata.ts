import { utf8Length } from '../../util/bytes.ts';
import type { NameFormat } from '../../api/object-names.ts';
import type { DeepReadonly, ObjectMeta, OwnerReference } from '../../api/object.ts';
import { CheckedObject, untilTooMany } from './checked-object.ts';
import {
  labelValueProblems,
  namePrefixProblems,
  nameProblems,
  qualifiedNameProblems,
} from '../../api/object-names.ts';
import type { ApiObject, ResourceDefinition } from './resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { EXTENSIONS, validateFinalizers } from './finalizers.ts';
import { managerErrors } from './manager-name.ts';
import { Verbatim } from '../../api/field-error.ts';
import { goJson } from '../../util/go-format.ts';
import { own } from '../../util/json-value.ts';

/** Maximum total size of the keys and values of all annotations. */
export const MAX_ANNOTATIONS_BYTES: number = 256 * 1024;

/** Validates the metadata of an object. The decoder has checked the types. */
export function validateMetadata(
  metadata: DeepReadonly<ObjectMeta>,
  namespaced: boolean,
  nameFormat: NameFormat,
  prefixFormat: NameFormat = nameFormat,
): FieldError[] {
  const { name, generateName, namespace } = metadata;
  const checked = new CheckedObject({ ...metadata }, 'metadata');
  untilTooMany(() => {
    if (generateName) {
      checked.problems('generateName', namePrefixProblems(generateName, prefixFormat));
    }
    if (name) checked.problems('name', nameProblems(name, nameFormat));
    else checked.required('name', 'name or generateName is required');
    if (namespaced && !namespace) checked.required('namespace');
    if (!namespaced && namespace) checked.forbidden('namespace', 'not allowed on this type');
    checkAttached(checked, metadata);
    validateFinalizers(checked, metadata.finalizers);
  });
  return checked.errors;
}

/** Reports what is wrong with metadata that clients attach to an object: labels, annotations, owners and managers. */
export function checkAttached(checked: CheckedObject, metadata: DeepReadonly<ObjectMeta>): void {
  checked.requireNonNegative('generation');
  checkLabels(checked, metadata.labels);
  checkAnnotations(checked, metadata.annotations);
  checkOwners(checked);
  checkManagers(checked);
}

/**
 * Validates the metadata of an update. As upstream, most errors of custom resources and CRDs are repeated.
 *
 * @returns the errors, and those that a custom resource of the right type repeats and that its rules depend on
 */
export function validateMetadataUpdate(
  next: DeepReadonly<ObjectMeta>,
  previous: DeepReadonly<ObjectMeta>,
  definition: Pick<
    ResourceDefinition,
    'namespaced' | 'custom' | 'group' | 'nameFormat' | 'revalidatesName'
  >,
  subresource: string | undefined,
): { readonly errors: FieldError[]; readonly ofRules: FieldError[] } {
  const {
    namespaced,
    custom,
    group,
    nameFormat = 'dns1123Subdomain',
    revalidatesName,
  } = definition;
  // The name was validated by the create.
  const errors = validateMetadata(next, namespaced, 'pathSegment');
  const checked = new CheckedObject({ ...next }, 'metadata');
  const isAgain =
    subresource === 'status'
      ? revalidatesName === 'object and status'
      : revalidatesName !== undefined;
  if (isAgain && next.generateName) {
    checked.problems('generateName', namePrefixProblems(next.generateName, nameFormat));
  }
  checkChange(checked, next, previous);
  if (!custom && group !== EXTENSIONS) {
    return { errors: [...errors, ...checked.errors], ofRules: [] };
  }
  untilTooMany(() => checkAttached(checked, next));
  const repeated = checked.errors;
  return { errors: [...errors, ...repeated], ofRules: repeated };
}

function checkChange(
  checked: CheckedObject,
  next: DeepReadonly<ObjectMeta>,
  previous: DeepReadonly<ObjectMeta>,
): void {
  if (previous.deletionTimestamp) {
    const present = new Set(previous.finalizers);
    const added = (next.finalizers ?? []).filter((finalizer) => !present.has(finalizer)).sort();
    if (added.length > 0) {
      const list = `[]string{${added.map((finalizer) => JSON.stringify(finalizer)).join(', ')}}`;
      checked.forbidden(
        'finalizers',
        `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`,
      );
    }
  }
  for (const field of IMMUTABLE) {
    if (next[field] !== previous[field]) checked.invalid(field, 'field is immutable');
  }
}

const IMMUTABLE = [
  'name',
  'namespace',
  'uid',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
] as const;

function checkLabels(metadata: CheckedObject, labels: ObjectMeta['labels'] = {}): void {
  for (const [key, value] of Object.entries(labels)) {
    metadata.problems('labels', qualifiedNameProblems(key), key);
    metadata.problems('labels', labelValueProblems(value), value);
  }
}

/** @param field where the annotations are */
export function checkAnnotations(
  metadata: CheckedObject,
  annotations: Readonly<Record<string, unknown>> = {},
  field: string = 'annotations',
): void {
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    bytes += utf8Length(key) + utf8Length(String(value));
    metadata.problems(field, qualifiedNameProblems(key.toLowerCase()), key);
  }
  if (bytes > MAX_ANNOTATIONS_BYTES) metadata.tooLong(field, MAX_ANNOTATIONS_BYTES);
}

const GROUP_VERSION = /^(?:[^/]*\/)?[^/]+$/;

function checkOwners(metadata: CheckedObject): void {
  let controller: string | undefined;
  for (const owner of metadata.items('ownerReferences')) {
    for (const field of ['apiVersion', 'kind', 'name', 'uid']) {
      if (owner.text(field) === '') owner.required(field, 'must not be empty');
      else if (field === 'apiVersion' && !GROUP_VERSION.test(owner.text(field))) {
        owner.invalid(field, 'must be <group>/<version> or <version>');
      }
    }
    const kind = owner.text('kind');
    if (owner.text('apiVersion') === 'v1' && kind === 'Event') {
      const detail = '/v1, Kind=Event is disallowed from being an owner';
      owner.invalid('', detail, new Verbatim(ownerJson(owner.value)));
    }
    if (owner.value['controller'] !== true) continue;
    const current = `${kind}/${owner.text('name')}`;
    if (controller !== undefined) {
      const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`;
      const owners = metadata.items('ownerReferences').map(({ value }) => ownerJson(value));
      metadata.invalid('ownerReferences', detail, new Verbatim(`[${owners.join(',')}]`));
    }
    controller ??= current;
  }
}

/** The fields of an owner reference in the order of Go's struct. */
const OWNER_FIELDS = ['apiVersion', 'kind', 'name', 'uid', 'controller', 'blockOwnerDeletion'];

function ownerJson(owner: Readonly<Record<string, unknown>>): string {
  const members = OWNER_FIELDS.filter((field) => own(owner, field) !== undefined);
  return `{${members.map((field) => `"${field}":${goJson(owner[field])}`).join(',')}}`;
}

/** In bytes. */
const LONGEST_SUBRESOURCE = 256;

function checkManagers(metadata: CheckedObject): void {
  for (const entry of metadata.items('managedFields')) {
    const operation = entry.text('operation');
    if (operation === '') entry.required('operation', 'must not be empty');
    else entry.requireOneOf('operation', ['Apply', 'Update']);
    const fieldsType = entry.text('fieldsType');
    if (fieldsType !== '' && fieldsType !== 'FieldsV1') {
      entry.invalid('fieldsType', 'must be `FieldsV1`');
    }
    for (const error of managerErrors(entry.text('manager'), entry.at('manager'))) {
      entry.report(error);
    }
    if (utf8Length(entry.text('subresource')) > LONGEST_SUBRESOURCE) {
      entry.tooLong('subresource', LONGEST_SUBRESOURCE);
    }
  }
}

/**
 * Returns an object without the owner references that equal an earlier one, and warns of them.
 *
 * @param when whether mutating admission has run, which may add some
 */
export function withoutDuplicateOwners(
  { warnings }: { readonly warnings: string[] },
  object: ApiObject,
  when: 'sent' | 'admitted',
): ApiObject {
  const { ownerReferences = [] } = object.metadata;
  if (ownerReferences.length < 2) return object;
  const unique = new Map<string, OwnerReference>();
  const duplicates: string[] = [];
  for (const owner of ownerReferences) {
    const { apiVersion, kind, name, uid, controller, blockOwnerDeletion } = owner;
    const key = JSON.stringify([apiVersion, kind, name, uid, controller, blockOwnerDeletion]);
    if (unique.has(key)) duplicates.push(uid);
    else unique.set(key, owner);
  }
  if (duplicates.length === 0) return object;
  const after = when === 'admitted' ? ' after mutating admission happens' : '';
  warnings.push(
    `.metadata.ownerReferences contains duplicate entries${after}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${duplicates.join(', ')}`,
  );
  return { ...object, metadata: { ...object.metadata, ownerReferences: [...unique.values()] } };
}
