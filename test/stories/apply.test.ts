import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import { applyTo } from '../../src/cli/commands/apply.ts';
import { parseFlags } from '../../src/cli/flags/flag-parser.ts';
import { APPLY_OPTIONS } from '../../src/cli/flags/options.ts';
import { applyManifests } from '../../src/client/apply/apply.ts';
import { parseManifests } from '../../src/client/apply/manifest.ts';
import { readManifests } from '../../src/client/apply/manifest-files.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { crdController } from '../support/program.ts';
import { environmentOf } from '../support/own-program.ts';

const ROOT = join(import.meta.dirname, '../..');
const CRDS = join(ROOT, 'crds');
/** Not those of the library, which have CRDs of their own. */
const EXAMPLES = ['01-count', '02-webapp', '03-at', '04-foo', '05-pod-count'].map((name) =>
  join(ROOT, 'examples', name),
);

describe('The apply command on an empty cluster', () => {
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane();
  });
  after(() => plane.close());

  it('applies all CRDs and their examples with one call', async (t) => {
    // A cluster that the user provides is not empty, and must stay unchanged.
    if (plane.kind === 'given') return t.skip('needs a cluster of its own');
    const program = crdController(
      [
        'apply',
        '-kubeconfig',
        plane.kubeconfigPath,
        '-R',
        ...[CRDS, ...EXAMPLES, '-'].flatMap((path) => ['-f', path]),
      ],
      {},
      '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-stdin"}}',
    );
    const { code, stdout, stderr } = await program.ended();
    assert.equal(code, 0, stderr);
    const lines = stdout.trimEnd().split('\n');
    for (const line of lines) assert.match(line, /^[-a-z.0-9]+\/[-a-z.0-9]+ created$/);
    const comesFirst = lines.map((line) =>
      /^(?:namespace\/|customresourcedefinition\.)/.test(line),
    );
    assert.deepEqual(
      comesFirst,
      comesFirst.toSorted((a, b) => Number(b) - Number(a)),
    );
    for (const name of [
      'customresourcedefinition.apiextensions.k8s.io/counts.demo.mark8s.io',
      'count.demo.mark8s.io/test-count',
      'webapp.jiajunhuang.com/webapp-sample',
      'at.cnat.programming-kubernetes.info/example-at',
      'foo.samplecontroller.k8s.io/example-foo',
      'configmap/from-stdin',
    ]) {
      assert.ok(lines.includes(`${name} created`), name);
    }
    const count = await plane.client.get(COUNTS, { namespace: 'default', name: 'test-count' });
    assert.equal(count.spec.count, 3);
  });

  it('changes nothing when called again, with and without --dry-run', async (t) => {
    if (plane.kind === 'given') return t.skip('needs a cluster of its own');
    const manifests = parseManifests(await readManifests([CRDS, ...EXAMPLES], { recursive: true }));
    for (const dryRun of [false, true]) {
      for await (const result of applyManifests(plane.client, manifests, { dryRun })) {
        const { kind, metadata } = result.manifest.object;
        const what = result.kind === 'applied' ? result.change : result.rejection.message;
        assert.equal(
          what,
          'unchanged',
          `${kind} ${metadata.name}, ${dryRun ? 'dry run' : 'applied'}`,
        );
      }
    }
  });

  it('rejects conflicts, unknown fields and invalid Secrets, without printing secret data', async (t) => {
    if (plane.kind === 'given') return t.skip('needs a cluster of its own');
    const text = [
      '{apiVersion: demo.mark8s.io/v1, kind: Count, metadata: {name: test-count}, spec: {name: nginx, count: 9}}',
      '{apiVersion: demo.mark8s.io/v1, kind: Count, metadata: {name: other}, spec: {name: nginx, cuont: 9}}',
      '{apiVersion: demo.mark8s.io/v1, kind: Cuont, metadata: {name: other}}',
      '{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {password: hunter2}}',
      '{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: 4242}}',
      '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}',
    ].join('\n---\n');
    const printed: string[] = [];
    const lines: string[] = [];
    const code = await applyTo(
      plane.client,
      parseManifests([{ source: 'a.yaml', text }]),
      parseFlags(APPLY_OPTIONS, ['--field-manager=other', '--dry-run=server'], environmentOf())
        .values,
      {
        print: (line) => printed.push(line),
        warn: (line) => lines.push(line),
        signal: new AbortController().signal,
        namespace: 'default',
      },
    );
    assert.equal(code, 1);
    assert.deepEqual(printed, ['configmap/a created (server dry run)']);
    for (const [index, expected] of [
      /^Error: a\.yaml: document 1, line 1: count\.demo\.mark8s\.io\/test-count: a field was set to another value.*: \.spec\.count by "crd-controller-apply"\. .*--force-conflicts/,
      /document 2, line 3: .*cuont/,
      /document 3, line 5: .* did you mean demo\.mark8s\.io\/v1 Count\?$/,
      /document 4, line 7: secret\/s: the server rejected the Secret/,
      /document 5, line 9: secret\/s: the server rejected the Secret/,
      /^Error: 5 of 6 objects were rejected$/,
    ].entries()) {
      assert.match(lines[index] ?? '', expected);
    }
    assert.equal(lines.length, 6);
    assert.doesNotMatch(lines.join('\n'), /hunter2|4242/);
  });
});
