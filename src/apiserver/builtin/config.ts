import { equalJson } from '../../api/equal.ts';
import { goTypeOf, inspectJson } from '../go-json.ts';
import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import { isRecord } from '../../util/values.ts';
import type { KindTraits } from './definition.ts';
import { objectIn, setDefault, textIn } from './fields.ts';
import { Findings } from './findings.ts';

const MAX_BYTES = 1024 * 1024;

export const CONFIG_MAP: KindTraits = {
  hooks: {
    validate: validateConfigMap,
    validateUpdate: (next, previous) => validateImmutable(next, previous, ['data', 'binaryData']),
  },
};

export const SECRET: KindTraits = {
  selectableFields: { type: (secret) => textIn(secret, 'type') },
  hooks: {
    applyDefaults: applySecretDefaults,
    validate: validateSecret,
    validateUpdate: validateSecretUpdate,
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
    typeof value === 'string' ? Buffer.from(value).toString('base64') : value,
  ]);
  secret['data'] = { ...objectIn(secret, 'data'), ...Object.fromEntries(encoded) };
  delete secret['stringData'];
}

function validateConfigMap(map: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const data = objectIn(map, 'data') ?? {};
  const binaryData = objectIn(map, 'binaryData') ?? {};
  for (const key of Object.keys(data)) {
    validateKey('data', key, findings);
    if (Object.hasOwn(binaryData, key)) {
      findings.invalid(`data[${key}]`, key, 'duplicate of key present in binaryData');
    }
  }
  for (const key of Object.keys(binaryData)) validateKey('binaryData', key, findings);
  if (sizeOf(data) + decodedSizeOf(binaryData) > MAX_BYTES) {
    findings.errors.push(fieldError.tooLong('', MAX_BYTES));
  }
  return findings.errors;
}

/** Entries that a secret of a well-known type must have. */
const SECRET_ENTRIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['kubernetes.io/dockercfg', ['.dockercfg']],
  ['kubernetes.io/dockerconfigjson', ['.dockerconfigjson']],
  ['kubernetes.io/ssh-auth', ['ssh-privatekey']],
  ['kubernetes.io/tls', ['tls.crt', 'tls.key']],
]);

function validateSecret(secret: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const data = objectIn(secret, 'data') ?? {};
  for (const key of Object.keys(data)) validateKey('data', key, findings);
  if (decodedSizeOf(data) > MAX_BYTES) findings.errors.push(fieldError.tooLong('data', MAX_BYTES));
  const type = textIn(secret, 'type');
  for (const entry of SECRET_ENTRIES.get(type) ?? []) {
    const isEmpty = entry === 'ssh-privatekey' && textIn(data, entry) === '';
    if (isEmpty || !Object.hasOwn(data, entry)) findings.required(`data[${entry}]`);
    else if (entry.startsWith('.docker')) requireJson(entry, textIn(data, entry), findings);
  }
  if (type === 'kubernetes.io/basic-auth') {
    const entries = ['username', 'password'];
    if (!entries.some((entry) => Object.hasOwn(data, entry))) {
      for (const entry of entries) findings.required(`data[${entry}]`);
    }
  }
  const account = 'kubernetes.io/service-account.name';
  if (type === 'kubernetes.io/service-account-token' && !secret.metadata.annotations?.[account]) {
    findings.required(`metadata.annotations[${account}]`);
  }
  return findings.errors;
}

/** The credentials of registries are a JSON object, which the message does not show. */
function requireJson(entry: string, base64: string, findings: Findings): void {
  const text = Buffer.from(base64, 'base64').toString();
  const { problem } = inspectJson(text);
  const value: unknown = problem === undefined ? JSON.parse(text) : undefined;
  const mismatch = `json: cannot unmarshal ${goTypeOf(value)} into Go value of type map[string]interface {}`;
  if (problem === undefined && (value === null || isRecord(value))) return;
  findings.invalid(`data[${entry}]`, '<secret contents redacted>', problem ?? mismatch);
}

function validateSecretUpdate(secret: StoredObject, previous: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  if (textIn(secret, 'type') !== textIn(previous, 'type')) {
    findings.invalid('type', textIn(secret, 'type'), 'field is immutable');
  }
  return [...findings.errors, ...validateImmutable(secret, previous, ['data'])];
}

function validateImmutable(
  next: StoredObject,
  previous: StoredObject,
  fields: readonly string[],
): readonly FieldError[] {
  const findings = new Findings();
  if (previous['immutable'] !== true) return [];
  const why = 'field is immutable when `immutable` is set';
  if (next['immutable'] !== true) findings.forbidden('immutable', why);
  for (const field of fields) {
    if (!equalJson(next[field] ?? {}, previous[field] ?? {})) findings.forbidden(field, why);
  }
  return findings.errors;
}

function validateKey(field: string, key: string, findings: Findings): void {
  const path = `${field}[${key}]`;
  if (key.length > 253) findings.invalid(path, key, 'must be no more than 253 characters');
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    findings.invalid(
      path,
      key,
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    );
  } else if (key === '.' || key === '..') findings.invalid(path, key, `must not be '${key}'`);
  else if (key.startsWith('..')) findings.invalid(path, key, "must not start with '..'");
}

function sizeOf(data: Readonly<Record<string, unknown>>): number {
  return Object.values(data).reduce<number>(
    (size, value) => size + (typeof value === 'string' ? Buffer.byteLength(value) : 0),
    0,
  );
}

function decodedSizeOf(data: Readonly<Record<string, unknown>>): number {
  return Object.values(data).reduce<number>(
    (size, value) => size + (typeof value === 'string' ? Buffer.byteLength(value, 'base64') : 0),
    0,
  );
}
