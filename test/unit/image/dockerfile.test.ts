import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';

const root = join(import.meta.dirname, '../../..');
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8').replaceAll('\\\n', '');
const instructions = dockerfile
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => line.trim());

/** Returns the files that `file` imports by relative paths, directly and transitively. */
function transitiveImports(file: string, found: Set<string> = new Set()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, specifier = ''] of readFileSync(join(root, file), 'utf8').matchAll(
    /^(?:import|export)\b[^;'`]* from '(\.[^']+)'/gm,
  )) {
    transitiveImports(join(dirname(file), specifier), found);
  }
  return found;
}

describe('the Dockerfile', () => {
  it('starts the program directly, as a numeric user', () => {
    const entrypoint = instructions.find((line) => line.startsWith('ENTRYPOINT')) ?? '';
    const command: readonly string[] = JSON.parse(entrypoint.slice('ENTRYPOINT '.length));
    assert.equal(command[0], 'node');
    assert.equal(command.at(-1), '/app/crd-controller.mjs');
    assert.ok(instructions.includes('USER 65532:65532'));
    // Kubernetes has its own probes, and the program handles signals itself as process 1.
    assert.doesNotMatch(dockerfile, /^HEALTHCHECK|tini|dumb-init/m);
    assert.equal(instructions.filter((line) => line.startsWith('FROM')).length, 2);
  });

  it('pins its base images by digest, with the Node.js version of the tests', () => {
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version: string }>;
    };
    const version = packages['node_modules/node']?.version;
    const images = instructions.flatMap(
      (line) => /^ARG (?:BUILD|RUNTIME)_IMAGE=(.*)$/.exec(line)?.[1] ?? [],
    );
    assert.equal(images.length, 2);
    for (const image of images) {
      const [, tagged] = /^node:([\d.]+)-[a-z-]+@sha256:[0-9a-f]{64}$/.exec(image) ?? [];
      assert.equal(tagged, version, image);
    }
  });

  it('has all source files of the bundle in its build context', () => {
    const kept = readFileSync(join(root, '.dockerignore'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    for (const path of kept) assert.ok(existsSync(join(root, path)), `${path} does not exist`);
    const isKept = (path: string) =>
      kept.some((each) => path === each || path.startsWith(`${each}/`));
    const bundle = readFileSync(join(root, 'hack/bundle.ts'), 'utf8');
    const [, copied = ''] = /for \(const path of \[([^\]]+)\]\) \{\s*cpSync/.exec(bundle) ?? [];
    const sources = [
      ...transitiveImports('hack/bundle.ts'),
      ...Array.from(copied.matchAll(/'([^']+)'/g), ([, path = '']) => path),
      'package.json',
      'package-lock.json',
      'src/cli/main.ts',
    ];
    assert.ok(sources.length > 8, 'the source files were found');
    assert.deepEqual(
      sources.filter((path) => !isKept(path)),
      [],
    );
  });
});
