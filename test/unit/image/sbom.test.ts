import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { licences } from '../../../hack/image/licences.ts';
import { bundledPackages } from '../../../hack/image/packages.ts';
import { sbom } from '../../../hack/image/sbom.ts';

const INTEGRITY = `sha512-${Buffer.alloc(64, 1).toString('base64')}`;
const PROGRAM = { name: 'program', version: '1.0.0', license: 'Apache-2.0', imports: ['a'] };

/** Returns an esbuild metafile with the sizes of the inputs in the output. */
function metafileOf(inputs: Readonly<Record<string, number>>) {
  const entries = Object.entries(inputs).map(([path, bytesInOutput]) => [path, { bytesInOutput }]);
  const output = { inputs: Object.fromEntries(entries), bytes: 0, imports: [], exports: [] };
  return { inputs: {}, outputs: { 'program.mjs': output } };
}

describe('the packages of a bundle', () => {
  let root: string;
  const install = (folder: string, name: string, version: string, license = 'MIT') => {
    mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, folder, 'package.json'), JSON.stringify({ name, version }));
    writeFileSync(join(root, folder, 'LICENSE'), `${license} of ${name} ${version}`);
  };
  const bundle = () =>
    bundledPackages(
      root,
      metafileOf({
        'src/main.ts': 10,
        'node_modules/a/index.js': 10,
        'node_modules/a/node_modules/@x/b/index.js': 1,
        'node_modules/@x/b/index.js': 5,
        'node_modules/shaken/index.js': 0,
      }),
    );

  before(() => {
    root = mkdtempSync(join(tmpdir(), 'packages-'));
    install('node_modules/a', 'a', '1.0.0');
    install('node_modules/a/node_modules/@x/b', '@x/b', '1.0.0');
    install('node_modules/@x/b', '@x/b', '2.0.0');
    const locked = { integrity: INTEGRITY, license: 'MIT' };
    const packages = {
      '': {},
      'node_modules/a': {
        ...locked,
        version: '1.0.0',
        license: '(MIT OR CC0-1.0)',
        dependencies: { '@x/b': '^1.0.0', absent: '^1.0.0' },
      },
      'node_modules/a/node_modules/@x/b': { ...locked, version: '1.0.0' },
      'node_modules/@x/b': { ...locked, version: '2.0.0', dependencies: { a: '^1.0.0' } },
      'node_modules/shaken': { ...locked, version: '1.0.0' },
      'node_modules/only-installed': { ...locked, version: '1.0.0' },
    };
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages }));
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  it('are those with code in the bundle, each with the packages that it imports', () => {
    assert.deepEqual(
      bundle().map(({ name, version, imports }) => ({ name, version, imports })),
      [
        { name: '@x/b', version: '2.0.0', imports: ['node_modules/a'] },
        { name: 'a', version: '1.0.0', imports: ['node_modules/a/node_modules/@x/b'] },
        { name: '@x/b', version: '1.0.0', imports: [] },
      ],
    );
  });

  it('are listed with purl, licence, hash and dependencies', () => {
    const document = JSON.parse(sbom(bundle(), PROGRAM));
    assert.deepEqual(
      document.components.map(({ purl }: { purl: string }) => purl),
      ['pkg:npm/%40x/b@1.0.0', 'pkg:npm/%40x/b@2.0.0', 'pkg:npm/a@1.0.0'],
    );
    const [scoped, , plain] = document.components;
    assert.deepEqual([scoped.group, scoped.name], ['@x', 'b']);
    assert.deepEqual(scoped.licenses, [{ license: { id: 'MIT' } }]);
    assert.deepEqual(plain.licenses, [{ expression: '(MIT OR CC0-1.0)' }]);
    assert.deepEqual(plain.hashes, [{ alg: 'SHA-512', content: '01'.repeat(64) }]);
    assert.deepEqual(document.dependencies, [
      { ref: 'pkg:npm/program@1.0.0', dependsOn: ['pkg:npm/a@1.0.0'] },
      { ref: 'pkg:npm/%40x/b@1.0.0', dependsOn: [] },
      { ref: 'pkg:npm/%40x/b@2.0.0', dependsOn: ['pkg:npm/a@1.0.0'] },
      { ref: 'pkg:npm/a@1.0.0', dependsOn: ['pkg:npm/%40x/b@1.0.0'] },
    ]);
  });

  it('have the same SBOM in each build, and another one if they change', () => {
    const serial = (text: string): string => JSON.parse(text).serialNumber;
    const first = sbom(bundle(), PROGRAM);
    assert.equal(sbom(bundle(), PROGRAM), first);
    assert.match(serial(first), /^urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-/);
    assert.notEqual(serial(sbom(bundle().slice(1), PROGRAM)), serial(first));
    assert.equal(JSON.parse(first).metadata.timestamp, undefined);
    const dated = JSON.parse(sbom(bundle(), { ...PROGRAM, sourceDateEpoch: 1_790_000_000 }));
    assert.equal(dated.metadata.timestamp, '2026-09-21T14:13:20.000Z');
  });

  it('require a licence text each', () => {
    const text = licences(root, bundle());
    assert.match(text, /^@x\/b 2\.0\.0 \(MIT\)\n\nMIT of @x\/b 2\.0\.0\n/);
    assert.equal(text.split(/^-+$/m).length, 3);
    rmSync(join(root, 'node_modules/a/LICENSE'));
    assert.throws(() => licences(root, bundle()), /node_modules\/a has no text of its licence/);
  });

  it('must have the versions of package-lock.json', () => {
    install('node_modules/a', 'a', '1.0.1');
    assert.throws(bundle, /node_modules\/a is 1\.0\.1, package-lock\.json has 1\.0\.0: run npm ci/);
  });
});
