import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import type { ObjectReport } from '../../src/serving/object-page.ts';
import type { ClusterReport } from '../../src/serving/page/cluster-report.ts';
import type { KeysReport } from '../../src/serving/key-list.ts';
import type { QueuesReport, WhyReport } from '../../src/serving/queue-pages.ts';
import type { ProcessStatus } from '../../src/serving/debug-pages.ts';
import { checkView, eventually, openPage, Program, rowsOf, startBrowser } from './browser.ts';
import type { WatchedPage } from './browser.ts';

/** A command of the program, and the address of its page. */
async function start(...args: string[]) {
  const program = new Program(...args);
  return { program, url: await program.printed(/(http:\/\/[\d.:]+\/debug\/)/) };
}

describe('the page of the demo', () => {
  let browser: Browser;
  let demo: Awaited<ReturnType<typeof start>>;
  let shown: WatchedPage;

  const api = async <T>(path: string): Promise<T> =>
    (await (await fetch(demo.url + path)).json()) as T;
  const open = async (fragment: string) => {
    await shown.page.goto(demo.url + fragment);
    await shown.page.locator('nav a[aria-current=page], h2.key').first().waitFor();
  };

  before(async () => {
    browser = await startBrowser();
    demo = await start('demo', '--web', '--keep');
    await eventually(async () => assert.equal((await fetch(demo.url)).status, 200));
    shown = await openPage(browser, demo.url);
    await demo.program.printed(/(Try kubectl)/);
  });
  after(async () => {
    await browser.close();
    await demo.program.stop();
  });

  it('has the numbers of the API at the end of the story', async () => {
    const { page } = shown;
    await eventually(async () => {
      const { controllers, slowest } = await api<QueuesReport>('queues');
      const { informers } = await api<ProcessStatus>('status');
      const rows = await rowsOf(page, 'Controllers');
      assert.deepEqual(
        rows.map(([name, ready]) => [name, ready]),
        controllers.map(({ controller, objects }) => [controller, String(objects?.ready)]),
      );
      assert.deepEqual(
        (await rowsOf(page, 'Informers')).map(([name, , objects]) => [name, objects]),
        informers.map(({ name, objects }) => [name, String(objects)]),
      );
      assert.deepEqual(
        (await rowsOf(page, 'Slowest keys')).map(([key]) => key),
        slowest.slice(0, 8).map(({ key, controller }) => `${key} ${controller}`),
      );
    });
    await eventually(async () => {
      const metrics = await (await fetch(new URL('/metrics', demo.url))).text();
      const [, posts] =
        /rest_client_requests_total\{[^}]*code="201"[^}]*method="POST"[^}]*\} (\d+)/.exec(
          metrics,
        ) ?? [];
      const post = (await rowsOf(page, 'API calls')).find(([verb]) => verb === 'POST');
      assert.match(post?.[3] ?? '', new RegExp(`\\b201 ${posts}\\b`));
    });
    await checkView(page, 'overview');
  });

  it('lists the keys of the API', async () => {
    await open('#/keys?sort=key');
    const { keys } = await api<KeysReport>('keys');
    const rows = await rowsOf(shown.page, 'Keys');
    assert.deepEqual(
      rows.map((row) => [row[0], row[4], row[6]]),
      keys
        .toSorted((a, b) => (a.key < b.key ? -1 : 1))
        .map(({ key, controller, syncs }) => [key, controller, String(syncs)]),
    );
    await shown.page.getByLabel('Controller').selectOption('at');
    await eventually(async () => assert.equal((await rowsOf(shown.page, 'Keys')).length, 1));
    assert.match(shown.page.url(), /controller=at/);
    await checkView(shown.page, 'keys');
  });

  it('shows of a key what /debug/why and the cache have', async () => {
    const { page } = shown;
    await open('#/key?controller=count&key=default/test-count');
    await page.locator('.yaml').waitFor();
    const { controllers } = await api<WhyReport>('why?controller=count&key=default/test-count');
    const last = controllers[0]?.history?.last.toReversed() ?? assert.fail();
    assert.equal(await page.locator('.syncs > li').count(), last.length);
    for (const [at, sync] of last.entries()) {
      const text = (await page.locator('.syncs > li').nth(at).textContent()) ?? '';
      for (const part of [
        sync.reconcileID,
        ...sync.causes.map((cause) => cause.text),
        ...sync.causes.flatMap(({ changes = [] }) => changes.map(({ after = 'absent' }) => after)),
        ...sync.calls.map((call) => `${call.resource} ${call.at}`),
      ]) {
        assert.ok(text.includes(part), `${part} in ${text}`);
      }
    }
    const { tree, events } = await api<ObjectReport>(
      'object?resource=counts.demo.mark8s.io&key=default/test-count',
    );
    assert.equal(await page.locator('.tree li').count(), 1 + tree.owned.length);
    assert.equal((await rowsOf(page, 'Events')).length, events.length);
    await checkView(page, 'key');
  });

  it('finds a key, and is usable with the keyboard', async () => {
    const { page } = shown;
    await open('');
    await page.getByLabel('Object as name').fill('example-at-pod');
    await page.keyboard.press('Enter');
    await page.locator('h2.key', { hasText: 'default/example-at' }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'MAIN');
    await open('');
    await page.evaluate(() => document.body.focus());
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to content');
    for (let at = 0; at < 12; at++) {
      if ((await page.evaluate(() => document.activeElement?.textContent)) === 'Keys') break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/keys$/);
    await page.goBack();
    assert.equal(await page.locator('nav a[aria-current=page]').textContent(), 'Overview');
  });

  it('stops its updates while it is paused', async () => {
    const { page } = shown;
    await open('');
    await page.getByRole('button', { name: 'Pause' }).click();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.waitForTimeout(3000);
    assert.ok(requests.length <= 3, 'at most the update that was running');
    await page.getByRole('button', { name: 'Resume' }).click();
    await eventually(async () => assert.ok(requests.length > 3));
  });

  it('shows the cluster and fails the next write', async () => {
    const { page } = shown;
    await open('#/cluster');
    await page.getByRole('button', { name: 'Fail the next write' }).click();
    await page.getByText('waiting for a write').waitFor();
    const { faults, objects } = await api<ClusterReport>('cluster');
    assert.equal(faults['/debug/faults/fail-next-write'], '503');
    const pods = objects.find(({ resource }) => resource === 'pods');
    const row = (await rowsOf(page, 'Objects by kind')).find(([resource]) => resource === 'pods');
    assert.equal(row?.at(-1), String(pods?.count));
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Fail the next write' }).waitFor();
    await page.getByRole('button', { name: 'Cut watches' }).click();
    await page.getByText('done 1 time').first().waitFor();
    await page.getByRole('button', { name: 'Expire history' }).click();
    await eventually(async () => assert.equal(await page.getByText('done 1 time').count(), 2));
    assert.equal(demo.program.child.exitCode, null, 'the demo continues');
    await checkView(page, 'cluster');
  });

  it('copies a view as text', async () => {
    const { page } = shown;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await open('#/key?controller=count&key=default/test-count');
    await page.locator('.yaml').waitFor();
    await page.getByRole('button', { name: 'Copy as text' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(text, /^count default\/test-count: idle\n/);
    assert.match(text, /cause: .*Pod default\/test-count-/);
  });

  it('caused no error in the browser', () => assert.deepEqual(shown.errors, []));
});

describe('the page of serve', () => {
  it('shows the cluster only', async () => {
    const browser = await startBrowser();
    const serve = await start('serve', '--web');
    const { page, errors } = await openPage(browser, serve.url);
    await page.getByRole('heading', { name: 'Objects by kind' }).waitFor();
    assert.deepEqual(await page.locator('nav a').allTextContents(), ['Cluster']);
    const first = (await rowsOf(page, 'Objects by kind'))[0]?.[0];
    assert.doesNotMatch(first ?? '', /rbac/, 'the kinds of users come first');
    await checkView(page, 'serve');
    await browser.close();
    await serve.program.stop();
    assert.deepEqual(errors, []);
  });
});
