/** The response of `/version`. The server behaves like this version of Kubernetes. */
export const VERSION = {
  major: '1',
  minor: '37',
  emulationMajor: '1',
  emulationMinor: '37',
  minCompatibilityMajor: '1',
  minCompatibilityMinor: '36',
  gitVersion: 'v1.37.2+crd-controller',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'none',
  platform: 'linux/amd64',
} as const;

/** Versions of Kubernetes that `/version` can show. */
export const KUBERNETES_VERSIONS = ['1.35', '1.36', '1.37'] as const;

export type KubernetesVersion = (typeof KUBERNETES_VERSIONS)[number];

/** Returns the response of `/version` for another version. Only the version itself differs. */
export function versionInfo(version: KubernetesVersion): object {
  const [major = '', minor = ''] = version.split('.');
  if (minor === VERSION.minor) return VERSION;
  return {
    ...VERSION,
    major,
    minor,
    emulationMinor: minor,
    minCompatibilityMinor: `${Number(minor) - 1}`,
    gitVersion: `v${version}.0+crd-controller`,
  };
}
