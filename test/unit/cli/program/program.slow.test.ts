import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { EVENTS, LEASES, NAMESPACES } from '../../../../src/api/builtin.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { normaliseArguments } from '../../../../src/cli/flags/arguments.ts';
import { flagForms, parseFlags } from '../../../../src/cli/flags/flag-parser.ts';
import { runOptions } from '../../../../src/cli/program/run-options.ts';
import { runConfig } from '../../../../src/cli/program/run-config.ts';
import { Webhooks } from '../../../../src/webhook/webhooks.ts';
import { commandLine } from '../../../../src/cli/command-line.ts';
import { integerOption, textOption } from '../../../../src/cli/flags/option.ts';
import { loadBuilders, programCommand } from '../../../../src/cli/program/program.ts';
import type { ProgramOptions } from '../../../../src/cli/program/program.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { Controller } from '../../../../src/manager/controller.ts';
import type { ControllerKit } from '../../../../src/manager/run-controllers.ts';
import { done } from '../../../../src/workqueue/outcome.ts';

const FLAGS = {
  greeting: textOption({ help: 'Text before each name', default: 'Hello' }),
  limit: integerOption({ help: 'Number of greetings', default: 3, min: 1 }),
};

/** A program that greets each Namespace. */
function greeter(): { program: ProgramOptions; greetings: string[]; kits: ControllerKit[] } {
  const greetings: string[] = [];
  const kits: ControllerKit[] = [];
  const program: ProgramOptions<typeof FLAGS> = {
    name: 'greeter',
    version: '1.2.3',
    revision: '1a2b3c4d5e6f',
    flags: FLAGS,
    controllers: {
      greetings: {
        resource: NAMESPACES,
        build: (kit, flags) => {
          kits.push(kit, kit.forCluster('b', kit.client));
          const namespaces = kit.informers.for(NAMESPACES);
          const recorder = kit.events.recorder('greeter');
          const other = new Controller(kit, {
            name: 'other',
            kind: 'Namespace',
            sync: async (key) => {
              greetings.push(`other ${key}`);
              return done();
            },
          }).for(namespaces);
          const greeting = new Controller(kit, {
            name: 'greetings',
            kind: 'Namespace',
            sync: async (key) => {
              const namespace = namespaces.lister.get(key);
              greetings.push(`${flags.greeting} ${key} ${flags.limit}`);
              if (namespace) recorder.normal(namespace, 'Greeted', 'Greeted');
              return done();
            },
          }).for(namespaces);
          return [greeting, other];
        },
      },
    },
    commands: [
      programCommand({
        name: 'greet',
        summary: 'Print a greeting',
        operands: 'NAME',
        flags: { loud: integerOption({ help: 'Number of exclamation marks', default: 0, min: 0 }) },
        run: async ({ loud }, { print, program }, [name]) => {
          print(`${program.name}: hello, ${name}${'!'.repeat(loud)}`);
          return 0;
        },
      }),
    ],
  };
  return { program, greetings, kits };
}

async function run(
  program: ProgramOptions,
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
) {
  let output = '';
  const print = (text: string) => (output += `${text}\n`);
  const logging = { write: print, now: Date.now, pid: 1 };
  const terminal = { print, warn: print, colour: false, logging };
  const code = await commandLine(program, argv, environment, terminal);
  return { code, output };
}

describe('A program of a user', () => {
  it('has its name, its version and its flags in help and errors', async () => {
    const { program } = greeter();
    const help = await run(program, ['--help']);
    assert.equal(help.code, 0);
    assert.match(help.output, /^Usage: greeter \[run\] \[flags\]$/m);
    assert.match(help.output, /--greeting .*\[default: Hello\]/);
    assert.match(help.output, /--concurrent-greetings-syncs/);
    assert.match(help.output, /^ {2}greet +Print a greeting$/m);
    assert.doesNotMatch(help.output, /manifests|crd-controller (run|check)/);
    const version = await run(program, ['version']);
    assert.match(version.output, /^greeter v1\.2\.3 \(commit 1a2b3c4, node v/);
    const wrong = await run(program, ['--greetin=Hi']);
    assert.equal(wrong.code, 2);
    assert.match(wrong.output, /unknown flag: --greetin.*--greeting/);
    assert.match(wrong.output, /Run 'greeter --help'/);
    const invalid = await run(program, [], { GREETER_LIMIT: '0' });
    assert.equal(invalid.code, 2);
    assert.match(invalid.output, /GREETER_LIMIT/);
  });

  it('has flags for webhooks if it has webhooks', async () => {
    const { program } = greeter();
    const withWebhooks = { ...program, webhooks: new Webhooks() };
    assert.match((await run(withWebhooks, ['--help'])).output, /--webhook-cert-path/);
    assert.doesNotMatch((await run(program, ['--help'])).output, /webhook/);
    const parsed = (argv: readonly string[]) => {
      const options = runOptions(withWebhooks);
      const { flags } = normaliseArguments(argv, flagForms(options));
      return runConfig(
        parseFlags(options, flags, { variables: {}, prefix: '' }).values,
        withWebhooks,
      );
    };
    assert.deepEqual(parsed([]).webhooks, {
      bindAddress: ':9443',
      certificate: undefined,
      clientCaFile: undefined,
    });
    assert.deepEqual(parsed(['--webhook-bind-address=:1', '--webhook-cert-path=/tls']).webhooks, {
      bindAddress: ':1',
      certificate: { certificatePath: '/tls/tls.crt', privateKeyPath: '/tls/tls.key' },
      clientCaFile: undefined,
    });
    assert.equal(parsed(['--webhook-bind-address=0']).webhooks, undefined);
  });

  it('runs its own commands', async () => {
    const { program } = greeter();
    const { code, output } = await run(program, ['greet', '--loud=2', 'Ada']);
    assert.deepEqual([code, output], [0, 'greeter: hello, Ada!!\n']);
    const help = await run(program, ['greet', '--help']);
    assert.match(help.output, /greeter greet NAME \[flags\]/);
  });

  it('runs its controllers, with its name in the Lease and the User-Agent', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'program-'));
    const server = new ApiServer();
    const { program, greetings, kits } = greeter();
    try {
      const kubeconfig = join(folder, 'kubeconfig');
      const listening = await server.listen();
      writeFileSync(kubeconfig, JSON.stringify(listening.kubeconfig()), { mode: 0o600 });
      const { code, output } = await run(
        program,
        [
          `--kubeconfig=${kubeconfig}`,
          '--once',
          '--leader-elect',
          '--leader-elect-resource-namespace=default',
          '--concurrent-greetings-syncs=4',
        ],
        { GREETER_GREETING: 'Hi' },
      );
      assert.equal(code, 0, output);
      assert.ok(greetings.includes('Hi default 3'), greetings.join());
      assert.ok(greetings.includes('other default'), greetings.join());
      assert.deepEqual(
        kits.map(({ concurrency }) => concurrency),
        [4, 4],
      );
      const agents = server.requests.recent.map(({ userAgent }) => userAgent);
      assert.deepEqual(
        agents.filter((agent) => !agent.startsWith('greeter/1.2.3 ')),
        [],
      );
      const client = new HttpClient({ handler: server.handler, server: 'https://here' });
      await client.get(LEASES, { namespace: 'default', name: 'greeter' });
      const { items } = await client.list(EVENTS);
      assert.ok(items.some(({ reason }) => reason === 'Greeted'));
      const wrong = await run({ ...program, webhooks: new Webhooks() }, [
        `--kubeconfig=${kubeconfig}`,
        `--webhook-cert-path=${folder}`,
      ]);
      assert.equal(wrong.code, 2);
      assert.match(wrong.output, /--webhook-cert-path: unable to load the certificate/);
      const checked = await run(program, ['check', `--kubeconfig=${kubeconfig}`]);
      assert.equal(checked.code, 0, checked.output);
    } finally {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

test('rejects options that do not exist, names that are malformed, and names that are used twice', async () => {
  const { program } = greeter();
  const { greetings } = program.controllers;
  assert.ok(greetings);
  const [greet] = program.commands ?? [];
  assert.ok(greet);
  const misspelled = { ...greet, flagz: {} };
  const controller = { resource: NAMESPACES, build: () => assert.fail(), isOnByDefalt: true };
  for (const [options, error] of [
    [{ controllerz: {} }, TypeError],
    [{ controllers: { greetings: controller } }, TypeError],
    [{ controllers: { greetings: { resource: NAMESPACES } } }, TypeError],
    [{ controllers: { greetings: { ...greetings, load: () => assert.fail() } } }, TypeError],
    [{ commands: [misspelled] }, TypeError],
    [{ name: 'Greeter' }, RangeError],
    [{ controllers: {} }, RangeError],
    [{ controllers: { 'a/b': greetings } }, RangeError],
    [{ flags: { ['Loud' as 'loud']: FLAGS.limit } }, RangeError],
    [{ flags: { kubeconfig: FLAGS.greeting } }, RangeError],
    [{ flags: { 'concurrent-greetings-syncs': FLAGS.limit } }, RangeError],
    [{ commands: [{ ...greet, name: 'top' }] }, RangeError],
  ] as const) {
    await assert.rejects(
      run({ ...program, ...options }, ['version']),
      error,
      JSON.stringify(options),
    );
  }
});

test('loads the enabled controllers when they run, and not for other commands', async () => {
  const { program } = greeter();
  const failure = new Error('not loaded');
  const controller = { resource: NAMESPACES, load: () => Promise.reject(failure) };
  const withLoad = { ...program, controllers: { greetings: controller } };
  assert.equal((await run(withLoad, ['version'])).code, 0);
  await assert.rejects(loadBuilders(withLoad, ['greetings']), failure);
  await assert.rejects(loadBuilders(program, ['greetingz']), RangeError);
  const build = program.controllers['greetings']?.build;
  assert.ok(build);
  const loaded = { ...controller, load: () => Promise.resolve(build) };
  const builders = await loadBuilders({ controllers: { loaded, other: controller } }, ['loaded']);
  assert.deepEqual([...builders], [['loaded', build]]);
});
