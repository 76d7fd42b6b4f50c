/**
 * What `/version` says. The number is that of the Kubernetes whose behaviour this server follows:
 * clients decide by it what they may ask for.
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
