import { createHash } from 'node:crypto';
import { byText } from './packages.ts';
import type { BundledPackage } from './packages.ts';

export interface SbomOptions {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** Packages that the program itself imports, by name. */
  readonly imports: readonly string[];
  /**
   * Time of creation in seconds since the epoch.
   * @default omitted, for a reproducible document
   */
  readonly sourceDateEpoch?: number | undefined;
}

/**
 * Returns a CycloneDX 1.6 document of the bundled packages. Scanners cannot find them, because the image
 * contains one file, and a list of installed packages would include more. The document depends only on the
 * packages.
 */
export function sbom(packages: readonly BundledPackage[], options: SbomOptions): string {
  const { name, version, license, imports, sourceDateEpoch } = options;
  // One package may be installed in several places.
  const distinct = new Map(packages.map((each) => [purlOf(each), each]));
  const program = purlOf(options);
  const folders = new Map(packages.map(({ folder, ...each }) => [folder, purlOf(each)]));
  const direct = imports.flatMap((each) => folders.get(`node_modules/${each}`) ?? []);
  const content = {
    metadata: {
      ...(sourceDateEpoch === undefined
        ? {}
        : { timestamp: new Date(sourceDateEpoch * 1000).toISOString() }),
      component: {
        type: 'application',
        'bom-ref': program,
        name,
        version,
        purl: program,
        licenses: licenceOf(license),
      },
    },
    components: [...distinct].toSorted(byFirst).map(([purl, each]) => component(purl, each)),
    dependencies: [
      { ref: program, dependsOn: distinctText(direct) },
      ...[...distinct.keys()].toSorted(byText).map((ref) => ({
        ref,
        dependsOn: distinctText(
          packages
            .filter((each) => purlOf(each) === ref)
            .flatMap((each) => each.imports.flatMap((folder) => folders.get(folder) ?? [])),
        ),
      })),
    ],
  };
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}`,
    version: 1,
    ...content,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function component(purl: string, { name, version, license, integrity }: BundledPackage): object {
  const [scope, plain] = name.startsWith('@') ? name.split('/') : [undefined, name];
  return {
    type: 'library',
    'bom-ref': purl,
    ...(scope === undefined ? {} : { group: scope }),
    name: plain,
    version,
    scope: 'required',
    hashes: [hashOf(integrity)],
    licenses: licenceOf(license),
    purl,
  };
}

function purlOf({ name, version }: { readonly name: string; readonly version: string }): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function licenceOf(license: string): object[] {
  return /^[\w.+-]+$/.test(license) ? [{ license: { id: license } }] : [{ expression: license }];
}

/** Converts `sha512-` and base64 to the form of CycloneDX. */
function hashOf(integrity: string): { readonly alg: string; readonly content: string } {
  const [, bits = '', base64 = ''] = /^sha(256|384|512)-([\w+/=]+)$/.exec(integrity) ?? [];
  if (base64 === '') throw new Error(`Invalid subresource integrity: ${integrity}`);
  return { alg: `SHA-${bits}`, content: Buffer.from(base64, 'base64').toString('hex') };
}

/** Returns a custom UUID (version 8) that is derived from the content. */
function uuidOf(content: string): string {
  const bytes = createHash('sha256').update(content).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function distinctText(texts: readonly string[]): string[] {
  return [...new Set(texts)].toSorted(byText);
}

function byFirst([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number {
  return byText(left, right);
}
