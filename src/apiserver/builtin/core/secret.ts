import { textFromBase64, toBase64 } from '../../../util/bytes.ts';
import { typedText } from '../../../api/field-error.ts';
import { objectIn, own, setDefault, textIn } from '../../../util/json-value.ts';
import { isRecord } from '../../../util/values.ts';
import type { Secret } from '../../../api/builtin.ts';
import { goTypeOf, inspectJson } from '../../json/go-json.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, field } from '../../table/column.ts';
import {
  MAX_DATA_BYTES,
  base64Length,
  dataSize,
  requireUnchangedData,
  validateDataKey,
} from './config-data.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const SECRET: BuiltinKind = {
  resource: 'secrets',
  revalidatesName: 'object',
  selectableFields: fieldsAt('type'),
  hooks: { applyDefaults: applySecretDefaults },
  validate: validateSecret,
  validateUpdate: (secret, previous) => {
    const type = secret.text('type');
    if (type !== textIn(previous, 'type'))
      secret.invalid('type', 'field is immutable', typedText(type));
    requireUnchangedData(secret, previous, ['data']);
  },
  columns: columns(
    field('Type', 'type'),
    column<Secret>('Data', 'Number of entries.', ({ data = {} }) => Object.keys(data).length),
  ),
  warnings: tlsWarnings,
};

/** What is written in plain text is stored, like all the rest, in base64. */
function applySecretDefaults(secret: ApiObject): void {
  setDefault(secret, 'type', 'Opaque');
  const plain = objectIn(secret, 'stringData');
  if (!plain) return;
  const data = objectIn(secret, 'data') ?? {};
  const encoded = Object.entries(plain)
    // A value of another type is left to validation.
    .filter(([key]) => ['string', 'undefined'].includes(typeof (own(data, key) ?? '')))
    .map(([key, value]) => [key, typeof value === 'string' ? toBase64(value) : value]);
  secret['data'] = { ...data, ...Object.fromEntries(encoded) };
  delete secret['stringData'];
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
  for (const key of Object.keys(data)) validateDataKey(secret, 'data', key);
  if (dataSize(data, base64Length) > MAX_DATA_BYTES) secret.tooLong('data', MAX_DATA_BYTES);
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

/** The first thing that Go misses when it reads the certificate and the key of a Secret. */
function tlsWarnings(secret: CheckedObject): string[] {
  if (secret.text('type') !== 'kubernetes.io/tls') return [];
  const data = secret.in('data');
  const inputs = { certificate: 'tls.crt', key: 'tls.key' };
  const absent = Object.entries(inputs).find(
    ([, key]) => !textFromBase64(data.text(key)).includes('-----BEGIN '),
  );
  return absent ? [`tls: failed to find any PEM data in ${absent[0]} input`] : [];
}
