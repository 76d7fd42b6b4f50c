import { plainText } from '../../../api/field-error.ts';
import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import { canonicalQuantity } from '../../../api/quantity.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { configKeyProblems } from '../shared/config-keys.ts';
import { requireNoBacksteps } from '../shared/local-paths.ts';

const SOURCES = [
  'fieldRef',
  'resourceFieldRef',
  'configMapKeyRef',
  'secretKeyRef',
  'fileKeyRef',
] as const;

const FIELDS_OF_VARIABLES = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];

/** Fields that a file of a volume may have as its content. */
export const FIELDS_OF_FILES: readonly string[] = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];

const RESOURCES = ['limits', 'requests'].flatMap((list) =>
  ['cpu', 'ephemeral-storage', 'memory'].map((name) => `${list}.${name}`),
);

const NOT_A_NAME =
  "a valid environment variable name must consist only of printable ASCII characters other than '='";

/** Reports what is wrong with the environment of a container. */
export function validateEnvironment(container: CheckedObject): void {
  for (const variable of container.items('env')) {
    variable.requireText('name');
    requireVariableName(variable, 'name');
    const sources = variable.get('valueFrom');
    if (sources) validateSources(sources, variable.text('value'));
  }
  for (const source of container.items('envFrom')) {
    requireVariableName(source, 'prefix');
    const present = ['configMapRef', 'secretRef'].filter((field) => source.has(field));
    for (const field of present) {
      source.in(field).requireText('name');
      source.in(field).requireFormat('name', 'dns1123Subdomain');
    }
    // A server reports these errors for the whole list.
    if (present.length === 0) {
      container.invalid('envFrom', 'must specify one of: `configMapRef` or `secretRef`', '');
    } else if (present.length > 1) {
      container.invalid('envFrom', 'may not have more than one field specified at a time', '');
    }
  }
}

function requireVariableName(holder: CheckedObject, field: string): void {
  if (!/^[ -<>-~]*$/.test(holder.text(field))) holder.invalid(field, NOT_A_NAME);
}

function validateSources(sources: CheckedObject, value: string): void {
  const present = SOURCES.filter((field) => sources.has(field));
  for (const field of present) {
    const source = sources.in(field);
    if (field === 'fieldRef') validateFieldRef(source, FIELDS_OF_VARIABLES);
    else if (field === 'resourceFieldRef') validateResourceRef(source);
    else if (field === 'fileKeyRef') validateFileRef(source);
    else validateKeyRef(source);
  }
  if (present.length === 0) {
    const [last = '', ...others] = SOURCES.map((field) => `\`${field}\``).toReversed();
    sources.invalid('', `must specify one of: ${others.toReversed().join(', ')} or ${last}`, '');
  } else if (value !== '') {
    sources.invalid('', 'may not be specified when `value` is not empty', '');
  } else if (present.length > 1) {
    sources.invalid('', 'may not have more than one field specified at a time', '');
  }
}

/** A reference to an entry of a ConfigMap or a Secret. The name may be empty. */
function validateKeyRef(ref: CheckedObject): void {
  const name = ref.text('name');
  ref.problems('name', nameProblems(name, 'dns1123Subdomain'), name);
  const key = ref.text('key');
  if (key === '') ref.required('key');
  else ref.problems('key', configKeyProblems(key));
}

function validateFileRef(ref: CheckedObject): void {
  ref.requireText('key');
  requireVariableName(ref, 'key');
  ref.requireText('volumeName');
  ref.requireFormat('volumeName', 'dns1123Label');
  ref.requireText('path');
  requireNoBacksteps(ref, 'path');
}

/** A reference to a field of the Pod. */
export function validateFieldRef(ref: CheckedObject, supported: readonly string[]): void {
  const path = ref.text('fieldPath');
  ref.requireText('apiVersion');
  if (path === '') {
    ref.required('fieldPath');
    return;
  }
  const version = ref.text('apiVersion');
  if (version !== '' && version !== 'v1') {
    ref.invalid('fieldPath', `error converting fieldPath: unsupported pod version: ${version}`);
    return;
  }
  const [, field, key = ''] = /^(.+?)\['(.*)'\]$/s.exec(path) ?? [];
  if (field === 'metadata.annotations' || field === 'metadata.labels') {
    const lower = field === 'metadata.annotations' ? key.toLowerCase() : key;
    ref.problems('', qualifiedNameProblems(lower), lower);
  } else if (field !== undefined || !isKnownField(path)) {
    const problem = field === undefined ? 'not supported' : 'does not support subscript';
    ref.invalid('fieldPath', `error converting fieldPath: field label ${problem}: ${path}`);
  } else {
    // The older name of the field.
    const current = path === 'spec.host' ? 'spec.nodeName' : path;
    if (supported.includes(current)) return;
    ref.notSupported('fieldPath', supported, plainText(current));
  }
}

const OTHER_FIELDS = ['spec.restartPolicy', 'spec.schedulerName', 'status.phase', 'spec.host'];

/** Whether the path is one of a Pod that can be read at all. */
function isKnownField(path: string): boolean {
  return [...FIELDS_OF_VARIABLES, ...FIELDS_OF_FILES, ...OTHER_FIELDS].includes(path);
}

/** A reference to a limit or a request of a container; in a volume, the container is named. */
export function validateResourceRef(ref: CheckedObject, isInVolume: boolean = false): void {
  const resource = ref.text('resource');
  const [, name = ''] = /^(?:limits|requests)\.(.*)$/s.exec(resource) ?? [];
  const isOfPages = name.startsWith('hugepages-');
  if (isInVolume && ref.text('containerName') === '') ref.required('containerName');
  else if (resource === '') ref.required('resource');
  else if (!RESOURCES.includes(resource) && !isOfPages) {
    ref.notSupported('resource', RESOURCES, plainText(resource));
  }
  const divisor = canonicalQuantity(ref.text('divisor')) ?? '0';
  if (divisor === '0') return;
  if (name === 'cpu') {
    if (divisor === '1' || divisor === '1m') return;
    const why = "only divisor's values 1m and 1 are supported with the cpu resource";
    ref.invalid('divisor', why, resource);
    return;
  }
  if (!isOfPages && !RESOURCES.includes(resource)) return;
  if (/^1(?:k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/.test(divisor)) return;
  const words = { memory: 'memory', 'ephemeral-storage': 'local ephemeral storage' };
  const word = Object.entries(words).find(([key]) => key === name)?.[1] ?? 'hugepages';
  const why = `only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the ${word} resource`;
  ref.invalid('divisor', why, resource);
}
