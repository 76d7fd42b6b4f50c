/** A promise with its resolvers. */
export class Deferred<T = void> {
  readonly promise: Promise<T>;
  #settled = false;
  readonly #resolve: (value: T | PromiseLike<T>) => void;
  readonly #reject: (reason: unknown) => void;

  constructor() {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.promise = promise;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** True once resolved or rejected. */
  get settled(): boolean {
    return this.#settled;
  }

  resolve(value: T): void {
    this.#settled = true;
    this.#resolve(value);
  }

  reject(reason: unknown): void {
    this.#settled = true;
    this.#reject(reason);
  }
}
