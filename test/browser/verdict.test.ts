import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { TestContext } from 'node:test';
import { checkView, eventually, openPage, Program, startBrowser } from './browser.ts';

/** Starts a server and the Count controller, and opens the page of the latter in a browser. */
async function start(context: TestContext, ...serveArgs: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'verdict-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const serve = new Program('serve', `--write-kubeconfig=${kubeconfig}`, ...serveArgs);
  const programs = [serve];
  const browser = await startBrowser();
  context.after(async () => {
    await browser.close();
    for (const program of programs.toReversed()) await program.stop();
    rmSync(folder, { recursive: true });
  });
  await serve.printed(/(For kubectl)/);
  const daemon = new Program(
    `--kubeconfig=${kubeconfig}`,
    '--controllers=count',
    '--debug-bind-address=127.0.0.1:0',
    '--health-probe-bind-address=',
    '--metrics-bind-address=',
    '-v=1',
  );
  programs.push(daemon);
  const address = await daemon.printed(/"Listening".*address="([\d.:]+)"/);
  const { page, errors } = await openPage(browser, `http://${address}/debug/`);
  const first = page.locator('.verdict li').first();
  const apply = async (path: string) => {
    const program = new Program('apply', `--kubeconfig=${kubeconfig}`, '-f', path);
    assert.deepEqual(await once(program.child, 'exit'), [0, null]);
  };
  return { serve, page, errors, first, apply };
}

it(
  'says first that a CRD is missing, and that the API server is gone',
  { timeout: 240_000 },
  async (context) => {
    const { serve, page, errors, first } = await start(context);
    await first.getByText('CustomResourceDefinition not installed').waitFor();
    assert.match(
      (await first.textContent()) ?? '',
      /counts\.demo\.mark8s\.io.*manifests --only=crds/,
    );
    await checkView(page, 'crd-missing');
    await serve.stop();
    await eventually(async () =>
      assert.match(
        (await first.textContent()) ?? '',
        /API server unreachable.* since \d\d:\d\d:\d\d: connection refused/,
      ),
    );
    await checkView(page, 'server-gone');
    assert.deepEqual(errors, []);
  },
);

it(
  'says first that a Count whose Pods stay Pending is not ready, and why',
  { timeout: 240_000 },
  async (context) => {
    const { page, errors, first, apply } = await start(context, '--controllers=*,-scheduler');
    await apply('crds');
    await apply('examples/01-count');
    await eventually(async () =>
      assert.match((await first.textContent()) ?? '', /count default\/test-count .*0 of 3/i),
    );
    await checkView(page, 'pending-pods');
    await first.locator('a').click();
    await page.locator('h2.key', { hasText: 'default/test-count' }).waitFor();
    await page.locator('main').getByText('0 of 3').first().waitFor();
    await checkView(page, 'pending-pods-key');
    assert.deepEqual(errors, []);
  },
);
