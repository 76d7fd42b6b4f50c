/**
 * Webhooks for admission and for conversion between versions.
 *
 * @module
 */
export type {
  AdmissionEntry,
  AdmissionOperation,
  AdmissionOptions,
  AdmissionRequest,
  AdmissionUser,
  CompleteAdmissionOptions,
  Conversion,
  ConversionEntry,
  ConvertedObject,
  Defaulter,
  DefaultingEntry,
  DefaultingOptions,
  MatchCondition,
  PartialObject,
  Spoke,
  ValidatingEntry,
  Validator,
  WebhookEntries,
} from './webhook/declaration.ts';
export { Webhooks } from './webhook/webhooks.ts';
