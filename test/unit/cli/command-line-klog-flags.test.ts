import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from '../../../src/cli/command-line.ts';
import { PROGRAM } from '../../support/own-program.ts';

/** Returns the log of a start with `flags` and without a cluster. */
async function startedWith(...flags: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  const said: string[] = [];
  const code = await commandLine(
    PROGRAM,
    [...flags, '-skip_headers', '--once', '--kubeconfig=/nonexistent'],
    {},
    {
      print: (text) => said.push(text),
      warn: (text) => said.push(text),
      colour: false,
      logging: { write: (line) => lines.push(line), now: Date.now, pid: 7 },
    },
  );
  assert.equal(code, 2, said.join('\n'));
  assert.match(said.join('\n'), /^Error: .*\/nonexistent does not exist/);
  return lines;
}

/** All flags of klog, in their spellings. */
const OLD = [
  '-logtostderr=true',
  '-alsologtostderr',
  '-stderrthreshold=ERROR',
  '-alsologtostderrthreshold=INFO',
  '-legacy_stderr_threshold_behavior=true',
  '-log_dir=/tmp',
  '--log-dir=/tmp',
  '-log_file',
  'x.log',
  '-log_file_max_size=1800',
  '-one_output',
  '-skip_log_headers',
  '-add_dir_header=false',
  '-log_backtrace_at=a.go:1',
  '--log-flush-frequency=5s',
] as const;

test("accepts klog's legacy flags, and logs them in one line at -v=1", async () => {
  assert.deepEqual(await startedWith(...OLD), []);
  const lines = await startedWith(...OLD, '-v=1');
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? '', /^"Flags" v="1" /);
  assert.match(
    lines[1] ?? '',
    /^"Ignored klog's legacy flags: logs are written to standard error" flags=\[/,
  );
});

test('logs ignored flags of another log format', async () => {
  const flags =
    /^\{.*"msg":"Ignored flags of another log format","flags":\["vmodule","skip-headers"\]\}/;
  const json = await startedWith(
    '--logging-format=json',
    '--vmodule=a=1',
    '--log-json-split-stream',
  );
  assert.match(json.join(''), flags);
  const text = await startedWith('--log-json-split-stream');
  assert.match(
    text.join(''),
    /^"Ignored flags of another .*" flags=\["log-json-split-stream"\]\n$/,
  );
});
