import type { JsonObject } from '../../util/json-value.ts';

/** The `request` of an AdmissionReview or ConversionReview. */
export interface WebhookRequest extends Readonly<JsonObject> {
  readonly uid: string;
}

/**
 * A webhook in this process: gets the `request` of a review and returns its `response` without the uid. The `patch` of
 * a response may be a list of operations. If it throws, the call has failed, as if the webhook were not reachable.
 */
export type WebhookFunction = (
  request: WebhookRequest,
) => Readonly<JsonObject> | Promise<Readonly<JsonObject>>;

/** One review for a webhook. */
export interface WebhookCall {
  /** `clientConfig` of the webhook. */
  readonly client: JsonObject;
  /** AdmissionReview or ConversionReview. */
  readonly review: { readonly apiVersion: string; readonly kind: string };
  readonly request: WebhookRequest;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A webhook could not be called, or its response is not a review. The message has upstream's text. */
export class WebhookCallError extends Error {
  override readonly name = 'WebhookCallError';
}

/** Calls webhooks, over the network or in this process. */
export interface WebhookCaller {
  /**
   * Returns the review that the webhook answers.
   *
   * @throws {WebhookCallError} if there is no such answer within the timeout
   */
  call(call: WebhookCall): Promise<JsonObject>;
}
