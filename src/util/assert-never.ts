/** Makes the compiler prove that a switch is exhaustive; throws if untyped data proves it wrong. */
export function assertNever(value: never): never {
  throw new TypeError(`Unexpected value: ${JSON.stringify(value)}`);
}
