import { listIn, numberIn, objectIn, textIn } from '../../util/json-value.ts';
import { timestamp } from '../../api/conditions.ts';
import type { Answer, Call } from './call.ts';
import { decodeAs } from '../request/object-decoder.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../../util/json-value.ts';
import type { BoundKind, TokenOrder } from '../auth/service-account-tokens.ts';
import { DEFAULT_AUDIENCES } from '../auth/service-account-tokens.ts';
import { badRequest, conflict, invalidError, notFoundError } from '../objects/status-error.ts';
import { subresourceKind } from '../builtin/shared/subresource-kind.ts';
import { placeObject } from './identity.ts';
import { existing } from './read.ts';

const TOKEN_REQUEST = subresourceKind('authentication.k8s.io', 'v1', 'TokenRequest');
const DEFAULT_SECONDS = 3600;
const SHORTEST_SECONDS = 600;
const LONGEST_SECONDS = 2 ** 32;

/** `POST /token`: issues a token of a ServiceAccount, as `kubectl create token` requests it. */
export async function createToken(call: Call): Promise<Answer> {
  const { backend, info } = call;
  const request = await decodeAs(TOKEN_REQUEST, call);
  placeObject({ ...call, definition: TOKEN_REQUEST }, request);
  const { name: sentName, uid, labels, annotations } = request.metadata;
  if (sentName && sentName !== info.name) {
    const detail = 'must match the service account name if specified';
    throw invalidError(TOKEN_REQUEST, info.name ?? '', [
      fieldError.invalid('metadata.name', sentName, detail),
    ]);
  }
  const account = existing(call);
  if (uid && uid !== account.metadata.uid) {
    const why = `the UID in the token request (${uid}) does not match the UID of the service account (${account.metadata.uid})`;
    throw conflict({ group: TOKEN_REQUEST.group, plural: 'TokenRequest' }, info.name ?? '', why);
  }
  const spec = objectIn(request, 'spec') ?? {};
  const seconds = numberIn(spec, 'expirationSeconds') ?? DEFAULT_SECONDS;
  const reference = objectIn(spec, 'boundObjectRef');
  const errors = requestErrors(spec, seconds, reference);
  if (errors.length > 0) throw invalidError(TOKEN_REQUEST, '', errors);
  const named = listIn(spec, 'audiences').filter((audience) => typeof audience === 'string');
  const audiences = named.length > 0 ? named : DEFAULT_AUDIENCES;
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
    metadata: {
      name,
      namespace,
      uid: account.metadata.uid,
      creationTimestamp: timestamp(now),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
    },
    spec: { audiences, expirationSeconds: seconds, boundObjectRef: reference ?? null },
    status: { token, expirationTimestamp: timestamp(now + seconds * 1000) },
  };
  return { kind: 'json', code: 201, value };
}

function requestErrors(
  spec: JsonObject,
  seconds: number,
  reference: JsonObject | undefined,
): FieldError[] {
  const path = 'spec.expirationSeconds';
  const errors: FieldError[] = [];
  if (seconds < SHORTEST_SECONDS) {
    const detail = 'may not specify a duration less than 10 minutes';
    errors.push(fieldError.invalid(path, seconds, detail));
  }
  if (seconds > LONGEST_SECONDS) {
    const detail = 'may not specify a duration larger than 2^32 seconds';
    errors.push(fieldError.invalid(path, seconds, detail));
  }
  const attestations = objectIn(spec, 'attestations');
  if (reference && isWebhook(reference)) return [...errors, ...webhookErrors(spec, attestations)];
  if (Object.keys(attestations ?? {}).length === 0) return errors;
  const detail = 'attestations may only be specified with a webhook bound object reference';
  return [fieldError.invalid(ATTESTATIONS, attestations, detail)];
}

const ATTESTATIONS = 'spec.attestations';
const API_GROUPS = 'admissionReviewAPIGroups';

/** Validates a token for a webhook, which the server does not issue: its feature gate is alpha. */
function webhookErrors(spec: JsonObject, attestations: JsonObject = {}): FieldError[] {
  const audiences = listIn(spec, 'audiences');
  // As upstream, which has set the default audience before.
  const isSingle = audiences.length <= 1;
  const detail = 'must be length 1 when bound to a webhook config';
  const errors = isSingle ? [] : [fieldError.invalid('spec.audiences', audiences, detail)];
  const [[key, values] = [], ...others] = Object.entries(attestations);
  if (key === undefined || others.length > 0) {
    const problem = `webhook bound requests require exactly one ${API_GROUPS} attestation`;
    const value = spec['attestations'] ?? null;
    return [...errors, fieldError.invalid(ATTESTATIONS, value, problem)];
  }
  const path = `${ATTESTATIONS}[${key}]`;
  if (key !== API_GROUPS) return [...errors, fieldError.notSupported(path, key, [API_GROUPS])];
  const [group, ...more] = Array.isArray(values) ? values : [];
  if (typeof group !== 'string' || more.length > 0) {
    return [...errors, fieldError.invalid(path, values, 'must specify a single value')];
  }
  if (group !== '') return errors;
  return [...errors, fieldError.invalid(`${path}[0]`, group, 'may not be an empty string')];
}

function isWebhook(reference: JsonObject): boolean {
  return (
    textIn(reference, 'apiVersion') === 'admissionregistration.k8s.io/v1' &&
    /^(?:Validating|Mutating)WebhookConfiguration$/.test(textIn(reference, 'kind'))
  );
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
  // As upstream, where an apiVersion that cannot be parsed is none.
  const parts = (apiVersion ?? '').split('/');
  const [version = '', group = ''] = parts.length > 2 ? [] : parts.toReversed();
  const kind = group === '' ? BOUND_KINDS.get(kindName ?? '') : undefined;
  if (!kind) {
    const shown = `${group}/${version}, Kind=${kindName}`;
    const why = isWebhook(reference)
      ? ' (feature gate APIServerWebhookAuthenticationToken is disabled)'
      : '';
    throw badRequest(`cannot bind token to object of type ${shown}${why}`);
  }
  if (!name) throw badRequest('Name parameter required.');
  const { namespace } = account.metadata;
  const resource = { group: '', plural: `${kind}s` };
  const collection = call.backend.store.collection(resource);
  const object = collection.get(kind === 'node' ? undefined : namespace, name);
  if (!object) throw notFoundError(resource, name);
  if (uid && uid !== object.metadata.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict({ group: '', plural: kindName ?? '' }, name, why);
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
