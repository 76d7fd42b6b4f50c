/** There is no usable configuration. The message names where it was sought, and the next step. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
}

/** The file that `--kubeconfig` or $KUBECONFIG names does not exist. It may be created later. */
export class KubeConfigMissingError extends KubeConfigError {}
