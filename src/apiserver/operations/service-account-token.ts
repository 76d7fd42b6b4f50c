import { listIn, numberIn, objectIn, textIn } from '../../util/json-value.ts';
import { timestamp } from '../../api/conditions.ts';
import type { Answer, Call } from './call.ts';
import { readObject } from '../request/request-body.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../../util/json-value.ts';
import type { BoundKind, TokenOrder } from '../auth/service-account-tokens.ts';
import { DEFAULT_AUDIENCES } from '../auth/service-account-tokens.ts';
import { badRequest, conflict, invalid, notFound } from '../objects/status-error.ts';
import { existing } from './read.ts';

const TOKEN_REQUEST = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenRequest',
} as const;

const DEFAULT_SECONDS = 3600;
const SHORTEST_SECONDS = 600;
const LONGEST_SECONDS = 2 ** 32;

/** `POST /token`: issues a token of a ServiceAccount, as `kubectl create token` requests it. */
export function createToken(call: Call): Answer {
  const { backend, info } = call;
  const request = readObject(call.request, TOKEN_REQUEST);
  const metadata = objectIn(request, 'metadata') ?? {};
  for (const field of ['name', 'namespace'] as const) {
    const value = textIn(metadata, field);
    if (value === '' || value === info[field]) continue;
    const detail = `must match the service account ${field} if specified`;
    throw invalid(TOKEN_REQUEST, info.name ?? '', [
      fieldError.invalid(`metadata.${field}`, value, detail),
    ]);
  }
  const account = existing(call);
  const uid = textIn(metadata, 'uid');
  if (uid !== '' && uid !== account.metadata.uid) {
    const why = `the UID in the token request (${uid}) does not match the UID of the service account (${account.metadata.uid})`;
    throw conflict({ group: TOKEN_REQUEST.group, plural: 'TokenRequest' }, info.name ?? '', why);
  }
  const spec = objectIn(request, 'spec') ?? {};
  const seconds = numberIn(spec, 'expirationSeconds') ?? DEFAULT_SECONDS;
  const errors = expirationErrors(seconds);
  if (errors.length > 0) throw invalid(TOKEN_REQUEST, '', errors);
  const named = listIn(spec, 'audiences').filter((audience) => typeof audience === 'string');
  const audiences = named.length > 0 ? named : DEFAULT_AUDIENCES;
  const reference = objectIn(spec, 'boundObjectRef');
  const now = backend.clock.now();
  const token = backend.tokens.issue({
    account,
    audiences,
    seconds,
    bound: reference ? boundObjects(call, account, reference) : {},
    now,
    id: backend.uid(),
  });
  const { name, namespace } = account.metadata;
  const value = {
    kind: TOKEN_REQUEST.kind,
    apiVersion: `${TOKEN_REQUEST.group}/${TOKEN_REQUEST.version}`,
    metadata: { name, namespace, uid: account.metadata.uid, creationTimestamp: timestamp(now) },
    spec: { audiences, expirationSeconds: seconds, boundObjectRef: reference ?? null },
    status: { token, expirationTimestamp: timestamp(now + seconds * 1000) },
  };
  return { kind: 'json', code: 201, value };
}

function expirationErrors(seconds: number): FieldError[] {
  const path = 'spec.expirationSeconds';
  if (seconds < SHORTEST_SECONDS) {
    return [fieldError.invalid(path, seconds, 'may not specify a duration less than 10 minutes')];
  }
  if (seconds <= LONGEST_SECONDS) return [];
  return [fieldError.invalid(path, seconds, 'may not specify a duration larger than 2^32 seconds')];
}

/**
 * Returns the claims for the object that the token is bound to.
 *
 * @throws {StatusError} 404 if it does not exist, 400 if it cannot be bound, 409 if its uid is another
 */
function boundObjects(
  call: Call,
  account: StoredObject,
  reference: JsonObject,
): TokenOrder['bound'] {
  const [kindName, apiVersion, name, uid] = ['kind', 'apiVersion', 'name', 'uid'].map((field) =>
    textIn(reference, field),
  );
  const [version = '', group = ''] = (apiVersion ?? '').split('/').toReversed();
  const kind = group === '' ? BOUND_KINDS.get(kindName ?? '') : undefined;
  if (!kind) {
    const shown = `${group}/${version}, Kind=${kindName}`;
    throw badRequest(`cannot bind token to object of type ${shown}`);
  }
  const { namespace } = account.metadata;
  const resource = { group: '', plural: `${kind}s` };
  const collection = call.backend.store.collection(resource);
  const object = collection.get(kind === 'node' ? undefined : namespace, name ?? '');
  if (!object) throw notFound(resource, name ?? '');
  if (uid && uid !== object.metadata.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict({ group: '', plural: kindName ?? '' }, name ?? '', why);
  }
  const bound = { [kind]: { name: object.metadata.name, uid: object.metadata.uid } };
  if (kind !== 'pod') return bound;
  const spec = objectIn(object, 'spec');
  const accountName = account.metadata.name;
  if (textIn(spec, 'serviceAccountName') !== accountName) {
    throw badRequest(
      `cannot bind token for serviceaccount "${accountName}" to pod running with different serviceaccount name.`,
    );
  }
  const nodeName = textIn(spec, 'nodeName');
  if (nodeName === '') return bound;
  const node = call.backend.store
    .collection({ group: '', plural: 'nodes' })
    .get(undefined, nodeName);
  return { ...bound, node: { name: nodeName, uid: node?.metadata.uid ?? '' } };
}

const BOUND_KINDS: ReadonlyMap<string, BoundKind> = new Map([
  ['Pod', 'pod'],
  ['Node', 'node'],
  ['Secret', 'secret'],
]);
