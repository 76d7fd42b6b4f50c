import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { checkView, eventually, openPage, Program, startBrowser } from './browser.ts';

it(
  'says first that a CRD is missing, and that the API server is gone',
  { timeout: 240_000 },
  async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'verdict-'));
    const kubeconfig = join(folder, 'kubeconfig');
    const serve = new Program('serve', `--write-kubeconfig=${kubeconfig}`);
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
