import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { checkView, eventually, openPage, Program, rowsOf, startBrowser } from './browser.ts';

const COUNTS = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `default/${name}`);

const ELECTION = [
  '--leader-elect',
  '--leader-elect-resource-namespace=default',
  '--leader-elect-retry-period=500ms',
];

describe('the pages of several replicas', { timeout: 240_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'replicas-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const programs: Program[] = [];
  let browser: Browser;

  /** Starts a replica, and returns the address of its page. */
  const start = async (port: number, ...flags: string[]) => {
    const program = new Program(
      `--kubeconfig=${kubeconfig}`,
      '--controllers=count',
      `--debug-bind-address=127.0.0.1:${port}`,
      '--health-probe-bind-address=',
      '--metrics-bind-address=',
      '-v=1',
      ...ELECTION,
      ...flags,
    );
    programs.push(program);
    await program.printed(/(Listening)/);
    const address = await program.printed(/"Listening".*address="([\d.:]+)"/);
    return { program, port: Number(address.split(':')[1]), url: `http://${address}/debug/` };
  };

  before(async () => {
    browser = await startBrowser();
    const manifest = join(folder, 'counts.json');
    const items = COUNTS.map((key) => ({
      apiVersion: 'demo.mark8s.io/v1',
      kind: 'Count',
      metadata: { namespace: 'default', name: key.split('/')[1] },
      spec: { name: 'nginx', count: 1 },
    }));
    writeFileSync(manifest, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    const load = ['crds', manifest].map((path) => `--load=${path}`);
    const serve = new Program('serve', `--write-kubeconfig=${kubeconfig}`, ...load);
    programs.push(serve);
    await serve.printed(/(For kubectl)/);
  });
  after(async () => {
    await browser.close();
    for (const program of programs.toReversed()) await program.stop();
    rmSync(folder, { recursive: true });
  });

  it('list the keys of their shards, and name the replica that syncs another key', async () => {
    const replicas = [await start(0, '--shards=2'), await start(0, '--shards=2')];
    const shown = await Promise.all(replicas.map(({ url }) => openPage(browser, `${url}#/keys`)));
    for (const { page } of shown) {
      await page.locator('header').getByText('Owner of 1 of 2 shards').waitFor({ timeout: 60_000 });
    }
    const owned = async () =>
      Promise.all(
        shown.map(async ({ page }) => (await rowsOf(page, 'Keys')).map(([key = '']) => key)),
      );
    const [first, second] = shown;
    const [replica = assert.fail()] = replicas;
    assert.ok(first && second);
    await eventually(async () => {
      const keys = (await owned()).flat();
      assert.deepEqual(new Set(keys), new Set(COUNTS));
    });
    const { election } = (await (await fetch(`${replica.url}status`)).json()) as {
      readonly election: { readonly identity: string; readonly leases: readonly object[] };
    };
    assert.equal(election.leases.length, 2);
    // The first replica held both shards before the second one started.
    const keys = await Promise.all(
      COUNTS.map(async (key) => {
        const response = await fetch(`${replica.url}why?key=${key}`);
        const { owner } = (await response.json()) as {
          readonly owner?: { readonly isThisProcess: boolean };
        };
        return { key, isOwn: owner?.isThisProcess === true };
      }),
    );
    const { key } = keys.find(({ isOwn }) => isOwn) ?? assert.fail();
    await second.page.goto(`${replicas[1]?.url}#/key?key=${key}`);
    await second.page
      .getByText(`Ask ${election.identity}`)
      .or(second.page.getByText(`held by ${election.identity}`))
      .waitFor();
    await checkView(second.page, 'other-shard');
    await first.page.goto(`${replica.url}#/key?key=${key}`);
    await first.page.getByText('held by this process').waitFor();

    await replica.program.stop();
    await first.page.getByRole('alert').waitFor();
    await start(replica.port, '--shards=2');
    await first.page.getByText('The program restarted').waitFor({ timeout: 60_000 });
    await first.page.getByText('Live').waitFor();
    assert.deepEqual([...first.errors, ...second.errors], []);
  });

  it('name the leader on a standby', async () => {
    const name = '--leader-elect-resource-name=single';
    const leader = await start(0, name);
    const { page, errors } = await openPage(browser, leader.url);
    await page.locator('header').getByText('Leader').waitFor();
    const { election } = (await (await fetch(`${leader.url}status`)).json()) as {
      readonly election: { readonly identity: string };
    };
    const standby = await start(0, name);
    await page.goto(`${standby.url}#/key?key=default/a`);
    await page.locator('header').getByText('Standby').waitFor();
    await page.getByText(`held by ${election.identity}`).waitFor();
    await page.goto(`${standby.url}#/`);
    await page.getByText(`${election.identity} syncs the keys`).waitFor();
    await checkView(page, 'real-standby');
    assert.deepEqual(errors, []);
  });
});
