import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Browser } from 'playwright-core';
import { PODS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { keyOf } from '../../src/api/object-key.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { groupResourceOf } from '../../src/api/resource.ts';
import type { Resource } from '../../src/api/resource.ts';
import { ReflectorProgress } from '../../src/cache/progress.ts';
import { SyncHistory } from '../../src/manager/sync-history.ts';
import { attentionOf } from '../../src/serving/attention.ts';
import { statusPage } from '../../src/serving/debug-pages.ts';
import { informerHealthChecks } from '../../src/serving/health-checks.ts';
import { HttpServer } from '../../src/serving/http-server.ts';
import { objectPage } from '../../src/serving/object-page.ts';
import type { ShownEvent } from '../../src/serving/object-page.ts';
import { debugPage } from '../../src/serving/page/debug-page.ts';
import { queuePages } from '../../src/serving/queue-pages.ts';
import { verdictOf } from '../../src/serving/verdict.ts';
import { systemClock as clock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/logger.ts';
import { WorkQueue } from '../../src/workqueue/work-queue.ts';
import { checkView, openPage, startBrowser } from './browser.ts';

const HOSTILE = [
  '<script>window.hacked=1</script>',
  '\u202Edlrow\u2066olleh\u0085\u009b31m\u0000',
  'https://x.example/'.repeat(400),
  'm'.repeat(4000),
];

function count(at: number, message: string): KubernetesObject {
  const lastTransitionTime = new Date(Date.now() - 1000 * at).toISOString();
  const conditions = [
    { type: 'Ready', status: at % 2 === 0 ? 'False' : 'True', message, lastTransitionTime },
    { type: message.slice(0, 316), status: 'True', reason: message, message, lastTransitionTime },
  ];
  const metadata = {
    namespace: 'n'.repeat(at === 2 ? 63 : 3),
    name: at === 2 ? `${'long-name.'.repeat(25)}abc` : `count-${at}`,
    uid: String(at),
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    finalizers: [message.slice(0, 100)],
    annotations: { [message.slice(0, 60)]: message },
  };
  return {
    apiVersion: 'demo.mark8s.io/v1',
    kind: 'Count',
    metadata,
    status: { conditions },
  } as KubernetesObject;
}

function informer(resource: Resource, objects: readonly KubernetesObject[]) {
  const byKey = new Map(objects.map((object) => [keyOf(object), object]));
  const progress = new ReflectorProgress(clock, 1e9);
  progress.listed();
  const lister = {
    size: objects.length,
    get: (key: string) => byKey.get(key as never),
    list: () => [...objects],
  };
  return { name: groupResourceOf(resource), resource, hasSynced: true, progress, lister };
}

describe('the page of many objects', { timeout: 240_000 }, () => {
  let browser: Browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser.close());

  async function serve(
    context: TestContext,
    objects: readonly KubernetesObject[],
    events: readonly ShownEvent[],
  ) {
    const counts = informer(COUNTS, objects);
    const pods = informer(PODS, []);
    const informers = [counts, pods];
    const queue = new WorkQueue<never>({ name: 'count', clock });
    const history = new SyncHistory();
    const controllers = [
      { name: 'count', queue, hotLoops: [], reconciled: counts.name, informers },
    ];
    const verdict = () =>
      verdictOf({
        clock,
        readiness: informerHealthChecks(() => informers, clock),
        informers,
        attention: attentionOf(controllers, history.all()),
        hotLoops: new Map(),
        installCommand: 'crd-controller manifests --only=crds | kubectl apply -f -',
        checkCommand: 'crd-controller check',
      });
    const pages = new Map([
      ...queuePages({ controllers: () => controllers, history, clock }),
      ...statusPage({
        clock,
        version: 'v1',
        informers: () => informers,
        verdict,
      }),
      ...objectPage({
        informers: () => informers,
        events: () => events,
        controllers: () => controllers,
      }),
      ...debugPage(['controllers']),
    ]);
    const server = new HttpServer(
      { log: silentLogger },
      { name: 'page', bindAddress: '127.0.0.1:0', routes: { pages } },
    );
    const stop = new AbortController();
    const running = server.run(stop.signal);
    context.after(async () => {
      stop.abort();
      await running;
    });
    return `http://${await server.listening}/debug/`;
  }

  it('shows 2,000 objects with hostile conditions and events', async (context) => {
    const objects = Array.from({ length: 2000 }, (_, at) =>
      count(at, HOSTILE[Math.floor(at / 2) % 4] ?? ''),
    );
    const events = HOSTILE.map((message): ShownEvent => ({
      type: message,
      reason: message,
      message,
      count: 3,
      lastTimestamp: '2026-01-01T00:00:00Z',
      involvedObject: { kind: 'Count', namespace: 'nnn', name: 'count-10', uid: '10' },
    }));
    const url = await serve(context, objects, events);
    const { page, errors } = await openPage(browser, url);
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
    await checkView(page, 'hostile-objects');
    await page.goto(`${url}#/keys?sort=key`);
    await page.getByText('2000 keys').waitFor();
    await checkView(page, 'hostile-objects-keys');
    // One object with each of the texts.
    for (const at of [8, 10, 12, 14]) {
      await page.goto(`${url}#/key?controller=count&key=nnn/count-${at}`);
      await page.getByText(`nnn/count-${at} is not queued`).waitFor();
      await checkView(page, `hostile-objects-key-${at}`);
    }
    assert.equal(await page.evaluate(() => Reflect.get(window, 'hacked')), undefined);
    assert.deepEqual(errors, []);
  });
});
