import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { commandLine } from '../../../src/cli/command-line.ts';
import { CONFIG_API_VERSION, settingsOf } from '../../../src/cli/flags/config-file.ts';
import { environmentVariable, flagNamed } from '../../../src/cli/flags/flag-parser.ts';
import type { Option } from '../../../src/cli/flags/option.ts';
import { COMMAND_OPTIONS, PROGRAM, RUN_OPTIONS, environmentOf } from '../../support/own-program.ts';

/**
 * Every flag of every command with invalid values. Each results in one line that
 * names the flag, a hint, and exit code 2. New flags must have invalid values here.
 */

/** Returns the hint with the help of the command, or of the program. */
function hintFor([first = '']: readonly string[]): string {
  const command = COMMAND_OPTIONS.some(({ name }) => name === first) ? `${first} ` : '';
  return `Run 'crd-controller ${command}--help' for usage.`;
}

const folder = mkdtempSync(join(tmpdir(), 'flag-walk-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
mkdirSync(at('folder'));
writeFileSync(at('binary'), Buffer.from([0xff, 0xfe, 0x00, 0x01]));
writeFileSync(at('not.yaml'), 'a: [');
writeFileSync(at('list.yaml'), '- 1');
writeFileSync(at('policy.yaml'), 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n');

const ROOT = join(import.meta.dirname, '../../..');
/** Kubeconfig of a server that cannot be reached. */
const CLUSTER = ['--kubeconfig', at('kubeconfig')];
writeFileSync(
  at('kubeconfig'),
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'u', user: { token: 'none' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  }),
  { mode: 0o600 },
);
const SERVED_WEBHOOKS = [
  '--webhook-bind-address=127.0.0.1:0',
  `--webhook-cert-path=${at('folder')}`,
];
const SERVED = ['--metrics-bind-address=127.0.0.1:0', `--metrics-cert-path=${at('folder')}`];

/** Paths that cannot be read, each for another reason. */
const UNREADABLE = [at('missing'), at('folder'), at('binary'), at('not.yaml'), at('list.yaml')];

/**
 * Invalid values that do not follow from the type of a flag, of all commands or of
 * `COMMAND --FLAG`.
 */
const WRONG: Readonly<Record<string, readonly string[]>> = {
  address: ['6060', 'example.com:6060', 'x:y'],
  'as-group': ['admins'],
  'audit-log-path': [at('folder'), at('missing/below')],
  'audit-policy-file': UNREADABLE,
  chart: [at('binary'), at('folder')],
  config: UNREADABLE,
  controllers: ['no-such', '*,no-such', '-no-such', '-count,-webapp,-at,-foo'],
  deploy: [at('binary'), at('folder')],
  dir: [at('binary'), at('binary/below')],
  'feature-gates': ['WatchListClient', 'WatchListClient=perhaps', '=true', 'WatchListClent=true'],
  'field-manager': [''],
  filename: UNREADABLE,
  group: ['a_b', 'nodots', 'Upper.org'],
  image: ['two words', ':tag'],
  // A file that does not exist is awaited.
  kubeconfig: UNREADABLE.slice(1),
  'leader-elect-resource-name': ['My/Lease', 'UPPER'],
  'leader-elect-resource-namespace': ['My/Namespace', '-x'],
  master: ['10.0.0.1:6443', 'ftp://x', 'http://10.0.0.1'],
  'metrics-cert-path': [at('missing'), at('folder'), at('binary')],
  'metrics-cert-name': ['missing', '../x'],
  'metrics-cert-key': ['missing', '../x'],
  load: UNREADABLE,
  name: ['Upper', 'a_b', '-x'],
  namespace: ['Upper', 'a_b', '-x'],
  namespaces: ['Upper', 'a,B'],
  'record-redact': ['Upper', 'a,b/c'],
  only: ['nothing'],
  out: [at('binary'), at('binary/below')],
  plural: ['Upper', 'a_b', '-x'],
  'tls-cipher-suites': ['TLS_NOTHING'],
  'data-dir': [at('binary'), at('binary/below')],
  'webhook-cert-path': [at('missing'), at('folder'), at('binary')],
  'webhook-client-ca-file': [at('missing'), at('folder'), at('binary')],
  'webhook-cert-name': ['missing', '../x'],
  'webhook-cert-key': ['missing', '../x'],
  'write-kubeconfig': [at('binary'), at('folder'), at('missing/below')],
};

/** Other flags that a flag requires. */
const TOGETHER: Readonly<Record<string, readonly string[]>> = {
  'audit-log-path': [`--audit-policy-file=${at('policy.yaml')}`],
  'audit-policy-file': ['--audit-log-path=-'],
  'leader-elect-resource-name': ['--leader-elect'],
  'leader-elect-resource-namespace': ['--leader-elect'],
  'metrics-cert-path': [...CLUSTER, '--metrics-bind-address=127.0.0.1:0'],
  'metrics-cert-name': [...CLUSTER, ...SERVED],
  'metrics-cert-key': [...CLUSTER, ...SERVED],
  'webhook-cert-path': [...CLUSTER, '--webhook-bind-address=127.0.0.1:0'],
  'webhook-client-ca-file': [...CLUSTER, ...SERVED_WEBHOOKS],
  'webhook-cert-name': [...CLUSTER, ...SERVED_WEBHOOKS],
  'webhook-cert-key': [...CLUSTER, ...SERVED_WEBHOOKS],
};

/** Flag in the message, if it is another. */
const BLAMED: Readonly<Record<string, string>> = {
  'metrics-cert-name': 'metrics-cert-path',
  'metrics-cert-key': 'metrics-cert-path',
  'webhook-cert-name': 'webhook-cert-path',
  'webhook-cert-key': 'webhook-cert-path',
};

/** Flags that accept every value. */
const ANYTHING = new Set(['as', 'context', 'record']);

/** Flags whose errors contain the next step, without a hint. */
const EXPLAINED = new Set(['kubeconfig', 'filename', 'load']);

/** Arguments that a command requires. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  apply: ['-f', join(ROOT, 'examples/01-count')],
  completion: ['bash'],
  generate: [join(ROOT, 'crds')],
  init: ['Website'],
  migrate: ['counts'],
};

interface RunResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Environment without a cluster: a valid command line finds none. */
const NOWHERE = { HOME: '/nonexistent', KUBECONFIG: '/nonexistent/kubeconfig' };

async function run(argv: readonly string[], environment: object = {}): Promise<RunResult> {
  const spoken = { stdout: '', stderr: '' };
  const code = await commandLine(
    PROGRAM,
    argv,
    { ...NOWHERE, ...environment },
    {
      print: (text) => (spoken.stdout += `${text}\n`),
      warn: (text) => (spoken.stderr += `${text}\n`),
      colour: false,
      logging: { write: (line) => (spoken.stderr += line), now: () => 0, pid: 1 },
    },
  );
  return { code, ...spoken };
}

async function assertRefused(
  argv: readonly string[],
  {
    named,
    environment = {},
    hasHint = true,
  }: { named: string; environment?: Record<string, string>; hasHint?: boolean },
): Promise<void> {
  const { code, stdout, stderr } = await run(argv, environment);
  const said = `${argv.join(' ')}: ${stderr}`;
  const [line = '', ...rest] = stderr.split('\n').filter((each) => !/^[IWE]\d{4} /.test(each));
  assert.equal(code, 2, said);
  assert.equal(stdout, '', said);
  assert.match(line, /^Error: ./, said);
  assert.ok(line.includes(named), said);
  assert.deepEqual(rest, hasHint ? [hintFor(argv), ''] : [''], said);
}

for (const { name: command, options } of COMMAND_OPTIONS) {
  const flags = Object.entries(options);
  const start = [command, ...(NEEDED[command] ?? [])];

  describe(`${command} rejects`, () => {
    test('an unknown flag, with a suggestion', async () => {
      await assertRefused([command, '--no-such-flag=1'], { named: '--no-such-flag' });
      await assertRefused([command, '--hepl'], { named: 'did you mean --help?' });
    });

    test('a flag without a value', async () => {
      for (const [name, { type }] of flags) {
        if (type === 'boolean') continue;
        await assertRefused([command, flagNamed(name)], { named: flagNamed(name) });
      }
    });

    test('values of another type, and missing values', async () => {
      for (const [name, option] of flags) {
        for (const value of wrongFor(option)) {
          await assertRefused([...start, `--${name}=${value}`], { named: flagNamed(name) });
        }
      }
    });

    test('invalid values of the right type', async () => {
      for (const [name, option] of flags) {
        // Hidden flags are accepted for compatibility, and their values are not checked.
        if (option.hidden || wrongFor(option).includes('')) continue;
        for (const value of WRONG[name] ?? []) {
          const argv = [...startOf(command, name), ...(TOGETHER[name] ?? []), `--${name}=${value}`];
          const named = value.startsWith(folder) ? value : (BLAMED[name] ?? name);
          await assertRefused(argv, { named, hasHint: !EXPLAINED.has(name) });
        }
      }
    });

    test('the same values in the environment, naming the variable', async () => {
      for (const [name, option] of flags) {
        const [value] = wrongFor(option);
        if (option.flagOnly || !value) continue;
        const variable = environmentVariable(name, environmentOf().prefix);
        await assertRefused(start, { named: variable, environment: { [variable]: value } });
      }
    });
  });

  test(`every text flag of ${command} has invalid values in this test`, () => {
    const silent = flags
      .filter(([name, option]) => wrongFor(option).length === 0 && !ANYTHING.has(name))
      .map(([name]) => name)
      .filter((name) => !(name in WRONG));
    assert.deepEqual(silent, []);
  });
}

describe('run rejects', () => {
  test('fields of another type in a configuration file, naming file, line and field', async () => {
    const wrong = {
      text: ['1', '[a]', 'null'],
      boolean: ["'true'", '1', '{}'],
      integer: ["'1'", '1.5', 'true'],
      list: ['a', '[1]', "['a,b']", '{ a: b }'],
      switches: ['A=true', '[A]', '{ A: 1 }'],
    };
    const path = at('config.yaml');
    for (const [field, [, { type }]] of settingsOf(RUN_OPTIONS)) {
      for (const value of wrong[type]) {
        const head = `apiVersion: ${CONFIG_API_VERSION}\nkind: ControllerConfiguration\n`;
        writeFileSync(path, `${head}${field}: ${value}\n`);
        await assertRefused([`--config=${path}`], { named: `${path}:3: ${field}: must be` });
      }
    }
  });

  test('disabled certificate verification', async () => {
    const environment = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    await assertRefused(['--help'], { named: 'NODE_TLS_REJECT_UNAUTHORIZED=0', environment });
  });

  test('unknown commands and arguments', async () => {
    await assertRefused(['frobnicate'], { named: 'unknown command: "frobnicate"' });
    await assertRefused(['serv'], { named: 'unknown command: "serv"; did you mean serve?' });
    await assertRefused(['run', 'this'], { named: 'unexpected argument: "this"' });
    await assertRefused(['--=1'], { named: 'bad flag syntax: --=1' });
  });
});

describe('a port in use', () => {
  let holder: Server;
  let port: number;

  before(async () => {
    holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const address = holder.address();
    port = typeof address === 'object' && address ? address.port : 0;
  });
  after(() => holder.close());

  const endpoints = ['metrics', 'health-probe', 'debug'].map((name) => `--${name}-bind-address`);
  for (const flag of [...endpoints, '--profiler-address']) {
    test(`is rejected for ${flag}`, async () => {
      const on = flag === '--profiler-address' ? ['--enable-profiling'] : [];
      const argv = [...CLUSTER, '--metrics-secure=false', '--controllers=count', ...on];
      await assertRefused([...argv, `${flag}=127.0.0.1:${port}`], { named: String(port) });
    });
  }

  test('is rejected for serve --port', async () => {
    await assertRefused(['serve', `--port=${port}`], {
      named: `Port ${port} on 127.0.0.1 is in use`,
    });
  });
});

/** Returns a command line that is valid except for one flag. */
function startOf(command: string, flag: string): string[] {
  return flag === 'filename' ? [command] : [command, ...(NEEDED[command] ?? [])];
}

/** Returns invalid values for the type of the flag; none for text. */
function wrongFor(option: Option<unknown>): readonly string[] {
  switch (option.type) {
    case 'boolean':
      return ['maybe', ''];
    case 'integer':
      return ['1.5', '', '99999999999999999999'];
    case 'text':
      // A flag that does not accept every text rejects these too.
      return ['\u0000 no such', ''].filter((value) => isRefused(option, value));
    case 'list':
    case 'switches':
      return ['\u0000 no such'].filter((value) => isRefused(option, value));
  }
}

function isRefused({ parse }: Option<unknown>, value: string): boolean {
  try {
    parse(value);
    return false;
  } catch (error) {
    assert.ok(error instanceof SyntaxError);
    return true;
  }
}
