import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { callersIn } from '../../../../hack/callers.ts';
import { CALLERS_SUFFIX, callerOfCaller } from '../../../../src/cli/logs/caller.ts';
import type { Caller } from '../../../../src/cli/logs/caller.ts';

/** Returns the caller that a program reports by `tell`. */
type Program = (tell: () => Caller) => Caller;

const folder = mkdtempSync(join(tmpdir(), 'caller-'));
after(() => rmSync(folder, { recursive: true }));

const tell = () => callerOfCaller();

/** Imports the function that a module exports as `program`. */
async function programOf(file: string): Promise<Program> {
  const module: unknown = await import(pathToFileURL(file).href);
  assert.ok(typeof module === 'object' && module && 'program' in module);
  const { program } = module;
  assert.ok(typeof program === 'function');
  return (...args) => Reflect.apply(program, undefined, args);
}

describe('callerOfCaller', () => {
  test('returns the source line', () => {
    const here = tell();
    assert.equal(here.file, 'caller.test.ts');
    assert.equal(here.folder, 'logs');
    const source = readFileSync(import.meta.filename, 'utf8').split('\n');
    assert.match(source[here.line - 1] ?? '', /const here = tell/);
  });

  test('maps a compiled file by its source map', async () => {
    const file = join(folder, 'sync.js');
    writeFileSync(file, 'export function program(tell) { return tell(); }\n');
    const map = { version: 3, sources: ['../src/sync.ts'], names: [], mappings: 'AAoCA' };
    writeFileSync(`${file}.map`, JSON.stringify(map));
    const program = await programOf(file);
    assert.deepEqual(program(tell), { file: 'sync.ts', folder: 'src', line: 37 });
  });

  test('returns the compiled line if the source map is missing or invalid', async () => {
    for (const [name, map] of [
      ['none.js', undefined],
      ['broken.js', '{"version":3,'],
      ['wrong.js', 'null'],
    ] as const) {
      const file = join(folder, name);
      writeFileSync(file, '\n\nexport function program(tell) { return tell(); }\n');
      if (map !== undefined) writeFileSync(`${file}.map`, map);
      const program = await programOf(file);
      assert.equal(program(tell).line, 3, name);
      assert.equal(program(tell).file, name);
    }
  });

  test('maps a minified bundle without a source map', async () => {
    const { outputFiles } = await build({
      stdin: {
        sourcefile: 'src/cache/reflector.ts',
        contents:
          '// One.\n// Two.\n\nexport function program(tell: () => unknown): unknown {\n  const log = { info: tell };\n  return log\n    .info();\n}\n',
        loader: 'ts',
      },
      outfile: join(folder, 'bundle.mjs'),
      bundle: true,
      minify: true,
      format: 'esm',
      sourcemap: true,
      write: false,
    });
    const [map, code] = outputFiles.map(({ text }) => text);
    assert.ok(map && code);
    const file = join(folder, 'bundle.mjs');
    writeFileSync(file, code);
    writeFileSync(`${file}${CALLERS_SUFFIX}`, JSON.stringify(callersIn(code, JSON.parse(map))));
    const program = await programOf(file);
    assert.deepEqual(program(tell), { file: 'reflector.ts', folder: 'cache', line: 7 });
  });
});

test('does not change stacks of errors', () => {
  const form = () => 'unowned';
  const limit = Error.stackTraceLimit;
  const prepare: unknown = Reflect.get(Error, 'prepareStackTrace');
  try {
    Error.prepareStackTrace = form;
    Error.stackTraceLimit = 3;
    assert.equal(tell().file, 'caller.test.ts');
    assert.equal(Reflect.get(Error, 'prepareStackTrace'), form);
    assert.equal(Error.stackTraceLimit, 3);
  } finally {
    Reflect.set(Error, 'prepareStackTrace', prepare);
    Error.stackTraceLimit = limit;
  }
});
