import type { NameFormat } from '../../api/object-names.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError, MAX_FIELD_ERRORS } from '../../api/field-error.ts';
import { nameProblems } from '../../api/object-names.ts';
import type { StoredObject } from './resource-definition.ts';
import { isSet, listIn, numberIn, objectIn, own, textIn } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { CheckSteps } from './check-steps.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * An object or a part of one, with its path and the errors that were found in the whole, in the order in which it
 * was checked. Methods take a field of the part; an empty name stands for the part itself.
 */
export class CheckedObject<T extends Fields = Fields> {
  readonly value: T;
  readonly path: string;
  readonly errors: FieldError[];

  constructor(value: T, path: string = '', errors: FieldError[] = []) {
    this.value = value;
    this.path = path;
    this.errors = errors;
  }

  /** The path of a field. */
  at(field: string): string {
    const isJoined = this.path === '' || field === '' || field.startsWith('[');
    return isJoined ? this.path + field : `${this.path}.${field}`;
  }

  /** The object in a field, or undefined. */
  get(field: string): CheckedObject | undefined {
    const value = objectIn(this.value, field);
    return value && new CheckedObject(value, this.at(field), this.errors);
  }

  /** Returns the object in a field, or an empty one. */
  in(field: string): CheckedObject {
    return this.get(field) ?? new CheckedObject({}, this.at(field), this.errors);
  }

  /** Returns the items of a list. An empty object takes the place of an item that is not an object. */
  items(field: string): CheckedObject[] {
    return this.list(field).map(
      (item, index) =>
        new CheckedObject(isRecord(item) ? item : {}, `${this.at(field)}[${index}]`, this.errors),
    );
  }

  /** Another part whose errors have the path of this one. */
  as(value: Fields): CheckedObject {
    return new CheckedObject(value, this.path, this.errors);
  }

  list(field: string): readonly unknown[] {
    return listIn(this.value, field);
  }

  text(field: string): string {
    return textIn(this.value, field);
  }

  number(field: string): number | undefined {
    return numberIn(this.value, field);
  }

  has(field: string): boolean {
    return isSet(this.value, field);
  }

  required(field: string, detail?: string): void {
    this.report(fieldError.required(this.at(field), detail));
  }

  /** @param value the value in the message */
  invalid(field: string, detail: string, value: unknown = this.#shown(field)): void {
    this.report(fieldError.invalid(this.at(field), value, detail));
  }

  forbidden(field: string, detail: string): void {
    this.report(fieldError.forbidden(this.at(field), detail));
  }

  duplicate(field: string, value: unknown = this.#shown(field)): void {
    this.report(fieldError.duplicate(this.at(field), value));
  }

  notFound(field: string, value: unknown, detail: string = ''): void {
    const reason = 'FieldValueNotFound';
    this.report({ reason, field: this.at(field), badValue: value, detail });
  }

  /** @param value the value in the message */
  notSupported(
    field: string,
    supported: readonly string[],
    value: unknown = this.#shown(field),
  ): void {
    this.report(fieldError.notSupported(this.at(field), value, supported));
  }

  tooLong(field: string, max: number, unit: 'byte' | 'character' = 'byte'): void {
    this.report(fieldError.tooLong(this.at(field), max, unit));
  }

  tooMany(field: string, count: number, max: number): void {
    this.report(fieldError.tooMany(this.at(field), count, max));
  }

  /** Reports the problems of a value, each as an error. */
  problems(field: string, problems: readonly string[], value: unknown = this.#shown(field)): void {
    for (const problem of problems) this.invalid(field, problem, value);
  }

  /** A text must be present. */
  requireText(field: string): void {
    if (this.text(field) === '') this.required(field);
  }

  /** A text, if it is present, must be one of these. */
  requireOneOf(field: string, supported: readonly string[]): void {
    const value = this.text(field);
    if (value !== '' && !supported.includes(value)) this.notSupported(field, supported);
  }

  /** Each item of a list must be one of these. */
  requireEachOf(field: string, supported: readonly string[]): void {
    for (const [index, item] of this.list(field).entries()) {
      if (typeof item === 'string' && supported.includes(item)) continue;
      this.notSupported(`${field}[${index}]`, supported, item);
    }
  }

  /**
   * A name, if it is present, must have this format.
   *
   * @param unit of lengths in messages: declared rules have bytes
   */
  requireFormat(field: string, format: NameFormat, unit?: 'bytes'): void {
    const value = this.text(field);
    if (value !== '') this.problems(field, nameProblems(value, format, unit));
  }

  /** A name must be present and have this format. See `requireFormat`. */
  requireName(field: string, format: NameFormat, unit?: 'bytes'): void {
    this.requireText(field);
    this.requireFormat(field, format, unit);
  }

  /** A text, if the field is present, must be one of these; the empty text is none of them. */
  requireSupported(field: string, supported: readonly string[]): void {
    if (this.has(field) && !supported.includes(this.text(field))) {
      this.notSupported(field, supported);
    }
  }

  /** A list must not have more items. Returns whether it has not. */
  requireAtMost(field: string, max: number): boolean {
    const count = this.list(field).length;
    if (count > max) this.tooMany(field, count, max);
    return count <= max;
  }

  /** A text that is in `taken` is a duplicate; others are added to it. */
  requireUnique(field: string, taken: Set<string>): void {
    const value = this.text(field);
    if (value === '') return;
    if (taken.has(value)) this.duplicate(field);
    taken.add(value);
  }

  /** Numbers, if they are present, must not be negative. */
  requireNonNegative(...fields: readonly string[]): void {
    for (const field of fields) {
      if ((this.number(field) ?? 0) >= 0) continue;
      this.invalid(field, 'must be greater than or equal to 0');
    }
  }

  /** @param port the number, if it is not that of the field */
  requirePort(field: string, port: number = this.number(field) ?? 0): void {
    if (port < 1 || port > 65_535) {
      this.invalid(field, 'must be between 1 and 65535, inclusive', port);
    }
  }

  /** @throws {TooManyErrors} so that the rest of a wide object is not checked */
  report(error: FieldError): void {
    this.errors.push(error);
    if (this.errors.length >= MAX_FIELD_ERRORS) throw new TooManyErrors();
  }

  #shown(field: string): unknown {
    return own(this.value, field) ?? null;
  }
}

class TooManyErrors extends Error {}

/** Runs a check until it ends or has reported the maximum number of errors. */
export function untilTooMany(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof TooManyErrors)) throw error;
  }
}

/** Like `untilTooMany`, in steps. */
export function* stepsUntilTooMany(steps: CheckSteps): CheckSteps {
  try {
    yield* steps;
  } catch (error) {
    if (!(error instanceof TooManyErrors)) throw error;
  }
}

/** A hook that returns the errors which `check` reports, in steps. */
export function checkedInSteps<Rest extends readonly unknown[]>(
  check: (object: CheckedObject<StoredObject>, ...rest: Rest) => CheckSteps,
): (object: StoredObject, ...rest: Rest) => CheckSteps<readonly FieldError[]> {
  return function* (object, ...rest) {
    const whole = new CheckedObject(object);
    yield* stepsUntilTooMany(check(whole, ...rest));
    return whole.errors;
  };
}

/** A hook that returns the errors which `check` reports. */
export function checked<Rest extends readonly unknown[]>(
  check: (object: CheckedObject<StoredObject>, ...rest: Rest) => void,
): (object: StoredObject, ...rest: Rest) => readonly FieldError[] {
  return (object, ...rest) => {
    const whole = new CheckedObject(object);
    untilTooMany(() => check(whole, ...rest));
    return whole.errors;
  };
}
