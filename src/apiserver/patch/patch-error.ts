/**
 * A patch that cannot be applied, and how a server answers it:
 *
 * | kind          | answer | when                                                         |
 * | ------------- | ------ | ------------------------------------------------------------ |
 * | `malformed`   | 400    | the patch is no patch of its kind, whatever it is applied to |
 * | `invalid`     | 422    | it does not fit the object: a failed test, a missing path    |
 */
export class PatchError extends Error {
  override readonly name = 'PatchError';
  readonly kind: 'malformed' | 'invalid';

  constructor(kind: PatchError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }

  /** HTTP status of the answer. */
  get code(): 400 | 422 {
    return this.kind === 'malformed' ? 400 : 422;
  }
}
