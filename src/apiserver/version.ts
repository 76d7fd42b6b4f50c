/**
 * The response to `/version`: the version of Kubernetes whose behaviour this server follows. Clients
 * use it to choose features.
 */
export const VERSION = {
  major: '1',
  minor: '37',
  gitVersion: 'v1.37.2+crd-controller',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'none',
  platform: `${process.platform}/${process.arch}`,
} as const;
