import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Browser } from 'playwright-core';
import type { ObjectKey } from '../../src/api/object-key.ts';
import { SyncHistory, SyncRecorder } from '../../src/manager/sync-history.ts';
import type { AccessDecision } from '../../src/serving/delegated-access.ts';
import { statusPage } from '../../src/serving/debug-pages.ts';
import type { StatusPageDeps } from '../../src/serving/debug-pages.ts';
import { HttpServer } from '../../src/serving/http-server.ts';
import { debugPage } from '../../src/serving/page/debug-page.ts';
import { queuePages } from '../../src/serving/queue-pages.ts';
import { systemClock as clock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/logger.ts';
import { printableText } from '../../src/util/printable.ts';
import { WorkQueue } from '../../src/workqueue/work-queue.ts';
import { differencesOf, PICTURES } from './pictures.ts';
import { checkView, eventually, openPage, rowsOf, startBrowser } from './browser.ts';

const HOSTILE = [
  `<img src=x onerror="window.hacked=1">`,
  `"><script>window.hacked=1</script>`,
  `javascript:window.hacked=1`,
  '\u202Edlrow/\u2066olleh',
  'x'.repeat(253),
  '👩‍👩‍👧‍👦/🏴‍☠️',
];

/** A program with these keys in its queue, whose syncs failed with their names. */
function program(names: readonly string[]) {
  const queue = new WorkQueue<ObjectKey>({ name: 'count', clock });
  const history = new SyncHistory();
  for (const name of names) {
    const key = name as ObjectKey;
    queue.add(key, { cause: name });
    if (names.length > 1000) continue;
    const changes = [{ field: name, before: name, after: name }];
    const run = { reconcileID: '1', causes: [{ text: name, times: 1, changes }] };
    const waits = { omittedCauses: 0, attempt: 1, delayedMs: 1, queuedMs: 1 };
    const recorder = new SyncRecorder('count', key, { ...run, ...waits }, [], clock);
    history.start(recorder);
    recorder.recordCall({ verb: 'raw', at: name, ms: 1, failed: true, error: new Error(name) });
    recorder.finish({ result: 'error', tookMs: 5, error: new Error(name) });
    history.finish(recorder);
  }
  const controllers = () => [{ name: 'count', queue, hotLoops: [] }];
  return queuePages({ controllers, history, clock });
}

interface Served {
  readonly names?: readonly string[];
  readonly port?: string;
  readonly election?: StatusPageDeps['election'];
  readonly decide?: () => AccessDecision;
}

async function serve(context: TestContext, { names = [], port = '0', election, decide }: Served) {
  const pages = new Map([
    ...program(names),
    ...statusPage({ clock, version: 'v1', informers: () => [], election }),
    ...debugPage(['controllers']),
  ]);
  const authorizer = decide && { authorize: () => Promise.resolve(decide()) };
  const server = new HttpServer(
    { log: silentLogger },
    { name: 'page', bindAddress: `127.0.0.1:${port}`, routes: { pages }, authorizer },
  );
  const stop = new AbortController();
  const running = server.run(stop.signal);
  const address = await server.listening;
  const end = async () => {
    stop.abort();
    await running;
  };
  context.after(end);
  return {
    url: `http://${address}/debug/`,
    port: address.split(':')[1] ?? '',
    end,
  };
}

it('has current pictures in the documentation', () => {
  for (const file of PICTURES) {
    assert.deepEqual(differencesOf(file), [], `${file}: npm run test:browser -- --pictures`);
  }
});

describe('the page', { timeout: 240_000 }, () => {
  let browser: Browser;

  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser.close());

  it('shows hostile names as text, with escapes for characters that cannot be seen', async (context) => {
    const server = await serve(context, { names: HOSTILE });
    const { page, errors } = await openPage(browser, `${server.url}#/keys?sort=key`);
    await eventually(async () => {
      const keys = (await rowsOf(page, 'Keys')).map(([key]) => key);
      assert.deepEqual(new Set(keys), new Set(HOSTILE.map(printableText)));
    });
    await checkView(page, 'hostile-keys');
    for (const name of HOSTILE) {
      await page.goto(`${server.url}#/key?${new URLSearchParams({ key: name }).toString()}`);
      await page.locator('.syncs > li').waitFor();
      const shown = printableText(name);
      assert.equal(await page.locator('h2.key').textContent(), shown);
      assert.ok((await page.locator('.causes').first().textContent())?.includes(shown));
      assert.equal(await page.locator('main img, main script, main iframe').count(), 0);
    }
    await checkView(page, 'hostile-key');
    await page.goto(`${server.url}#/`);
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
    await checkView(page, 'hostile-overview');
    assert.equal(await page.evaluate(() => Reflect.get(window, 'hacked')), undefined);
    assert.deepEqual(errors, []);
  });

  it('scrolls through 10,000 keys with few elements', async (context) => {
    const names = Array.from({ length: 10_000 }, (_, at) => `default/key-${10_000 + at}`);
    const server = await serve(context, { names });
    const { page, errors } = await openPage(browser, `${server.url}#/keys?sort=key`);
    await page.getByText('10000 keys').waitFor();
    const slowest = await page.locator('#keys').evaluate(async (box) => {
      let most = 0;
      for (let at = 1; at <= 40; at++) {
        box.scrollTop = (box.scrollHeight * at) / 40;
        const start = performance.now();
        await new Promise((next) => requestAnimationFrame(next));
        await new Promise((next) => requestAnimationFrame(next));
        most = Math.max(most, performance.now() - start);
      }
      return most;
    });
    await eventually(async () => {
      const rows = await rowsOf(page, 'Keys');
      assert.equal(
        rows.at(-1)?.[0] === '' ? rows.at(-2)?.[0] : rows.at(-1)?.[0],
        'default/key-19999',
      );
    });
    assert.ok((await page.locator('#keys tr').count()) < 150);
    assert.deepEqual(errors, []);
    assert.ok(slowest < 1000, `a frame took ${slowest} ms`);
  });

  it('keeps the cursor, the scroll position and the focus at an update', async (context) => {
    const names = Array.from({ length: 2000 }, (_, at) => `default/key-${10_000 + at}`);
    const server = await serve(context, { names });
    const { page, errors } = await openPage(browser, `${server.url}#/keys?sort=key&text=ky-1`);
    const field = page.getByLabel('Name contains');
    await page.getByText('0 of 2000 keys').waitFor();
    await field.focus();
    await page.evaluate(() => {
      const input = document.activeElement;
      if (input instanceof HTMLInputElement) input.setSelectionRange(1, 1);
    });
    await page.keyboard.type('e');
    await page.getByText('2000 keys', { exact: true }).waitFor();
    await page.locator('#keys').evaluate((box) => box.scrollTo(0, 20_000));
    const state = () =>
      page.evaluate(() => {
        const input = document.activeElement;
        const { value = '', selectionStart = 0 } = input instanceof HTMLInputElement ? input : {};
        return [value, selectionStart, document.querySelector('#keys')?.scrollTop];
      });
    assert.deepEqual(await state(), ['key-1', 2, 20_000]);
    for (let update = 0; update < 3; update++) {
      await page.waitForResponse((response) => response.url().endsWith('/debug/keys'));
      assert.deepEqual(await state(), ['key-1', 2, 20_000]);
    }
    assert.deepEqual(errors, []);
  });

  it('reports a program that stops, and continues when it has restarted', async (context) => {
    const first = await serve(context, {});
    const { page } = await openPage(browser, first.url);
    await page.getByText('Live').waitFor();
    await first.end();
    await page.getByRole('alert').waitFor();
    assert.match(
      (await page.getByRole('alert').textContent()) ?? '',
      /not responded since \d\d:\d\d:\d\d.*last values/,
    );
    await checkView(page, 'lost');
    await serve(context, { port: first.port });
    await page.getByText(/restarted|responds again/).waitFor();
    await page.getByText('Live').waitFor();
  });

  it('reports denied access, a standby, and owned shards', async (context) => {
    let decision: AccessDecision = { allowed: true };
    const lease = { holder: 'other', acquireTime: '2026-01-01T00:00:00Z', seenMsAgo: 5 };
    let leases = [{ ...lease, lease: 'system/count' }];
    const server = await serve(context, {
      decide: () => decision,
      election: { identity: 'me', leases: () => leases },
    });
    const { page } = await openPage(browser, server.url);
    await page.locator('header').getByText('Standby').waitFor();
    await checkView(page, 'standby');
    leases = [
      { ...lease, lease: 'system/0', holder: 'me' },
      { ...lease, lease: 'system/1' },
    ];
    await page.locator('header').getByText('Owner of 1 of 2 shards').waitFor();
    decision = {
      allowed: false,
      status: 403,
      reason: 'User "eve" cannot get path "/debug/status"',
    };
    await page.getByRole('alert').waitFor();
    assert.match((await page.getByRole('alert').textContent()) ?? '', /denies access.*eve/);
    await checkView(page, 'forbidden');
  });
});
