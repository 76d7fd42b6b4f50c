import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PODS } from '../../../../src/api/builtin.ts';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { Kubectl } from '../../../../src/cli/demo/kubectl.ts';
import { Narrator } from '../../../../src/cli/demo/narrator.ts';
import { Scene } from '../../../../src/cli/demo/scene.ts';
import { Story } from '../../../../src/cli/demo/story.ts';
import { packageRoot } from '../../../../src/cli/package.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { FakeClock, settle } from '../../../../src/util/fake-clock.ts';

/** A stage in this process, on which nobody plays the controller. */
function emptyStage() {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'in-process', clock });
  const lines: string[] = [];
  const narrator = new Narrator({
    print: (text) => lines.push(text),
    colour: false,
    monotonic: () => clock.monotonic(),
  });
  const scene = new Scene({ client, clock, onChange: (text) => lines.push(text) }, 'default');
  const kubectl = new Kubectl(client);
  const story = new Story({
    client,
    clock,
    kubectl,
    narrator,
    scene,
    root: packageRoot(),
    revision: () => server.revision,
  });
  return { clock, client, kubectl, lines, narrator, scene, story };
}

describe('without a controller', () => {
  test('the story ends at the first thing that is not so, and says what', async () => {
    const { clock, lines, narrator, scene, story } = emptyStage();
    const stop = new AbortController();
    assert.ok(await story.install(stop.signal));
    const watching = scene.run(stop.signal);
    const life = { ended: false };
    const played = story.play(stop.signal).finally(() => (life.ended = true));
    // Files are read in real time, so it cannot be said how many turns that takes.
    while (!life.ended) await clock.advance(1000);
    assert.equal(await played, false);
    assert.equal(narrator.failed, 1);
    assert.ok(
      lines.includes(
        '✗ 3 Pods, test-count-0 to test-count-2, are ready; the Count is healthy: test-count-0 does not exist',
      ),
      lines.join('\n'),
    );
    stop.abort();
    await watching;
  });

  test('the story can be broken off', async () => {
    const { scene, story } = emptyStage();
    const stop = new AbortController();
    await story.install(stop.signal);
    const watching = scene.run(stop.signal);
    const played = story.play(stop.signal);
    await settle(50);
    stop.abort(new Error('enough'));
    await assert.rejects(played, { message: 'enough' });
    await watching;
  });
});

test('the scene tells each change once, in a few words', async () => {
  const { client, lines, scene, story } = emptyStage();
  const stop = new AbortController();
  await story.install(stop.signal);
  const watching = scene.run(stop.signal);
  await settle();
  lines.length = 0;
  const pod = await client.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  await client.patch(PODS, pod.metadata, {
    type: 'merge',
    body: { metadata: { labels: { a: 'b' } } },
  });
  await client.patch(
    PODS,
    pod.metadata,
    {
      type: 'merge',
      body: { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
    },
    { subresource: 'status' },
  );
  await client.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 });
  await settle(50);
  // A deletion without grace is written, too, before the Pod goes.
  assert.deepEqual(lines, [
    'pod/p  Pending',
    'pod/p  Running, ready',
    'pod/p  Terminating',
    'pod/p  gone',
  ]);
  assert.equal(scene.podsSeen, 1);
  stop.abort();
  await watching;
});

test('tables are those of the server', async () => {
  const { kubectl, story } = emptyStage();
  await story.install(new AbortController().signal);
  assert.deepEqual(await kubectl.getCountAndPods('default'), [
    'No resources found in default namespace.',
  ]);
  await kubectl.create(COUNTS, new URL('examples/01-count/count.yaml', packageRoot()), 'default');
  const [heading, row] = await kubectl.getCountAndPods('default');
  assert.match(heading ?? '', /^NAME +DESIRED +READY +HEALTHY +AGE$/);
  assert.match(row ?? '', /^count\.demo\.mark8s\.io\/test-count +3 /);
});
