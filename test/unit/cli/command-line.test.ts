import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from '../../../src/cli/command-line.ts';
import { processTerminal } from '../../../src/cli/terminal.ts';
import { goQuote } from '../../../src/util/go-quote.ts';
import { COMMAND_OPTIONS, PROGRAM } from '../../support/own-program.ts';

async function run(...argv: readonly string[]) {
  const spoken = { stdout: '', stderr: '' };
  const code = await commandLine(
    PROGRAM,
    argv,
    {},
    {
      print: (text) => (spoken.stdout += `${text}\n`),
      warn: (text) => (spoken.stderr += `${text}\n`),
      colour: false,
    },
  );
  return { code, ...spoken };
}

test('interprets flags for the named command, at any position of its name', async () => {
  for (const { name: command, options, summary, description = summary } of COMMAND_OPTIONS) {
    const flags = Object.entries(options).map(([name, option]) => `--${name}=${option.default}`);
    const argv = flags.toSpliced(flags.length / 2, 0, command);
    const { code, stdout, stderr } = await run(...argv, '--help');
    assert.equal(code, 0, `${argv.join(' ')}: ${stderr}`);
    const [said = ''] = description.split(' ');
    assert.ok(stdout.includes(said), stdout);
  }
});

test('treats a value with the name of a command as a value', async () => {
  const { stdout } = await run('--filename', 'demo', 'apply', '--help');
  assert.match(stdout, /crd-controller apply/);
});

test('rejects an unknown command, with a suggestion', async () => {
  for (const word of ['aply', 'rnu']) {
    const { code, stderr } = await run('-v=1', word);
    assert.equal(code, 2);
    assert.ok(stderr.startsWith(`Error: unknown command: ${goQuote(word)}`), stderr);
  }
  assert.match((await run('aply')).stderr, /did you mean apply\?/);
});

test('prints no character that could control a terminal', async () => {
  const file = '/nowhere/a\u001b[2J\u009b\u202e';
  for (const argv of [[file], ['check', `--kubeconfig=${file}`], ['apply', '-f', file]]) {
    const { stdout, stderr } = await run(...argv);
    assert.doesNotMatch((stdout + stderr).replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u, argv[0]);
    assert.match(stderr, /nowhere/);
  }
});

test('accepts leader election flags in the spelling of cert-manager and Flux', async () => {
  const times = ['--leader-elect', '--leader-election-lease-duration=5s'];
  const { code, stderr } = await run(...times, '-leader_election_renew_deadline', '6s');
  assert.equal(code, 2);
  assert.match(stderr, /--leader-elect-lease-duration must exceed .*: got 5s and 6s/);
  const { stdout } = await run('--leader-election-retry-period=1s', '--help');
  assert.doesNotMatch(stdout, /leader-election-/, 'one spelling is shown');
});

test('names the help of the command in an error', async () => {
  const helps = async (...argv: readonly string[]) =>
    /^Run '(.*)' for usage\.$/m.exec((await run(...argv)).stderr)?.[1];
  assert.equal(await helps('--no-such-flag'), 'crd-controller --help');
  assert.equal(await helps('no-such-command'), 'crd-controller --help');
  for (const { name } of COMMAND_OPTIONS) {
    assert.equal(await helps(name, '--no-such-flag'), `crd-controller ${name} --help`);
  }
  assert.equal(await helps('init'), 'crd-controller init --help', 'also of its own errors');
});

test('init names the flag of the API version and its form', async () => {
  const { stderr } = await run('init', 'Site', '--version=v1');
  assert.match(stderr, /--version: must be true or false; did you mean --api-version\?/);
  for (const wrong of ['1', 'V1', 'v1gamma1', 'v1beta', '']) {
    const { code, stderr } = await run('init', 'Site', `--api-version=${wrong}`);
    assert.equal(code, 2);
    assert.match(stderr, /for --api-version: must be .*, as in v1, v1beta1 or v1alpha1/);
  }
});

test('stops a command that cannot write its output, and fails', async () => {
  const failed = new AbortController();
  let warned = '';
  const code = await commandLine(
    PROGRAM,
    ['version'],
    {},
    {
      print: () => failed.abort(new Error('no space left')),
      warn: (text) => (warned += text),
      colour: false,
      output: { failed: failed.signal, flush: async () => undefined },
    },
  );
  assert.equal(code, 1);
  assert.match(warned, /standard output: no space left/);
});

test('NO_COLOR and FORCE_COLOR decide about colours, as in Node.js', () => {
  const { env } = process;
  const { FORCE_COLOR: _, NO_COLOR: __, ...others } = env;
  const coloured = (variables: NodeJS.ProcessEnv) => {
    process.env = { ...others, ...variables };
    try {
      return processTerminal().colour;
    } finally {
      process.env = env;
    }
  };
  assert.equal(coloured({ FORCE_COLOR: '1' }), true, 'also in a pipe');
  assert.equal(coloured({ FORCE_COLOR: '0' }), false);
  assert.equal(coloured({ NO_COLOR: '1' }), false);
});
