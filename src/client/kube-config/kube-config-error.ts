/** There is no usable configuration. The message names where it was sought, and the next step. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
}
