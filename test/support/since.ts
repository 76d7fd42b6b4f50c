import { kubernetesVersion } from '../../hack/envtest/binaries.ts';

/**
 * For cases that Kubernetes answers otherwise before a minor version: they are skipped where an older
 * kube-apiserver is tested. The embedded server answers as the newest.
 */
export function since(minor: number): { readonly skip: string | false } {
  const isReal = ['real', 'cluster'].includes(process.env['CONTROL_PLANE'] ?? '');
  const [, tested] = kubernetesVersion().split('.');
  const isOlder = isReal && Number(tested) < minor;
  return { skip: isOlder && `SKIPPED: of Kubernetes 1.${minor} and later` };
}
