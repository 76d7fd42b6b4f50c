import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import {
  CONFIG_API_VERSION,
  settingsOf,
  readConfigFile,
} from '../../../../src/cli/flags/config-file.ts';
import { parseFlags } from '../../../../src/cli/flags/flag-parser.ts';
import { optionsOf } from '../../../../src/cli/program/command.ts';
import { page } from '../../../support/docs.ts';
import { COMMANDS, RUN_OPTIONS, environmentOf } from '../../../support/own-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'config-file-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const FILE = join(folder, 'config.yaml');

const HEAD = `apiVersion: ${CONFIG_API_VERSION}\nkind: ControllerConfiguration\n`;

function read(text: string) {
  writeFileSync(FILE, text);
  return readConfigFile(FILE, RUN_OPTIONS);
}

function valuesOf(text: string, flags: readonly string[] = [], environment = {}) {
  return parseFlags(RUN_OPTIONS, flags, environmentOf(environment), read(text)).values;
}

describe('a configuration file', () => {
  test('has a field for every flag except --help, --version and --config', () => {
    const flags = new Set([...settingsOf(RUN_OPTIONS).values()].map(([flag]) => flag));
    const others = Object.keys(RUN_OPTIONS).filter((flag) => !flags.has(flag));
    assert.deepEqual(others.toSorted(), ['config', 'help', 'version']);
    assert.ok(
      [...settingsOf(RUN_OPTIONS).keys()].every((field) => /^[a-z][a-zA-Z0-9]*$/.test(field)),
    );
  });

  test('of check has only fields that the one of run has, too', () => {
    const check = COMMANDS.find(({ name }) => name === 'check') ?? assert.fail();
    const fields = new Set(settingsOf(RUN_OPTIONS).keys());
    assert.deepEqual(new Set(settingsOf(optionsOf(check)).keys()).difference(fields), new Set());
  });

  test('sets options in the types of YAML', () => {
    const values = valuesOf(`${HEAD}
v: 4
leaderElect: true
namespaces: [dev, test]
resyncPeriod: 5m
featureGates: { WatchListClient: false }
metricsBindAddress: ':8080'
`);
    assert.equal(values.v, 4);
    assert.equal(values['leader-elect'], true);
    assert.deepEqual(values.namespaces, ['dev', 'test']);
    assert.equal(values['resync-period'], 300_000);
    assert.deepEqual(values['feature-gates'], { WatchListClient: false });
    assert.equal(values['metrics-bind-address'], ':8080');
  });

  test('can be JSON, and can be without fields', () => {
    const json = { apiVersion: CONFIG_API_VERSION, kind: 'ControllerConfiguration', v: 2 };
    assert.equal(valuesOf(JSON.stringify(json)).v, 2);
    assert.equal(valuesOf(HEAD).v, 0);
  });

  test('has precedence over the default, but not over the environment and flags', () => {
    const text = `${HEAD}resyncPeriod: 3m\nkubeApiBurst: 7\nv: 1`;
    const environment = { CRD_CONTROLLER_RESYNC_PERIOD: '2m', CRD_CONTROLLER_V: '2' };
    const values = valuesOf(text, ['--v=3'], environment);
    assert.equal(values['kube-api-burst'], 7);
    assert.equal(values['resync-period'], 120_000);
    assert.equal(values.v, 3);
    assert.equal(values['kube-api-request-timeout'], 30_000);
  });

  test('appears among the changed options', () => {
    const { changed } = parseFlags(
      RUN_OPTIONS,
      [],
      environmentOf(),
      read(`${HEAD}controllers: ['*', -foo]`),
    );
    assert.deepEqual(changed, { controllers: '*,-foo' });
  });
});

test('the configuration file in the documentation is valid', () => {
  const guide = page('docs/running.md');
  const [, text = ''] = /```yaml\n(apiVersion: crd-controller\.[\s\S]*?)```/.exec(guide) ?? [];
  const { changed } = parseFlags(RUN_OPTIONS, [], environmentOf(), read(text));
  assert.deepEqual(changed, {
    'feature-gates': 'WatchListClient=false',
    'leader-elect': 'true',
    namespaces: 'dev,test',
    'resync-period': '1h',
  });
});

describe('the sample in hack/deploy', () => {
  const sample = readFileSync(
    join(import.meta.dirname, '../../../../hack/deploy/configuration/config.yaml'),
    'utf8',
  );
  const shown = [...settingsOf(RUN_OPTIONS)].filter(([, [, { hidden }]]) => !hidden);

  test('sets nothing', () => {
    assert.deepEqual(read(sample), {});
  });

  test('has every field with its default', () => {
    const uncommented = sample.replaceAll(/^# ([a-zA-Z0-9]+: )(?=[-'[{\d]|true$|false$)/gm, '$1');
    const settings = read(uncommented);
    assert.deepEqual(Object.keys(settings).toSorted(), shown.map(([, [flag]]) => flag).toSorted());
    assert.deepEqual(
      parseFlags(RUN_OPTIONS, [], environmentOf(), settings),
      parseFlags(RUN_OPTIONS, [], environmentOf()),
    );
  });
});

const refused: readonly (readonly [text: string, message: string])[] = [
  [
    '',
    ': the file is empty; expected one ControllerConfiguration of crd-controller.example.io/v1alpha1',
  ],
  [
    '- 1',
    ':1: found no object; expected one ControllerConfiguration of crd-controller.example.io/v1alpha1',
  ],
  ['v: 2', ':1: apiVersion: must be "crd-controller.example.io/v1alpha1"'],
  [
    'apiVersion: v1\nkind: Config',
    ':1: apiVersion: must be "crd-controller.example.io/v1alpha1", got "v1"',
  ],
  [
    `apiVersion: ${CONFIG_API_VERSION}\nkind: Config`,
    ':2: kind: must be "ControllerConfiguration", got "Config"',
  ],
  [
    `${HEAD}---\n${HEAD}`,
    ':4: found a second document; expected one ControllerConfiguration of crd-controller.example.io/v1alpha1',
  ],
  [`${HEAD}leaderElekt: true`, ':3: unknown field "leaderElekt"; did you mean leaderElect?'],
  [`${HEAD}leader-elect: true`, ':3: unknown field "leader-elect"; did you mean leaderElect?'],
  [`${HEAD}config: other.yaml`, ':3: unknown field "config"'],
  [`${HEAD}help: true`, ':3: unknown field "help"'],
  [`${HEAD}__proto__: {}`, ':3: unknown field "__proto__"'],
  [`${HEAD}constructor: x`, ':3: unknown field "constructor"'],
  [`${HEAD}leaderElect: 'true'`, ':3: leaderElect: must be true or false'],
  [`${HEAD}v: '4'`, ':3: v: must be a whole number'],
  [`${HEAD}v: 4.5`, ':3: v: must be a whole number'],
  [`${HEAD}resyncPeriod: 30`, ':3: resyncPeriod: must be a string; quote it'],
  [`${HEAD}kubeconfig:`, ':3: kubeconfig: must be a string; quote it'],
  [
    `${HEAD}namespaces: dev`,
    ':3: namespaces: must be a list of strings that are not empty and contain no comma',
  ],
  [
    `${HEAD}namespaces: ['a,b']`,
    ':3: namespaces: must be a list of strings that are not empty and contain no comma',
  ],
  [
    `${HEAD}namespaces: [[a]]`,
    ':3: namespaces: must be a list of strings that are not empty and contain no comma',
  ],
  [
    `${HEAD}featureGates: [A]`,
    ':3: featureGates: must be an object whose values are true or false',
  ],
  [
    `${HEAD}featureGates: { A: 1 }`,
    ':3: featureGates: must be an object whose values are true or false',
  ],
  [`${HEAD}v: 1\nv: 2`, ':4:1: invalid YAML: this key occurs twice in the mapping'],
  [
    `${HEAD}v: [`,
    ':3:5: invalid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]',
  ],
  [`${HEAD}v: &a [*a]`, ':3: v: must be a whole number'],
];

describe('rejects an invalid configuration file in one line:', () => {
  for (const [text, message] of refused) {
    test(JSON.stringify(text), () => {
      assert.throws(() => read(text), { name: 'UsageError', message: `${FILE}${message}` });
    });
  }

  test('with a value that the flag rejects', () => {
    assert.throws(() => valuesOf(`${HEAD}resyncPeriod: '30'`), {
      name: 'UsageError',
      message: `invalid value "30" for resyncPeriod in ${FILE}:3: missing unit in duration "30": did you mean "30s"?`,
    });
  });

  test('that cannot be read', () => {
    const missing = join(folder, 'missing');
    assert.throws(() => readConfigFile(missing, RUN_OPTIONS), {
      name: 'UsageError',
      message: `cannot read the configuration file ${missing}: the file does not exist`,
    });
    assert.throws(() => readConfigFile(folder, RUN_OPTIONS), {
      name: 'UsageError',
      message: `cannot read the configuration file ${folder}: it is a folder`,
    });
  });
});
