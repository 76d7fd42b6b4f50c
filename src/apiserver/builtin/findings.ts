import { nameProblems } from '../object-names.ts';
import type { NameFormat } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { numberIn, textIn } from './fields.ts';

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

  notFound(path: string, value: unknown): void {
    this.errors.push({ reason: 'FieldValueNotFound', field: path, badValue: value, detail: '' });
  }

  /** A text must be there. */
  requireText(parent: JsonObject, field: string, path: string): void {
    if (textIn(parent, field) === '') this.required(`${path}.${field}`);
  }

  /** A text, if it is there, must be one of these. */
  requireOneOf(
    parent: JsonObject,
    field: string,
    supported: readonly string[],
    path: string,
  ): void {
    const value = textIn(parent, field);
    if (value === '' || supported.includes(value)) return;
    this.notSupported(`${path}.${field}`, value, supported);
  }

  /** A name, if it is there, must have this format. */
  requireFormat(parent: JsonObject, field: string, format: NameFormat, path: string): void {
    const value = textIn(parent, field);
    if (value === '') return;
    for (const problem of nameProblems(value, format)) {
      this.invalid(`${path}.${field}`, value, problem);
    }
  }

  /** A name that is in `taken` already is one too many; others are entered. */
  requireUnique(parent: JsonObject, field: string, taken: Set<string>, path: string): void {
    const value = textIn(parent, field);
    if (value === '') return;
    if (taken.has(value)) this.duplicate(`${path}.${field}`, value);
    taken.add(value);
  }

  /** A number, if it is there, must not be negative. */
  requireNonNegative(parent: JsonObject, field: string, path: string): void {
    const value = numberIn(parent, field) ?? 0;
    if (value < 0) this.invalid(`${path}.${field}`, value, 'must be greater than or equal to 0');
  }

  requirePort(port: number, path: string): void {
    if (port < 1 || port > 65_535) {
      this.invalid(path, port, 'must be between 1 and 65535, inclusive');
    }
  }
}
