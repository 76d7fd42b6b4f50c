/**
 * Webhooks for admission and for conversion between versions.
 *
 * @experimental
 * @module
 */
export type { FieldError, FieldErrorReason } from './api/field-error.ts';
export type {
  AdmissionEntry,
  AdmissionOperation,
  AdmissionOptions,
  AdmissionRequest,
  AdmissionUser,
  CelRule,
  CompleteAdmissionOptions,
  Conversion,
  ConversionEntry,
  ConvertedObject,
  Defaulter,
  DefaultingEntry,
  DefaultingOptions,
  MatchCondition,
  PartialObject,
  RuleEntry,
  RuleOptions,
  Spoke,
  ValidatingEntry,
  Validator,
  WebhookEntries,
} from './webhook/declaration.ts';
export {
  AdmissionDenied,
  duplicate,
  forbidden,
  invalid,
  notFound,
  notSupported,
  required,
} from './webhook/field-errors.ts';
export type { AdmissionDeniedOptions } from './webhook/field-errors.ts';
export type { WebhookNames } from './webhook/manifests.ts';
export type { ReviewerDeps, ReviewFunction as WebhookFunction } from './webhook/reviewer.ts';
export { WebhookServer } from './webhook/webhook-server.ts';
export type { WebhookServerOptions } from './webhook/webhook-server.ts';
export { Webhooks } from './webhook/webhooks.ts';
export { caBundleRules } from './webhook/ca-bundle.ts';
export type { CaBundleTargets } from './webhook/ca-bundle.ts';
export { certificateRules } from './webhook/certificates.ts';
