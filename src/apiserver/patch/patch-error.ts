/**
 * A patch that cannot be applied, and how a server answers it:
 *
 * | kind        | code | when                                                           |
 * | ----------- | ---- | -------------------------------------------------------------- |
 * | `malformed` | 400  | the patch is no patch of its kind, whatever it is applied to   |
 * | `tooLarge`  | 413  | the patch has more operations than a server takes              |
 * | `invalid`   | 422  | it does not fit the object: a failed test, a missing path      |
 * | `untyped`   | 500  | an applied object does not fit its schema, as upstream answers |
 */
export class PatchError extends Error {
  override readonly name = 'PatchError';
  readonly kind: PatchErrorKind;

  constructor(kind: PatchErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }

  /** HTTP status of the answer. */
  get code(): number {
    return CODES[this.kind];
  }
}

export type PatchErrorKind = 'malformed' | 'tooLarge' | 'invalid' | 'untyped';

const CODES: Readonly<Record<PatchErrorKind, number>> = {
  malformed: 400,
  tooLarge: 413,
  invalid: 422,
  untyped: 500,
};
