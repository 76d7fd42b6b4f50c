import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from '../../../../src/cli/command-line.ts';
import type { ProgramCommand } from '../../../../src/cli/program/program.ts';
import { COMMANDS, PROGRAM, RUN_OPTIONS } from '../../../support/own-program.ts';

async function helpText({ name }: ProgramCommand, columns?: number): Promise<string> {
  let text = '';
  const print = (line: string) => (text += `${line}\n`);
  await commandLine(PROGRAM, [name, '--help'], {}, { print, warn: print, colour: false, columns });
  return text;
}

test('the help of the program lists the commands, and every flag with its default', async () => {
  const text = await helpText(COMMANDS[0], 100);
  const longest = Math.max(...COMMANDS.map(({ name }) => name.length));
  for (const { name, summary } of COMMANDS) {
    assert.ok(text.includes(`  ${name.padEnd(longest)}  ${summary}`), name);
  }
  for (const [name, option] of Object.entries(RUN_OPTIONS)) {
    const isShown = text.includes(name.length === 1 ? ` -${name} ` : `--${name}`);
    assert.equal(isShown, !('hidden' in option && option.hidden), name);
  }
  const joined = text.replaceAll(/\s+/g, ' ');
  assert.match(joined, /--resync-period [^[]*\[default: 10h\]/);
});

test('flags are grouped by headings, in order', async () => {
  const text = await helpText(COMMANDS[0], 100);
  const headings = [
    'Commands:',
    'Cluster access:',
    'Controllers:',
    'Logging:',
    'Other:',
    'Examples:',
  ];
  const positions = headings.map((heading) => text.indexOf(`\n${heading}\n`));
  assert.ok(!positions.includes(-1), JSON.stringify(positions));
  assert.deepEqual(
    positions,
    positions.toSorted((a, b) => a - b),
  );
  const flags = [...text.matchAll(/^ {6}--(kube-api-[a-z-]+)/gm)].map(([, name]) => name);
  assert.deepEqual(flags, ['kube-api-burst', 'kube-api-qps', 'kube-api-request-timeout']);
});

test('no line is wider than the terminal', async () => {
  const longest = COMMANDS[0];
  for (const [command, columns, width] of [
    ...COMMANDS.map((command) => [command, 10, 80] as const),
    [longest, 1000, 110] as const,
  ]) {
    for (const line of (await helpText(command, columns)).split('\n')) {
      assert.ok(line.length <= width, `${columns}: ${line}`);
    }
  }
});

test('the help of a command has its own flags only', async () => {
  const serve = COMMANDS.find(({ name }) => name === 'serve');
  assert.ok(serve);
  const text = await helpText(serve);
  assert.ok(text.includes('--write-kubeconfig'));
  assert.ok(!text.includes('--kubeconfig '));
});
