import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FlagSetting, parseFlags } from '../../../../src/cli/flags/flag-parser.ts';
import { RUN_OPTIONS, environmentOf } from '../../../support/own-program.ts';

const GATES = { 'feature-gates': RUN_OPTIONS['feature-gates'] };

function isOn(flags: readonly string[], environment = {}, inFile?: string) {
  const settings = inFile === undefined ? [] : [new FlagSetting('featureGates in file', inFile)];
  const file = { 'feature-gates': settings };
  return parseFlags(GATES, flags, environmentOf(environment), file).values['feature-gates']
    .WatchListClient;
}

describe('a feature gate', () => {
  test('has a default', () => {
    assert.equal(isOn([]), true);
    assert.equal(isOn(['--feature-gates=']), true);
    assert.equal(isOn(['--feature-gates=WatchListClient=false']), false);
  });

  test('has the last of several settings', () => {
    assert.equal(isOn(['--feature-gates=WatchListClient=false,WatchListClient=T']), true);
  });

  test('is set by the flag, the environment and the file, in order of precedence', () => {
    const everybodys = { KUBE_FEATURE_WatchListClient: 'false' };
    const ours = { CRD_CONTROLLER_FEATURE_GATES: 'WatchListClient=true' };
    assert.equal(isOn([], everybodys, 'WatchListClient=true'), false);
    assert.equal(isOn([], { ...everybodys, ...ours }), true);
    assert.equal(
      isOn(['--feature-gates=WatchListClient=false'], { ...everybodys, ...ours }),
      false,
    );
  });

  test('keeps its setting if a source with precedence is empty', () => {
    assert.equal(isOn(['--feature-gates='], {}, 'WatchListClient=false'), false);
  });

  test('is listed in the help, with its stage', () => {
    const { help } = RUN_OPTIONS['feature-gates'];
    for (const name of Object.keys(RUN_OPTIONS['feature-gates'].parse('')))
      assert.match(help, new RegExp(`${name} \\((ALPHA|BETA), default`));
  });
});

const refused: readonly (readonly [
  flags: readonly string[],
  environment: object,
  message: string,
])[] = [
  [
    ['--feature-gates=WatchListCient=true'],
    {},
    'invalid value "WatchListCient=true" for --feature-gates: unknown feature gate "WatchListCient"; did you mean WatchListClient?',
  ],
  [
    ['--feature-gates=constructor=true'],
    {},
    'invalid value "constructor=true" for --feature-gates: unknown feature gate "constructor"',
  ],
  [
    ['--feature-gates=WatchListClient'],
    {},
    'invalid value "WatchListClient" for --feature-gates: WatchListClient must be true or false',
  ],
  [
    [],
    { KUBE_FEATURE_WatchListClient: 'perhaps' },
    'invalid value "WatchListClient=perhaps" for KUBE_FEATURE_WatchListClient: WatchListClient must be true or false',
  ],
  [
    // A setting must be valid even if another has precedence.
    ['--feature-gates=WatchListClient=true'],
    { CRD_CONTROLLER_FEATURE_GATES: 'Other=true' },
    'invalid value "Other=true" for CRD_CONTROLLER_FEATURE_GATES: unknown feature gate "Other"',
  ],
];

for (const [flags, environment, message] of refused) {
  test(`rejects ${[...flags, JSON.stringify(environment)].join(' ')}`, () => {
    assert.throws(() => isOn(flags, environment), { name: 'UsageError', message });
  });
}

test('ignores feature gates of other programs in the environment', () => {
  assert.equal(isOn([], { KUBE_FEATURE_InformerResourceVersion: 'true' }), true);
});
