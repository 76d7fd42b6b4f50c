import { objectIn, setDefault, textIn } from '../../util/json-value.ts';
import { equalJson } from '../../api/equal.ts';
import { fieldsAt } from '../objects/field-path.ts';
import { goTypeOf, inspectJson } from '../json/go-json.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { isRecord } from '../../util/values.ts';
import { fromBase64, textFromBase64, toBase64, utf8Length } from '../../util/bytes.ts';
import { checked } from '../objects/checked-object.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import { configKeyProblems } from './config-keys.ts';
import type { KindTraits } from './definition.ts';

const MAX_BYTES = 1024 * 1024;

export const CONFIG_MAP: KindTraits = {
  hooks: {
    validate: checked(validateConfigMap),
    validateUpdate: checked((next, previous) =>
      validateImmutable(next, previous, ['data', 'binaryData']),
    ),
  },
};

export const SECRET: KindTraits = {
  selectableFields: fieldsAt('type'),
  hooks: {
    applyDefaults: applySecretDefaults,
    validate: checked(validateSecret),
    validateUpdate: checked((secret, previous) => {
      const type = secret.text('type');
      if (type !== textIn(previous, 'type')) secret.invalid('type', 'field is immutable', type);
      validateImmutable(secret, previous, ['data']);
    }),
  },
};

export const SERVICE_ACCOUNT: KindTraits = {
  returnsDeleted: true,
};

/** What is written in plain text is stored, like all the rest, in base64. */
function applySecretDefaults(secret: ApiObject): void {
  setDefault(secret, 'type', 'Opaque');
  const plain = objectIn(secret, 'stringData');
  if (!plain) return;
  const encoded = Object.entries(plain).map(([key, value]) => [
    key,
    typeof value === 'string' ? toBase64(value) : value,
  ]);
  secret['data'] = { ...objectIn(secret, 'data'), ...Object.fromEntries(encoded) };
  delete secret['stringData'];
}

function validateConfigMap(map: CheckedObject): void {
  const data = map.in('data').value;
  const binaryData = map.in('binaryData').value;
  for (const key of Object.keys(data)) {
    validateKey(map, 'data', key);
    if (Object.hasOwn(binaryData, key)) {
      map.invalid(`data[${key}]`, 'duplicate of key present in binaryData', key);
    }
  }
  for (const key of Object.keys(binaryData)) validateKey(map, 'binaryData', key);
  const size = sizeOf(data, utf8Length) + sizeOf(binaryData, base64Length);
  if (size > MAX_BYTES) map.tooLong('[]', MAX_BYTES);
}

/** Entries that a secret of a well-known type must have. */
const SECRET_ENTRIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['kubernetes.io/dockercfg', ['.dockercfg']],
  ['kubernetes.io/dockerconfigjson', ['.dockerconfigjson']],
  ['kubernetes.io/ssh-auth', ['ssh-privatekey']],
  ['kubernetes.io/tls', ['tls.crt', 'tls.key']],
]);

function validateSecret(secret: CheckedObject<StoredObject>): void {
  const data = secret.in('data').value;
  for (const key of Object.keys(data)) validateKey(secret, 'data', key);
  if (sizeOf(data, base64Length) > MAX_BYTES) secret.tooLong('data', MAX_BYTES);
  const type = secret.text('type');
  for (const entry of SECRET_ENTRIES.get(type) ?? []) {
    const isEmpty = entry === 'ssh-privatekey' && textIn(data, entry) === '';
    if (isEmpty || !Object.hasOwn(data, entry)) secret.required(`data[${entry}]`);
    else if (entry.startsWith('.docker')) requireJson(secret, entry, textIn(data, entry));
  }
  if (type === 'kubernetes.io/basic-auth') {
    const entries = ['username', 'password'];
    if (!entries.some((entry) => Object.hasOwn(data, entry))) {
      for (const entry of entries) secret.required(`data[${entry}]`);
    }
  }
  const account = 'kubernetes.io/service-account.name';
  const { annotations } = secret.value.metadata;
  if (type === 'kubernetes.io/service-account-token' && !annotations?.[account]) {
    secret.required(`metadata.annotations[${account}]`);
  }
}

/** The credentials of registries are a JSON object, which the message does not show. */
function requireJson(secret: CheckedObject, entry: string, base64: string): void {
  const text = textFromBase64(base64);
  const { problem } = inspectJson(text);
  const value: unknown = problem === undefined ? JSON.parse(text) : undefined;
  const mismatch = `json: cannot unmarshal ${goTypeOf(value)} into Go value of type map[string]interface {}`;
  if (problem === undefined && (value === null || isRecord(value))) return;
  secret.invalid(`data[${entry}]`, problem ?? mismatch, '<secret contents redacted>');
}

function validateImmutable(
  next: CheckedObject,
  previous: StoredObject,
  fields: readonly string[],
): void {
  if (previous['immutable'] !== true) return;
  const why = 'field is immutable when `immutable` is set';
  if (next.value['immutable'] !== true) next.forbidden('immutable', why);
  for (const field of fields) {
    if (!equalJson(next.value[field] ?? {}, previous[field] ?? {})) next.forbidden(field, why);
  }
}

function validateKey(object: CheckedObject, field: string, key: string): void {
  object.problems(`${field}[${key}]`, configKeyProblems(key), key);
}

/** Returns the number of bytes of the values. */
function sizeOf(
  data: Readonly<Record<string, unknown>>,
  sizeOfText: (text: string) => number,
): number {
  return Object.values(data)
    .filter((value) => typeof value === 'string')
    .reduce((size, value) => size + sizeOfText(value), 0);
}

function base64Length(text: string): number {
  return fromBase64(text).byteLength;
}
