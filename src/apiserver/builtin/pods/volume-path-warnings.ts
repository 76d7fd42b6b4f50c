import { goQuote } from '../../../util/go-quote.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';

/** A file of a volume, and the source that it has in messages. */
interface VolumeFile {
  readonly path: string;
  readonly source: string;
}

/** Maximum number of pairs of paths that are compared; a response has few warnings. */
const MAX_COMPARISONS = 10_000;

/** Returns the warnings of a volume with files that replace each other. */
export function pathWarnings(volume: CheckedObject): string[] {
  const name = goQuote(volume.text('name'));
  const warn = (kind: string, files: readonly VolumeFile[], former = new VolumeFiles()) =>
    former.add(files).map((overlap) => `volume ${name} (${kind}): overlapping paths: ${overlap}`);
  const configMap = volume.in('configMap');
  const secret = volume.in('secret');
  const sources = volume.in('projected').items('sources');
  const projected = new VolumeFiles();
  return [
    ...warn(`ConfigMap ${goQuote(configMap.text('name'))}`, filesOf(configMap, '')),
    ...warn(`Secret ${goQuote(secret.text('secretName'))}`, filesOf(secret, '')),
    ...warn('DownwardAPI', filesOf(volume.in('downwardAPI'), '')),
    ...sources.flatMap((source) =>
      Object.keys(source.value).length === 0
        ? [`volume ${name} (Projected) has no sources provided`]
        : warn('Projected', projectedFiles(source), projected),
    ),
  ];
}

function filesOf(holder: CheckedObject, source: string): VolumeFile[] {
  return holder.items('items').map((item) => ({ path: item.text('path'), source }));
}

function projectedFiles(source: CheckedObject): VolumeFile[] {
  const bundle = source.in('clusterTrustBundle');
  const certificate = source.in('podCertificate');
  const bundleName = goQuote(bundle.text('name') || bundle.text('signerName'));
  return [
    ...filesOf(source.in('configMap'), `ConfigMap ${goQuote(source.in('configMap').text('name'))}`),
    ...filesOf(source.in('secret'), `Secret ${goQuote(source.in('secret').text('name'))}`),
    ...filesOf(source.in('downwardAPI'), 'DownwardAPI'),
    ...[
      { path: source.in('serviceAccountToken').text('path'), source: 'ServiceAccountToken' },
      { path: bundle.text('path'), source: `ClusterTrustBundle ${bundleName}` },
      { path: certificate.text('certificateChainPath'), source: 'PodCertificate chain' },
      { path: certificate.text('keyPath'), source: 'PodCertificate key' },
      {
        path: certificate.text('credentialBundlePath'),
        source: 'PodCertificate credential bundle',
      },
    ].filter(({ path }) => path !== ''),
  ];
}

/** The files of a volume so far. */
class VolumeFiles {
  readonly #files: VolumeFile[] = [];
  #comparisons = 0;

  /** Returns the pairs of files of which one is the other, or is in its folder. */
  add(files: readonly VolumeFile[]): string[] {
    const found: string[] = [];
    for (const { path, source } of files) {
      const file = { path: path.replace(/\/+$/, ''), source };
      if (file.path === '') continue;
      for (const other of this.#files) {
        if (++this.#comparisons > MAX_COMPARISONS) return found;
        const [one, two] = [`${file.path}/`, `${other.path}/`];
        if (one.startsWith(two) || two.startsWith(one)) {
          found.push(`${described(file)} with ${described(other)}`);
        }
      }
      this.#files.push(file);
    }
    return found;
  }
}

function described({ path, source }: VolumeFile): string {
  return source === '' ? goQuote(path) : `${goQuote(path)} (${source})`;
}
