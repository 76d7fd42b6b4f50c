import type { Manifest } from '../package.ts';

/** As much of `process` as the version line tells. */
export interface Platform {
  readonly versions: { readonly node: string };
  readonly platform: string;
  readonly arch: string;
}

/** `crd-controller v0.1.0 (commit 1a2b3c4, node v24.21.0, linux/amd64)` */
export function versionLine({ version, gitHead }: Manifest, platform: Platform): string {
  const commit = gitHead ? [`commit ${gitHead.slice(0, 7)}`] : [];
  const details = [...commit, `node v${platform.versions.node}`, goPlatform(platform)];
  return `crd-controller v${version} (${details.join(', ')})`;
}

/** In Go's words, which are those of images and of the rest of Kubernetes. */
function goPlatform({ platform, arch }: Platform): string {
  const system = platform === 'win32' ? 'windows' : platform;
  const processor = arch === 'x64' ? 'amd64' : arch === 'ia32' ? '386' : arch;
  return `${system}/${processor}`;
}
