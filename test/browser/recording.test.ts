import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { CONFIG_MAPS } from '../../src/api/builtin.ts';
import { explore } from '../../src/explore/explore.ts';
import { Controller } from '../../src/manager/controller.ts';
import type { ControllerKit } from '../../src/manager/controller-kit.ts';
import { readRecording } from '../../src/replay/read-recording.ts';
import { replayRecording } from '../../src/replay/replay.ts';
import { timelinePages } from '../../src/replay/timeline-pages.ts';
import { Timeline } from '../../src/replay/timeline.ts';
import { HttpServer } from '../../src/serving/http-server.ts';
import { silentLogger } from '../../src/util/logger.ts';
import { printableText } from '../../src/util/printable.ts';
import { done } from '../../src/workqueue/outcome.ts';
import { CREATES_FROM_CACHE, naiveOptions } from '../support/naive-controllers.ts';
import { recordRun } from '../support/recorded-run.ts';
import { checkView, eventually, openPage, rowsOf, startBrowser } from './browser.ts';
import { writeLargeRecording } from './large-recording.ts';

const HOSTILE = [
  `<img src=x onerror="window.hacked=1">`,
  `"><script>window.hacked=1</script>`,
  '\u202Edlrow/\u2066olleh',
  'x'.repeat(253),
];

/** Labels each ConfigMap. */
const labels = (value: string) => (kit: ControllerKit) => {
  const maps = kit.informers.for(CONFIG_MAPS);
  const controller = new Controller(kit, {
    name: 'labels',
    kind: 'ConfigMap',
    sync: async (key, { client }) => {
      const map = maps.lister.get(key);
      if (!map || map.metadata.labels?.['seen']) return done();
      const body = { metadata: { labels: { seen: value } } };
      await client.patch(CONFIG_MAPS, map.metadata, { type: 'merge', body });
      return done();
    },
  });
  return controller.for(maps);
};

/** Longest time between two frames while `act` runs, in milliseconds. */
async function slowestFrame(page: Page, act: () => Promise<void>): Promise<number> {
  await page.evaluate(() => {
    const frames = { last: performance.now(), slowest: 0, isOver: false };
    Reflect.set(window, 'frames0', frames);
    const next = () => {
      const now = performance.now();
      frames.slowest = Math.max(frames.slowest, now - frames.last);
      frames.last = now;
      if (!frames.isOver) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  await act();
  return page.evaluate(() => {
    const frames = Reflect.get(window, 'frames0') as { slowest: number; isOver: boolean };
    frames.isOver = true;
    return frames.slowest;
  });
}

describe('the page of a recording', { timeout: 240_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'recording-page-'));
  const at = (name: string) => join(folder, name);
  let browser: Browser;

  before(async () => {
    browser = await startBrowser();
  });
  after(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  const serve = async (context: TestContext, timeline: Timeline) => {
    const server = new HttpServer(
      { log: silentLogger },
      { name: 'page', bindAddress: '127.0.0.1:0', routes: { pages: timelinePages(timeline) } },
    );
    const stop = new AbortController();
    const running = server.run(stop.signal);
    const address = await server.listening;
    context.after(async () => {
      stop.abort();
      await running;
    });
    return openPage(browser, `http://${address}/debug/`);
  };

  it('shows a schedule of explore, and is usable with the keyboard', async (context) => {
    const file = at('schedule.ndjson');
    const replay = [
      'crash @ controller: event of pods: ADDED default/web-vbs99 #1',
      'stale @ controller: restart #1',
    ];
    const options = { ...naiveOptions(CREATES_FROM_CACHE), replay, recording: file };
    await assert.rejects(explore(options));
    const { page, errors } = await serve(context, new Timeline(file, await readRecording(file)));
    await page.getByText('Violated: nothing is created twice').waitFor();
    await checkView(page, 'schedule');
    const lanes = (await rowsOf(page, 'Lanes')).map(([name]) => name);
    assert.deepEqual(lanes.slice(0, 3), ['faults', 'users', 'API server']);
    await page.getByLabel('Object or text').fill('crash');
    await eventually(async () => assert.equal((await rowsOf(page, 'Entries')).length, 1));
    await page.keyboard.press('Control+A');
    await page.keyboard.press('Delete');
    await eventually(async () => assert.ok((await rowsOf(page, 'Entries')).length > 10));
    const focused = () =>
      page.evaluate(() => {
        const focus = document.activeElement;
        return focus?.tagName === 'A' ? (focus.textContent ?? '') : '';
      });
    for (let presses = 0; presses < 40; presses++) {
      if ((await focused()).includes('crashes before')) break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Enter');
    const details = page.locator('.details');
    await details.getByRole('heading', { name: /crashes before/ }).waitFor();
    await details.getByRole('button', { name: 'Next' }).click();
    await details.getByRole('heading', { name: /reads the state before/ }).waitFor();
    await checkView(page, 'schedule-entry');
    assert.deepEqual(errors, []);
  });

  it('marks what differs in the replay', async (context) => {
    const file = at('maps.ndjson');
    await recordRun({ controllers: [labels('true')], file }, async ({ client, clock }) => {
      await clock.advance(1000);
      const metadata = { namespace: 'default', name: 'web' };
      await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
      await clock.advance(1000);
    });
    const recording = await readRecording(file);
    const report = await replayRecording(recording, { controllers: [labels('yes')] });
    const { page, errors } = await serve(context, new Timeline(file, recording, report));
    await page.getByText('1 sync differs').waitFor();
    await page.getByLabel('Result').selectOption('different');
    await eventually(async () => assert.equal((await rowsOf(page, 'Entries')).length, 2));
    await page.getByRole('link', { name: 'patch configmaps default/web' }).click();
    await page.getByText('.metadata.labels.seen: recorded "true", now "yes"').waitFor();
    await page.getByText('resourceVersion').waitFor();
    await checkView(page, 'recording-differs');
    assert.deepEqual(errors, []);
  });

  it('shows hostile names as text', async (context) => {
    const file = at('hostile.ndjson');
    writeLargeRecording(file, 6);
    const { header, lines, ...rest } = await readRecording(file);
    const hostile = HOSTILE.map((text) => ({ kind: 'action', ms: 1, text }) as const);
    const timeline = new Timeline(file, { ...rest, header, lines: [...lines, ...hostile] });
    const { page, errors } = await serve(context, timeline);
    for (const text of HOSTILE.map(printableText)) {
      await page.getByRole('link', { name: text, exact: true }).click();
      await page.locator('.details h3').getByText(text, { exact: true }).waitFor();
    }
    await checkView(page, 'recording-hostile');
    assert.equal(await page.evaluate(() => Reflect.get(window, 'hacked')), undefined);
    assert.deepEqual(errors, []);
  });

  it('stays responsive with 100,000 entries', async (context) => {
    const file = at('large.ndjson');
    writeLargeRecording(file, 100_000);
    const { page, errors } = await serve(context, new Timeline(file, await readRecording(file)));
    await page.locator('#entries').waitFor();
    const slowest = {
      scroll: await slowestFrame(page, () =>
        page.locator('#entries').evaluate(async (box) => {
          for (let part = 1; part <= 40; part++) {
            box.scrollTop = (box.scrollHeight * part) / 40;
            await new Promise((next) => requestAnimationFrame(next));
          }
        }),
      ),
      lanes: await slowestFrame(page, () =>
        page.locator('#lanes').evaluate(async (box) => {
          for (let part = 1; part <= 20; part++) {
            box.scrollTop = (box.scrollHeight * part) / 20;
            await new Promise((next) => requestAnimationFrame(next));
          }
        }),
      ),
      filter: await slowestFrame(page, async () => {
        await page.getByLabel('Object or text').pressSequentially('web-17');
        await page.getByText(/of \d+ entries/).waitFor();
      }),
      zoom: await slowestFrame(page, async () => {
        for (let times = 0; times < 5; times++) {
          await page.getByRole('button', { name: 'Zoom in' }).click();
        }
      }),
    };
    context.diagnostic(JSON.stringify(slowest));
    assert.ok(await page.evaluate(() => document.querySelectorAll('*').length < 4000));
    for (const [action, ms] of Object.entries(slowest)) assert.ok(ms < 1500, `${action}: ${ms} ms`);
    assert.deepEqual(errors, []);
  });
});
