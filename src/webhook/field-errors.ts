import { fieldError } from '../api/field-error.ts';
import type { FieldError } from '../api/field-error.ts';
import type { StatusDetails } from '../api/status.ts';

/**
 * Returns the error "Invalid value" of a field.
 *
 * @param field `spec.replicas`, `spec.ports[0].name`, `metadata.labels[example.com/team]`
 * @param detail what the value must be
 * @param value the value to show; by default that of the field
 *
 * @example
 * ```ts
 * import { invalid } from 'crd-controller/webhook';
 *
 * console.log(invalid('spec.size', 'must be even', 3).reason); // prints: FieldValueInvalid
 * ```
 */
export function invalid(field: string, detail: string, ...value: [value?: unknown]): FieldError {
  return { reason: 'FieldValueInvalid', field, detail, ...shown(value) };
}

/** Returns the error "Required value" of a field. */
export function required(field: string, detail = ''): FieldError {
  return fieldError.required(field, detail);
}

/** Returns the error "Forbidden" of a field, which must not be set or not be changed. */
export function forbidden(field: string, detail: string): FieldError {
  return fieldError.forbidden(field, detail);
}

/**
 * Returns the error "Duplicate value" of a field.
 *
 * @param value the value to show; by default that of the field
 */
export function duplicate(field: string, ...value: [value?: unknown]): FieldError {
  return { reason: 'FieldValueDuplicate', field, detail: '', ...shown(value) };
}

/**
 * Returns the error "Unsupported value" of a field.
 *
 * @param value the value to show; by default that of the field
 */
export function notSupported(
  field: string,
  supported: readonly string[],
  ...value: [value?: unknown]
): FieldError {
  const { badValue: _, ...error } = fieldError.notSupported(field, undefined, supported);
  return { ...error, ...shown(value) };
}

/**
 * Returns the error "Not found" of a field, which names something that does not exist.
 *
 * @param value the value to show; by default that of the field
 */
export function notFound(field: string, ...value: [value?: unknown]): FieldError {
  return { reason: 'FieldValueNotFound', field, detail: '', ...shown(value) };
}

function shown(value: readonly unknown[]): { badValue?: unknown } {
  return value.length > 0 ? { badValue: value[0] } : {};
}

/** Options of {@link AdmissionDenied}. */
export interface AdmissionDeniedOptions {
  /**
   * HTTP status, 400 to 599.
   * @default 403
   */
  readonly code?: number | undefined;
  /** @default 'Forbidden' if the code is 403, otherwise none */
  readonly reason?: string | undefined;
  /** @default none */
  readonly details?: StatusDetails | undefined;
}

/** Thrown by a function to reject a request. Other errors are failures, for which the failure policy decides. */
export class AdmissionDenied extends Error {
  override readonly name = 'AdmissionDenied';
  readonly code: number;
  readonly reason: string | undefined;
  readonly details: StatusDetails | undefined;

  constructor(message: string, { code = 403, reason, details }: AdmissionDeniedOptions = {}) {
    super(message);
    this.code = code;
    this.reason = reason ?? (code === 403 ? 'Forbidden' : undefined);
    this.details = details;
  }
}
