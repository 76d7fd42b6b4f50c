import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { linkPackages, writePackage } from '../support/installed-package.ts';
import { page, tableRows } from '../support/docs.ts';
import { JavaScriptRuntimes } from '../support/javascript-runtimes.ts';
import { killAll, Program } from '../support/program.ts';
import type { Ended } from '../support/program.ts';

const ROOT = join(import.meta.dirname, '../..');
const PAGE = page('docs/compatibility.md');
const NODE_TEST = "import { test } from 'node:test';\n";

/** Returns the cells of a table, without backticks. */
function cellsUnder(heading: string): string[][] {
  return tableRows(PAGE, heading).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replace(/^`([^`]*)`$/, '$1')),
  );
}

const RUNTIMES = cellsUnder('## JavaScript runtimes');
const RUNNERS = cellsUnder('## Test runners');

/** Versions of npm packages: `Node.js 26.12.1` is that of `node`. Rows without a whole version are what runs all tests. */
const VERSIONS: Readonly<Record<string, string>> = Object.fromEntries(
  [...RUNTIMES, ...RUNNERS].flatMap(([title = '']) => {
    const [, name = '', version] = /^(\S+) (\d+\.\d+\.\d+)$/.exec(title) ?? [];
    return version === undefined ? [] : [[name.toLowerCase().replace('.js', ''), version]];
  }),
);

const MAIN = join(ROOT, 'src/cli/main.ts');

/** How each runtime runs a program. */
const COMMANDS: Readonly<Record<string, string>> = {
  'Node.js': 'other-node',
  Bun: 'bun',
  Deno: 'deno run --allow-all',
};

const found = await JavaScriptRuntimes.install(VERSIONS);

describe(
  'On another JavaScript runtime',
  { concurrency: 2, skip: typeof found === 'string' && found },
  () => {
    assert.ok(typeof found !== 'string');
    const { executables, modules } = found;
    const started: Program[] = [];
    const scratch = mkdtempSync(join(tmpdir(), 'runtimes-'));
    after(async () => {
      await killAll(started);
      rmSync(scratch, { recursive: true, force: true });
    });

    const installed = join(scratch, 'node_modules');
    before(async () => {
      linkPackages(installed, [modules, join(ROOT, 'node_modules')]);
      await writePackage(join(installed, 'crd-controller'));
    });

    /** Creates a folder in which the package of this checkout and those of npm are installed. */
    function folder(name: string): string {
      const path = join(scratch, name);
      mkdirSync(path);
      symlinkSync(installed, join(path, 'node_modules'));
      return path;
    }

    function start(cwd: string, command: string): Program {
      const path = [join(scratch, 'bin'), process.env['PATH']].join(delimiter);
      const program = new Program('sh', ['-c', `cd "${cwd}" && exec ${command}`], {
        HOME: scratch,
        PATH: path,
        NO_COLOR: '1',
        DENO_NO_UPDATE_CHECK: '1',
      });
      started.push(program);
      return program;
    }

    async function run(cwd: string, command: string): Promise<Ended> {
      const ended = await start(cwd, command).ended();
      assert.equal(ended.code, 0, `${command}\n${ended.stdout}${ended.stderr}`);
      return ended;
    }

    const bin = join(scratch, 'bin');
    mkdirSync(bin);
    symlinkSync(executables.bun, join(bin, 'bun'));
    symlinkSync(executables.deno, join(bin, 'deno'));
    // `node` is the one that runs this test.
    symlinkSync(executables.node, join(bin, 'other-node'));
    symlinkSync(join(modules, '.bin/vitest'), join(bin, 'vitest'));

    for (const [title = '', imports = '', command = ''] of RUNNERS) {
      it(`the test of the page passes with ${title}`, async () => {
        const cwd = folder(title.replace(' ', '-'));
        writeFileSync(join(cwd, 'package.json'), '{ "type": "module" }');
        for (const [, name = '', text = ''] of PAGE.matchAll(/^```js (\S+)\n([^]*?)^```$/gm))
          writeFileSync(join(cwd, name), text);
        for (const name of ['greeting-controller.ts', 'greeting-controller.test.ts']) {
          const text = readFileSync(join(ROOT, 'test/docs', name), 'utf8');
          assert.ok(text.includes(NODE_TEST) || !name.includes('test'));
          const replacement = imports.startsWith('import') ? `${imports}\n` : '';
          writeFileSync(join(cwd, name), text.replace(NODE_TEST, replacement));
        }
        const { stdout, stderr } = await run(cwd, command);
        assert.match(stdout + stderr, /\b(?:1 pass|1 passed|pass 1)\b/);
      });
    }

    for (const [title = '', , command = ''] of RUNNERS) {
      const [name] = title.split(' ');
      if (name !== 'Vitest' && name !== 'Bun' && name !== 'Deno') continue;
      it(`the tests of a new project pass with ${title}`, async () => {
        const cwd = folder(`${name}-project`);
        const runner = name === 'Vitest' ? 'vitest' : 'node';
        await run(cwd, `node "${MAIN}" init StaticSite --webhooks --test-runner=${runner}`);
        const { stdout, stderr } = await run(cwd, command);
        assert.match(stdout + stderr, /\b12 (?:pass|passed)\b/);
      });
    }

    const others = RUNTIMES.filter(([title = '']) => /\.\d+\.\d+$/.test(title));
    for (const [title = '', lacks = ''] of others) {
      const command = COMMANDS[title.split(' ')[0] ?? ''] ?? '';

      it(`${title} runs a new project with its server, and the demo, and lacks what the table has`, async () => {
        const cwd = folder(title.replace(' ', '-program-'));
        await run(cwd, `node "${MAIN}" init StaticSite --webhooks`);
        const demo = run(
          cwd,
          `${command} node_modules/crd-controller/dist/cli/main.js demo --only=pod-count`,
        );
        const address = '127.0.0.1:0';
        const flags = `--metrics-bind-address=${address} --metrics-secure=false --debug-bind-address=${address} --enable-profiling --profiler-address=${address}`;
        const program = start(cwd, `${command} src/dev.ts -v=2 ${flags}`);
        await program.printed(/static-site-sample: 2 of 2 replicas are available/);
        const [, listening = ''] = /"Listening".*? address="([^"]*)"/.exec(program.output) ?? [];
        const expected = new Set(lacks.match(/[^`, ]+/g));
        assert.deepEqual(await lackedAt(`http://${listening}`), expected);
        program.child.kill('SIGTERM');
        const { code, stderr } = await program.ended();
        assert.equal(code, 0, stderr);
        assert.match((await demo).stdout, /5 checks passed/);
      });
    }
  },
);

/** Returns the pages and the metrics of a program that its runtime does not have. */
async function lackedAt(url: string): Promise<Set<string>> {
  const paths = [
    '/debug/status',
    '/debug/report',
    '/debug/pprof/heap',
    '/debug/heapsnapshot',
    '/debug/pprof/profile?seconds=1',
  ];
  const failed = await Promise.all(
    paths.map(async (path) => {
      const response = await fetch(url + path);
      await response.bytes();
      return response.ok ? [] : [path];
    }),
  );
  const text = await (await fetch(`${url}/metrics`)).text();
  // An idle program has no active requests.
  const metrics = [...text.matchAll(/^# TYPE (?!nodejs_active_requests )(\w+)/gm)].map(
    ([, name = '']) => name,
  );
  assert.ok(metrics.length > 50, text);
  const empty = metrics.filter(
    (name) => name.startsWith('nodejs_') && !new RegExp(`^${name}(?:_count)?[ {]`, 'm').test(text),
  );
  return new Set([...failed.flat(), ...empty]);
}
