import { listIn, numberIn, objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import { WebhookCallError } from '../objects/webhook-call.ts';
import type { WebhookCaller, WebhookRequest } from '../objects/webhook-call.ts';
import { equalJson } from '../../api/equal.ts';
import { goQuote } from '../../util/go-quote.ts';
import { isRecord, messageOf } from '../../util/values.ts';
import type { CrdConverter } from '../crd/crd-conversion.ts';
import { decodeObject } from '../request/object-decoder.ts';
import { jsonPatch } from '../patch/json-patch.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { textFromBase64 } from '../../util/bytes.ts';
import { StatusError, badRequest, internalError } from '../objects/status-error.ts';
import { admissionRequest, kindOf } from './admission-request.ts';
import type { Attributes } from './attributes.ts';
import { convertedTo } from '../request/conversion.ts';
import { prepareVersions } from './matching.ts';
import type { Match } from './matching.ts';

/** A webhook that applies to a write. */
export interface Invocation {
  /** Unique among the webhooks of all configurations. */
  readonly id: string;
  readonly webhook: JsonObject;
  readonly match: Match;
}

/** Returns the webhooks of a configuration with ids that are unique within all configurations. */
export function webhooksOf(configuration: StoredObject): (readonly [id: string, JsonObject])[] {
  const { name } = configuration.metadata;
  return objectsIn(configuration, 'webhooks').map((webhook) => [
    `${name}/${textIn(webhook, 'name')}`,
    webhook,
  ]);
}

export interface WebhookDeps {
  readonly client: WebhookCaller;
  readonly converter: CrdConverter;
  /** Returns a new random UUID. */
  readonly uid: () => string;
}

/** A call failed; `failurePolicy` decides. A rejection is a `StatusError`. */
class CallFailure extends Error {
  override readonly name = 'CallFailure';
}

/**
 * Calls the webhooks at the same time.
 *
 * @throws {StatusError} the rejection of the first webhook that rejects the write
 */
export async function callValidating(
  deps: WebhookDeps,
  attributes: Attributes,
  invocations: readonly Invocation[],
): Promise<void> {
  const calls = invocations.map(async (invocation) => {
    await allowedResponse(deps, attributes, invocation, 'validating');
  });
  const results = await Promise.allSettled(calls);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/**
 * Calls one mutating webhook.
 *
 * @returns the object with its changes, in the version of the request; the same value if there are none
 * @throws {StatusError} if it rejects the write
 */
export async function callMutating(
  deps: WebhookDeps,
  attributes: Attributes,
  invocation: Invocation,
): Promise<StoredObject | undefined> {
  const response = await allowedResponse(deps, attributes, invocation, 'mutating');
  const { object } = attributes;
  const encoded = textIn(response, 'patch');
  if (!response || encoded === '') return object;
  const { webhook, match } = invocation;
  const name = goQuote(textIn(webhook, 'name'));
  const operations = operationsOf(encoded);
  if (!Array.isArray(operations)) {
    return applyFailurePolicy(webhook, 'received undecodable patch in webhook response', object);
  }
  if (operations.length === 0) return object;
  if (!object) {
    throw internalError(
      `admission webhook ${name} attempted to modify the object, which is not supported for this operation`,
    );
  }
  const { definition } = attributes;
  let changed: StoredObject;
  try {
    const before = convertedTo(object, definition, match);
    const patched = jsonPatch(before, operations);
    if (!isRecord(patched)) throw new TypeError('the result of the patch is not an object');
    if (equalJson(before, patched)) return object;
    const kind = kindOf(attributes, match);
    changed = decodeObject(patched, { ...match, ...kind }, 'patch').object;
  } catch (error) {
    throw internalError(messageOf(error));
  }
  await prepareVersions(deps.converter, [changed], match, definition);
  return convertedTo(changed, match, definition);
}

function operationsOf(encoded: string): unknown {
  try {
    return JSON.parse(textFromBase64(encoded));
  } catch {
    return undefined;
  }
}

/** Returns the response of a webhook that allows the write, or undefined if its failure is ignored. */
async function allowedResponse(
  deps: WebhookDeps,
  attributes: Attributes,
  invocation: Invocation,
  type: 'mutating' | 'validating',
): Promise<JsonObject | undefined> {
  const { webhook } = invocation;
  const name = textIn(webhook, 'name');
  if (attributes.dryRun && !['None', 'NoneOnDryRun'].includes(textIn(webhook, 'sideEffects'))) {
    throw badRequest(`admission webhook ${goQuote(name)} does not support dry run`);
  }
  let response: JsonObject;
  try {
    response = await callWebhook(deps, attributes, invocation, type);
  } catch (error) {
    if (!(error instanceof CallFailure)) throw error;
    return applyFailurePolicy(webhook, error.message, undefined);
  }
  for (const warning of listIn(response, 'warnings')) {
    if (typeof warning === 'string') attributes.warnings.push(warning);
  }
  if (response['allowed'] === true) return response;
  throw rejection(name, objectIn(response, 'status') ?? {});
}

/**
 * Returns `ignored` if the webhook ignores failures.
 *
 * @throws {StatusError} 500 otherwise
 */
function applyFailurePolicy<T>(webhook: JsonObject, why: string, ignored: T): T {
  if (textIn(webhook, 'failurePolicy') === 'Ignore') return ignored;
  throw internalError(`failed calling webhook ${goQuote(textIn(webhook, 'name'))}: ${why}`);
}

/** Calls a webhook. Rejects with a `CallFailure` if it has no valid response. */
async function callWebhook(
  { client, uid }: WebhookDeps,
  attributes: Attributes,
  { webhook, match }: Invocation,
  type: 'mutating' | 'validating',
): Promise<JsonObject> {
  const version = listIn(webhook, 'admissionReviewVersions').find(
    (each) => each === 'v1' || each === 'v1beta1',
  );
  const request = reviewRequest(uid(), attributes, match);
  const apiVersion = `admission.k8s.io/${version}`;
  let review: JsonObject;
  try {
    review = await client.call({
      client: objectIn(webhook, 'clientConfig') ?? {},
      review: { apiVersion, kind: 'AdmissionReview' },
      request,
      timeoutMs: (numberIn(webhook, 'timeoutSeconds') ?? 10) * 1000,
      signal: attributes.signal,
    });
  } catch (error) {
    if (!(error instanceof WebhookCallError)) throw error;
    throw new CallFailure(`failed to call webhook: ${error.message}`);
  }
  const response = objectIn(review, 'response');
  const problem = responseProblem(review, response, request, apiVersion, type);
  if (problem !== undefined || !response) {
    throw new CallFailure(`received invalid webhook response: ${problem}`);
  }
  return response;
}

function reviewRequest(uid: string, attributes: Attributes, match: Match): WebhookRequest {
  const { definition, object, oldObject } = attributes;
  const converted = (each: StoredObject | undefined) =>
    each ? convertedTo(each, definition, match) : null;
  return {
    uid,
    ...admissionRequest(attributes, match),
    object: converted(object),
    oldObject: converted(oldObject),
  };
}

/** Returns what is wrong with a response, with upstream's text. */
function responseProblem(
  review: JsonObject,
  response: JsonObject | undefined,
  { uid }: WebhookRequest,
  apiVersion: string,
  type: 'mutating' | 'validating',
): string | undefined {
  if (!response) return 'webhook response was absent';
  const hasPatch = textIn(response, 'patch') !== '';
  const hasType = textIn(response, 'patchType') !== '';
  // As upstream, responses of the beta version are not verified.
  if (apiVersion !== 'admission.k8s.io/v1') return undefined;
  if (response['uid'] !== uid) {
    return `expected response.uid=${goQuote(uid)}, got ${goQuote(textIn(response, 'uid'))}`;
  }
  if (review['apiVersion'] !== apiVersion || review['kind'] !== 'AdmissionReview') {
    const got = `${groupVersion(textIn(review, 'apiVersion'))}, Kind=${textIn(review, 'kind')}`;
    return `expected webhook response of ${apiVersion}, Kind=AdmissionReview, got ${got}`;
  }
  if (type === 'validating') {
    if (hasPatch) return 'validating webhook may not return response.patch';
    return hasType ? 'validating webhook may not return response.patchType' : undefined;
  }
  if (hasPatch && !hasType) return 'webhook returned response.patch but not response.patchType';
  if (!hasPatch && hasType) return 'webhook returned response.patchType but not response.patch';
  return undefined;
}

function groupVersion(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
}

/** Returns the rejection with the Status of the webhook. */
function rejection(name: string, result: JsonObject): StatusError {
  const message = textIn(result, 'message');
  const reason = textIn(result, 'reason');
  const deniedBy = `admission webhook ${goQuote(name)} denied the request`;
  const code = Math.max(400, numberIn(result, 'code') ?? 0);
  const details = objectIn(result, 'details');
  return StatusError.failure({
    code,
    message:
      message || reason ? `${deniedBy}: ${message || reason}` : `${deniedBy} without explanation`,
    ...(reason && { reason }),
    ...(details && { details }),
  });
}
