import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { ManifestError } from '../../../../src/client/apply/manifest.ts';
import { readManifests } from '../../../../src/client/apply/manifest-files.ts';
import type { ReadManifestsOptions } from '../../../../src/client/apply/manifest-files.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { serve, serveTls } from '../server.ts';

function folderOf(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'manifests-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

async function complaints(
  locations: readonly string[],
  options: ReadManifestsOptions = {},
): Promise<string[]> {
  try {
    await readManifests(locations, { environment: {}, ...options });
  } catch (error) {
    assert.ok(error instanceof ManifestError, String(error));
    return error.message.split('\n');
  }
  return [];
}

describe('readManifests for files and folders', () => {
  const FILES = {
    'b.yaml': 'b',
    'a.yml': 'a',
    'c.json': '{"kind": "C"}',
    'package.json': '{"name": "x"}',
    'notes.txt': 'x',
    '.hidden.yaml': 'x',
    'in/d.yaml': 'd',
    'kustomization.yaml': 'kind: Kustomization',
    'in/node_modules/x/e.yaml': 'x',
    '.git/f.yaml': 'x',
  };

  test('reads the manifests of a folder by name, and with recursive those of its subfolders', async (t) => {
    const folder = folderOf(t, FILES);
    symlinkSync(folder, join(folder, 'in', 'again'));
    symlinkSync(join(folder, 'b.yaml'), join(folder, 'in', 'link.yaml'));
    const skipped: string[] = [];
    const read = async (options: ReadManifestsOptions) =>
      (await readManifests([folder], options)).map(({ source, text }) => [
        source.slice(folder.length + 1),
        text,
      ]);
    const own = [
      ['a.yml', 'a'],
      ['b.yaml', 'b'],
      ['c.json', '{"kind": "C"}'],
    ];
    assert.deepEqual(await read({ onSkipped: (path) => skipped.push(path) }), own);
    assert.deepEqual(skipped, [join(folder, 'kustomization.yaml'), join(folder, 'package.json')]);
    assert.deepEqual(await read({ recursive: true }), [
      ...own,
      ['in/d.yaml', 'd'],
      ['in/link.yaml', 'b'],
    ]);
  });

  test('reads a named file with any extension, and standard input for -', async (t) => {
    const folder = folderOf(t, FILES);
    const path = join(folder, 'package.json');
    const stdin = Readable.from([Buffer.from('ab'), Buffer.from('c')]);
    assert.deepEqual(await readManifests([path, '-'], { stdin }), [
      { source: path, text: '{"name": "x"}' },
      { source: 'standard input', text: 'abc' },
    ]);
  });

  test('reports every location that cannot be read', async (t) => {
    const folder = folderOf(t, {
      'long.yaml': 'x'.repeat(101),
      'latin1.yaml': '',
      'empty/notes.txt': '',
    });
    writeFileSync(join(folder, 'latin1.yaml'), Buffer.from([0x61, 0xe9, 0x62]));
    const at = (name: string) => join(folder, name);
    assert.deepEqual(
      await complaints([at('none'), at('long.yaml'), at('latin1.yaml'), at('empty'), '-', '-'], {
        maxBytes: 100,
        stdin: Readable.from([]),
      }),
      [
        'standard input (-) can be read only once',
        `${at('none')}: there is no such file or folder`,
        `${at('long.yaml')}: it is longer than 100 bytes`,
        `${at('latin1.yaml')}: it is not UTF-8 text`,
        `${at('empty')}: there is no .yaml, .yml or .json file in this folder; use --recursive to read its subfolders`,
      ],
    );
  });
});

describe('readManifests for a URL', () => {
  test('follows redirects and sends credentials to the host of the URL only', async (t) => {
    const seen: (readonly [string, string | undefined])[] = [];
    const other = await serve(t, ({ url, headers }, response) => {
      seen.push([`other ${String(url)}`, headers.authorization]);
      response.end('kind: A');
    });
    const { url } = await serve(t, ({ url: path, headers }, response) => {
      seen.push([String(path), headers.authorization]);
      response.writeHead(302, { location: `${other.url}/b?x=1` }).end();
    });
    const [text] = await readManifests([`${url.replace('//', '//jane:pass@')}/a?token=t`], {
      environment: {},
    });
    assert.deepEqual(text, { source: `${url}/a`, text: 'kind: A' });
    assert.deepEqual(seen, [
      ['/a?token=t', `Basic ${Buffer.from('jane:pass').toString('base64')}`],
      ['other /b?x=1', undefined],
    ]);
  });

  test('reports failures without user, password and query', async (t) => {
    const { url } = await serve(t, ({ url: path = '' }, response) => {
      if (path.startsWith('/round')) response.writeHead(301, { location: path }).end();
      else if (path.startsWith('/file')) response.writeHead(301, { location: 'file:///x' }).end();
      else if (path.startsWith('/page'))
        response.writeHead(200, { 'content-type': 'text/html' }).end();
      else if (path.startsWith('/long')) response.end('x'.repeat(101));
      else response.writeHead(404).end();
    });
    const secret = url.replace('//', '//jane:hunter2@');
    const paths = ['none', 'round', 'file', 'page', 'long'];
    const found = await complaints(
      paths.map((path) => `${secret}/${path}?token=hunter2`),
      { maxBytes: 100 },
    );
    assert.deepEqual(found, [
      `${url}/none: the server responded with HTTP status 404`,
      `${url}/round: it redirects more than 5 times`,
      `${url}/file: it redirects to an address that is neither http nor https`,
      `${url}/page: the response is a web page; use the address of the file itself`,
      `${url}/long: it is longer than 100 bytes`,
    ]);
  });

  test('rejects a certificate of an unknown CA', async (t) => {
    const { url } = await serveTls(t, (_, response) => response.end('kind: A'));
    const [complaint = ''] = await complaints([`${url}/a`]);
    assert.match(complaint, /^https:.*\/a: .*certificate/i);
  });

  test('fails after one minute without a response', async (t) => {
    const clock = new FakeClock();
    const { url, server } = await serve(t, (_, response) => response.write('kind'));
    const asked = new Promise((resolve) => server.once('request', resolve));
    const complaint = complaints([`${url}/a`], { clock });
    await asked;
    await clock.advance(60_000);
    assert.deepEqual(await complaint, [`${url}/a: not done within 60 s`]);
  });
});
