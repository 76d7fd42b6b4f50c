import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import { EventBroadcaster } from '../../src/record/event-broadcaster.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/logger.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { cellsOf, findKubectl, Kubectl } from '../support/kubectl.ts';
import { TlsCluster } from '../support/tls-cluster.ts';
import { countDraft } from '../support/test-cluster.ts';

const ROOT = join(import.meta.dirname, '../..');
const CRDS = join(ROOT, 'crds');
const EXAMPLE = join(ROOT, 'examples/01-count');

const program = findKubectl();
const skip = program === undefined && 'kubectl not found: add it to the PATH, or set $KUBECTL';
if (skip) console.warn(`SKIPPED: ${import.meta.filename}: ${skip}`);

/** Tests run in order on one Count: each starts in the final state of the previous one. */
describe('A user with an unmodified kubectl', { skip, timeout: 120_000 }, () => {
  let plane: ControlPlane;
  let cluster: TlsCluster;
  let kubectl: Kubectl;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'kubectl-story-'));
    plane = await startControlPlane({ cluster: {} });
    cluster = await TlsCluster.create(plane);
    const { namespace } = cluster;
    kubectl = new Kubectl({ program: program ?? '', kubeconfig: plane.kubeconfigPath, namespace });
  });
  after(async () => {
    await cluster.end();
    await plane.close();
    kubectl.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Waits with kubectl until the Count is Ready in its current generation, with `pods` Pods. */
  const ready = async (pods: number) => {
    await kubectl.run('wait', '--for=condition=Ready', 'count/test-count', '--timeout=30s');
    const count = await cluster.count();
    assert.equal(count.status?.readyReplicas, pods);
  };

  it('apply -f crds/ and wait install the kind', async () => {
    const applied = await kubectl.run('apply', '-f', CRDS);
    assert.match(
      applied,
      /^customresourcedefinition\.apiextensions\.k8s\.io\/counts\.demo\.mark8s\.io (created|configured|unchanged)$/m,
    );
    const waited = await kubectl.run('wait', '--for=condition=Established', 'crd', '--all');
    assert.match(waited, /\/counts\.demo\.mark8s\.io condition met\n/);
    cluster.startDaemon();
  });

  it('auth can-i and auth whoami report the user and its permissions', async () => {
    const [may, path, all, self] = await Promise.all([
      kubectl.run('auth', 'can-i', 'delete', 'counts.demo.mark8s.io'),
      kubectl.run('auth', 'can-i', 'get', '/metrics'),
      kubectl.run('auth', 'can-i', '--list', '--no-headers'),
      kubectl.run('auth', 'whoami', '-o', 'jsonpath={.status.userInfo.groups}'),
    ]);
    assert.deepEqual([may, path], ['yes\n', 'yes\n']);
    assert.match(all, /^\*\.\* +\[\] +\[\] +\[\*\]$/m);
    assert.deepEqual(JSON.parse(self), ['system:masters', 'system:authenticated']);
    const jane = await kubectl.start(['auth', 'can-i', 'list', 'pods', '--as=jane']).ended();
    assert.deepEqual([jane.code, jane.stdout], [1, 'no\n']);
  });

  it('apply creates the Count, get shows it and its Pods', async () => {
    const applied = await kubectl.run('apply', '-f', EXAMPLE);
    assert.equal(applied, 'count.demo.mark8s.io/test-count created\n');
    await ready(3);
    assert.deepEqual(cellsOf(await kubectl.run('get', 'count,pods')), [
      ['NAME', 'DESIRED', 'READY', 'HEALTHY', 'AGE'],
      ['count.demo.mark8s.io/test-count', '3', '3', 'true', 'AGE'],
      [''],
      ['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE'],
      ['pod/test-count-0', '1/1', 'Running', '0', 'AGE'],
      ['pod/test-count-1', '1/1', 'Running', '0', 'AGE'],
      ['pod/test-count-2', '1/1', 'Running', '0', 'AGE'],
    ]);
  });

  it('get finds it by short name, category, label and field, in every output format', async () => {
    const [short, category, wide, yaml, jsonpath, names] = await Promise.all([
      kubectl.run('get', 'ct'),
      kubectl.run('get', 'demo', '--no-headers'),
      kubectl.run('get', 'count', '-o', 'wide'),
      kubectl.run('get', 'count', '-o', 'yaml'),
      kubectl.run('get', 'count', 'test-count', '-o', 'jsonpath={.status.healthy} {.spec.name}'),
      kubectl.run('get', 'count,pods', '-o', 'name'),
    ]);
    assert.deepEqual(cellsOf(short), [
      ['NAME', 'DESIRED', 'READY', 'HEALTHY', 'AGE'],
      ['test-count', '3', '3', 'true', 'AGE'],
    ]);
    assert.match(category, /test-count +3 +3 +true/);
    assert.deepEqual(cellsOf(wide), [
      ['NAME', 'DESIRED', 'READY', 'HEALTHY', 'APP', 'REASON', 'AGE'],
      ['test-count', '3', '3', 'true', 'nginx', 'PodsReady', 'AGE'],
    ]);
    assert.match(
      yaml,
      /^apiVersion: v1\nitems:\n- apiVersion: demo\.mark8s\.io\/v1\n {2}kind: Count/,
    );
    assert.match(yaml, /\n {2}spec:\n {4}count: 3\n {4}name: nginx\n {2}status:\n/);
    assert.match(yaml, /\nkind: List\nmetadata:\n {2}resourceVersion: ""\n$/);
    assert.equal(jsonpath, 'true nginx');
    assert.equal(
      names,
      'count.demo.mark8s.io/test-count\npod/test-count-0\npod/test-count-1\npod/test-count-2\n',
    );
  });

  it('get selects by label and by field', async () => {
    const label = 'app.kubernetes.io/instance';
    const [labelled, others, named, running, wrong] = await Promise.all([
      kubectl.run('get', 'pods', '-l', `${label}=test-count`, '-o', 'name'),
      kubectl.run('get', 'pods', '-l', `${label} notin (test-count)`, '-o', 'name'),
      kubectl.run('get', 'count', '--field-selector', 'metadata.name=test-count', '-o', 'name'),
      kubectl.run('get', 'pods', '--field-selector=status.phase!=Running', '-o', 'name'),
      kubectl.start(['get', 'count', '--field-selector=spec.name=nginx']).ended(),
    ]);
    assert.equal(labelled, 'pod/test-count-0\npod/test-count-1\npod/test-count-2\n');
    assert.equal(others, '');
    assert.equal(named, 'count.demo.mark8s.io/test-count\n');
    assert.equal(running, '');
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /field label not supported: spec\.name/);
  });

  it('describe and get events show its events', async () => {
    await cluster.until('the event', async () =>
      (await cluster.events()).includes('Synced Count synced successfully'),
    );
    const [described, events] = await Promise.all([
      kubectl.run('describe', 'count', 'test-count'),
      kubectl.run('get', 'events', '--field-selector=involvedObject.kind=Count', '--no-headers'),
    ]);
    assert.match(described, /^Name: +test-count\nNamespace: /);
    assert.match(described, /\n {4}Reason: +PodsReady\n/);
    assert.match(
      described,
      /\n {2}Normal +Synced +\S+ +count-controller +Count synced successfully\n/,
    );
    assert.deepEqual(
      cellsOf(events)
        .map((cells) => cells.slice(1).join(' '))
        .toSorted(),
      [
        'Normal SuccessfulCreate count/test-count Created pod: test-count-0',
        'Normal SuccessfulCreate count/test-count Created pod: test-count-1',
        'Normal SuccessfulCreate count/test-count Created pod: test-count-2',
        'Normal Synced count/test-count Count synced successfully',
      ],
    );
  });

  it('describe and events show events of events.k8s.io with their series', async () => {
    const { client, at } = cluster;
    const abort = new AbortController();
    const broadcaster = new EventBroadcaster(
      { client, clock: systemClock, log: silentLogger },
      { apiVersion: 'events.k8s.io/v1' },
    );
    const running = broadcaster.run(abort.signal);
    const recorder = broadcaster.recorder('series-controller');
    const count = await client.get(COUNTS, at);
    for (let i = 0; i < 3; i++) {
      await recorder.normal(count, 'Repeated', 'It was repeated').attempted();
    }
    abort.abort();
    await running;
    const [described, events] = await Promise.all([
      kubectl.run('describe', 'count', 'test-count'),
      kubectl.run('events', '--for=count/test-count', '--no-headers'),
    ]);
    assert.match(
      described,
      /\n {2}Normal +Repeated +\S+ \(x3 over \S+\) +series-controller +It was repeated\n/,
    );
    assert.match(
      events,
      /\(x3 over \S+\) +Normal +Repeated +\S*count\S*\/test-count +It was repeated/i,
    );
  });

  it('explain documents its fields', async () => {
    const [spec, replicas] = await Promise.all([
      kubectl.run('explain', 'count.spec'),
      kubectl.run('explain', 'ct.spec.count'),
    ]);
    assert.match(
      spec,
      /^GROUP: +demo\.mark8s\.io\nKIND: +Count\nVERSION: +v1\n\nFIELD: spec <Object>\n/,
    );
    assert.match(spec, /\nDESCRIPTION:\n {4}\w/);
    assert.match(spec, /\nFIELDS:\n {2}count\t<integer>\n {4}\w/);
    assert.match(spec, /\n {2}name\t<string> -required-\n/);
    assert.match(replicas, /\nFIELD: count <integer>\n/);
  });

  it('a second apply changes nothing, and diff reports no difference', async () => {
    assert.equal(
      await kubectl.run('apply', '-f', EXAMPLE),
      'count.demo.mark8s.io/test-count unchanged\n',
    );
    assert.equal(await kubectl.run('diff', '-f', EXAMPLE), '');
    const changed = await kubectl
      .start(['diff', '-f', '-'], {
        stdin: JSON.stringify(countDraft(cluster.namespace, { count: 4 })),
      })
      .ended();
    assert.equal(changed.code, 1, changed.stderr);
    assert.match(changed.stdout, /\n- {2}generation: 1\n\+ {2}generation: 2\n/);
    assert.match(changed.stdout, /\n- {2}count: 3\n\+ {2}count: 4\n/);
  });

  it('get --watch shows changes while it is scaled', async () => {
    const watch = kubectl.start(['get', 'count', 'test-count', '--watch']);
    await watch.printed(/^test-count +3 +3 +true /m);
    const scaled = await kubectl.run('scale', '--replicas=5', 'count/test-count');
    assert.equal(scaled, 'count.demo.mark8s.io/test-count scaled\n');
    await kubectl.run('wait', '--for=jsonpath={.status.readyReplicas}=5', 'count/test-count');
    await watch.printed(/^test-count +5 +5 +true /m);
    watch.child.kill();
    await watch.ended();
    await cluster.untilReady(5);
    const lines = cellsOf(watch.stdout).slice(1);
    assert.deepEqual(lines[0]?.slice(0, 4), ['test-count', '3', '3', 'true']);
    assert.ok(
      lines.some(([, desired, , healthy]) => desired === '5' && healthy === 'false'),
      'not healthy while Pods are missing',
    );
    const stale = await kubectl
      .start(['scale', '--current-replicas=3', '--replicas=1', 'count/test-count'])
      .ended();
    assert.equal(stale.code, 1);
    assert.match(stale.stderr, /Expected replicas to be 3, was 5/);
  });

  it('edit opens it in an editor and saves the change', async () => {
    const editor = join(folder, 'editor');
    writeFileSync(editor, '#!/bin/sh\nsed -i.bak "s/^  count: 5$/  count: 2/" "$1"\n');
    chmodSync(editor, 0o755);
    const edit = kubectl.start(['edit', 'count', 'test-count'], {
      environment: { KUBE_EDITOR: editor },
    });
    const { code, stdout, stderr } = await edit.ended();
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'count.demo.mark8s.io/test-count edited\n');
    await ready(2);
    await cluster.until('the other Pods are gone', async () => {
      return (await cluster.podNames()).join() === 'test-count-0,test-count-1';
    });
  });

  it('patch accepts a merge patch and a JSON patch', async () => {
    const patch = (type: string, body: unknown) =>
      kubectl.run('patch', 'count', 'test-count', `--type=${type}`, '-p', JSON.stringify(body));
    assert.equal(
      await patch('merge', { spec: { count: 3 } }),
      'count.demo.mark8s.io/test-count patched\n',
    );
    // A status update during the patch would be a conflict.
    await cluster.untilReady(3);
    assert.equal(
      await patch('merge', { spec: { count: 3 } }),
      'count.demo.mark8s.io/test-count patched (no change)\n',
    );
    await patch('json', [
      { op: 'test', path: '/spec/count', value: 3 },
      { op: 'replace', path: '/spec/count', value: 1 },
    ]);
    await cluster.untilReady(1);
    const rejected = await kubectl
      .start(['patch', 'count', 'test-count', '-p', '{"spec":{"count":2}}'])
      .ended();
    assert.equal(rejected.code, 1, 'custom resources do not support strategic merge patches');
    assert.match(
      rejected.stderr,
      /^error: application\/strategic-merge-patch\+json is not supported by /,
    );
  });

  it('delete pod causes a replacement; wait --for=delete returns when the old Pod is gone', async () => {
    const { uid } = (await cluster.pod(0)).metadata;
    const { namespace } = cluster;
    const deleted = await kubectl.run('delete', 'pod', 'test-count-0');
    assert.match(deleted, /^pod "test-count-0" deleted( from \S+ namespace)?\n$/);
    await cluster.until('another Pod', async () =>
      (await cluster.pods()).some(({ metadata }) => metadata.uid !== uid),
    );
    await cluster.untilReady(1);
    assert.deepEqual(await cluster.podNames(), ['test-count-0'], namespace);
  });

  it('apply --server-side creates it, owns its fields, and names conflicting managers', async () => {
    const manifest = countDraft(cluster.namespace, { count: 1 }, 'applied');
    const apply = ['apply', '--server-side', '-f', '-'];
    const applied = 'count.demo.mark8s.io/applied serverside-applied\n';
    assert.equal(await kubectl.send(manifest, ...apply), applied);
    assert.equal(await kubectl.send(manifest, ...apply), applied);
    const more = countDraft(cluster.namespace, { count: 2 }, 'applied');
    const conflict = await kubectl.refused(more, ...apply, '--field-manager=other-manager');
    assert.match(
      conflict,
      /Apply failed with 1 conflict: conflict with "kubectl": \.spec\.count\n/,
    );
    assert.equal(
      await kubectl.send(more, ...apply, '--field-manager=other-manager', '--force-conflicts'),
      applied,
    );
    const applies = 'jsonpath={.metadata.managedFields[?(@.operation=="Apply")].manager}';
    const managers = await kubectl.run('get', 'count', 'applied', '-o', applies);
    assert.equal(managers, 'kubectl other-manager');
    await kubectl.run('delete', 'count', 'applied');
  });

  it('an invalid object is rejected with a message for each field', async () => {
    const bad = (spec: object, name = 'bad') => ({
      ...countDraft(cluster.namespace, {}, name),
      spec: { name: 'nginx', count: 1, ...spec },
    });
    const apply = ['apply', '-f', '-'];
    const long = 'n'.repeat(300);
    const [negative, text, unknown, tooLong, missing] = await Promise.all([
      kubectl.refused(bad({ count: -1 }), ...apply),
      kubectl.refused(bad({ count: 'three' }), ...apply),
      kubectl.refused(bad({ colour: 'red' }), ...apply),
      kubectl.refused(bad({}, long), ...apply),
      kubectl.refused(bad({ name: undefined }), ...apply),
    ]);
    assert.equal(
      negative,
      'The Count "bad" is invalid: \n' +
        '* spec.count: Invalid value: -1: spec.count in body should be greater than or equal to 0\n' +
        '* .spec.count: Invalid value: -1: should be a non-negative integer\n',
    );
    assert.equal(
      text,
      'The Count "bad" is invalid: \n' +
        '* spec.count: Invalid value: "string": spec.count in body must be of type integer: "string"\n' +
        '* .spec.count: Invalid value: 0: .spec.count accessor error: three is of the type string, expected int64\n',
    );
    assert.match(
      unknown,
      /^Error from server \(BadRequest\): .*strict decoding error: unknown field "spec\.colour"\n$/,
    );
    assert.match(
      tooLong,
      new RegExp(
        `^The Count "${long}" is invalid: metadata\\.name: .*must be no more than 253 characters\n$`,
      ),
    );
    assert.equal(missing, 'The Count "bad" is invalid: spec.name: Required value\n');
    assert.equal(
      await kubectl.run('get', 'count', '-o', 'name'),
      'count.demo.mark8s.io/test-count\n',
    );
  });

  it('a missing object or kind is reported', async () => {
    const [missing, kind] = await Promise.all([
      kubectl.start(['get', 'count', 'missing']).ended(),
      kubectl.start(['get', 'counters']).ended(),
    ]);
    assert.equal(
      missing.stderr,
      'Error from server (NotFound): counts.demo.mark8s.io "missing" not found\n',
    );
    assert.equal(kind.stderr, 'error: the server doesn\'t have a resource type "counters"\n');
  });

  it('logs prints the output of a Pod', async (context) => {
    // The simulated kubelet is reachable from the embedded server only.
    if (plane.kind !== 'embedded') return context.skip('no kubelet listens');
    const yay = ['--image=busybox', '--restart=Never', '--', 'echo', 'YAY'];
    assert.equal(await kubectl.run('run', 'yay', ...yay), 'pod/yay created\n');
    await kubectl.run('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/yay');
    assert.equal(await kubectl.run('logs', 'yay'), 'YAY\n');
    assert.match(await kubectl.run('logs', '-f', 'yay', '--timestamps'), /^\d{4}-\S+Z YAY\n$/);
    const { code, stderr } = await kubectl.start(['logs', 'yay', '--previous']).ended();
    assert.equal(code, 1);
    assert.equal(
      stderr,
      'Error from server (BadRequest): previous terminated container "yay" in pod "yay" not found\n',
    );
    await kubectl.run('delete', 'pod', 'yay');
  });

  it('rollout status returns when the new Pods of a Deployment are available', async () => {
    await kubectl.run('create', 'deployment', 'web', '--image=nginx:1.26', '--replicas=2');
    for (const image of ['nginx:1.26', 'nginx:1.27']) {
      await kubectl.run('set', 'image', 'deployment/web', `nginx=${image}`);
      const status = await kubectl.run('rollout', 'status', 'deployment/web', '--timeout=30s');
      assert.match(status, /^deployment "web" successfully rolled out$/m);
    }
    await kubectl.run('delete', 'deployment', 'web', '--cascade=foreground');
  });

  it('delete removes the Count and its Pods', async () => {
    const deleted = await kubectl.run('delete', '-f', EXAMPLE);
    assert.match(deleted, /^count\.demo\.mark8s\.io "test-count" deleted( from \S+ namespace)?\n$/);
    await kubectl.run('wait', '--for=delete', 'pod', '--all', '--timeout=30s');
    const gone = await kubectl.start(['get', 'count,pods']).ended();
    assert.equal(gone.stdout, '');
    assert.equal(gone.stderr, `No resources found in ${cluster.namespace} namespace.\n`);
  });

  it('delete ns removes all objects of the namespace', async () => {
    const name = `${cluster.namespace}-more`;
    assert.equal(await kubectl.run('create', 'ns', name), `namespace/${name} created\n`);
    await kubectl.send(countDraft(name), '-n', name, 'apply', '-f', '-');
    await kubectl.run('-n', name, 'wait', '--for=condition=Ready', 'count/test-count');
    assert.equal(await kubectl.run('delete', 'ns', name), `namespace "${name}" deleted\n`);
    const gone = await kubectl.start(['get', 'ns', name]).ended();
    assert.equal(gone.stderr, `Error from server (NotFound): namespaces "${name}" not found\n`);
    const left = await kubectl.run('get', 'count,pods', '-A', '--no-headers');
    assert.ok(!left.includes(`${name} `), left);
  });
});
