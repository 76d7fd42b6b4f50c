import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';

/** What was found wrong with an object, in the order in which it was looked at. */
export class Findings {
  readonly errors: FieldError[] = [];

  required(path: string, detail?: string): void {
    this.errors.push(fieldError.required(path, detail));
  }

  invalid(path: string, value: unknown, detail: string): void {
    this.errors.push(fieldError.invalid(path, value, detail));
  }

  forbidden(path: string, detail: string): void {
    this.errors.push(fieldError.forbidden(path, detail));
  }

  duplicate(path: string, value: unknown): void {
    this.errors.push(fieldError.duplicate(path, value));
  }

  notSupported(path: string, value: unknown, supported: readonly string[]): void {
    this.errors.push(fieldError.notSupported(path, value, supported));
  }
}
