import { kubernetesVersion } from '../../hack/envtest/binaries.ts';

/** Returns why a test is skipped without a real kube-apiserver, or false with one. */
export function needsReal(what: string): string | false {
  return (
    process.env['CONTROL_PLANE'] !== 'real' &&
    `SKIPPED: needs CONTROL_PLANE=real, ${what}: npm run test:real`
  );
}

/**
 * Skips a test if the control plane is a kube-apiserver before this minor version. The embedded server
 * behaves like the newest version.
 */
export function skipBefore(minor: number): { readonly skip: string | false } {
  const isReal = ['real', 'cluster'].includes(process.env['CONTROL_PLANE'] ?? '');
  const [, tested] = kubernetesVersion().split('.');
  const isOlder = isReal && Number(tested) < minor;
  return { skip: isOlder && `SKIPPED: requires Kubernetes 1.${minor}` };
}
