import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, packageRoot, versionLine } from '../../../../src/cli/program/package.ts';

const LINUX = { versions: { node: '24.21.0' }, platform: 'linux', arch: 'x64' };

test("prints the Node.js version, and the platform in Go's terms", () => {
  assert.equal(
    versionLine({ name: 'crd-controller', version: '1.2.3' }, LINUX),
    'crd-controller v1.2.3 (node v24.21.0, linux/amd64)',
  );
  assert.equal(
    versionLine(
      { name: 'crd-controller', version: '1.2.3' },
      { ...LINUX, platform: 'win32', arch: 'arm64' },
    ),
    'crd-controller v1.2.3 (node v24.21.0, windows/arm64)',
  );
});

test('prints the commit of the build', () => {
  assert.equal(
    versionLine({ name: 'crd-controller', version: '1.2.3', revision: '1a2b3c4d5e6f' }, LINUX),
    'crd-controller v1.2.3 (commit 1a2b3c4, node v24.21.0, linux/amd64)',
  );
});

test('finds the package from its folders only', () => {
  const root = packageRoot();
  assert.equal(packageRoot(new URL('a/b/c.js', root).href).href, root.href);
  assert.match(manifest(root).version, /^\d+\.\d+\.\d+/);
  assert.throws(
    () => packageRoot('file:///nowhere/at/all.js'),
    /No package\.json in a parent folder/,
  );
});
