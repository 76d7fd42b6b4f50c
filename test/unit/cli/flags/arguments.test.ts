import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { normaliseArguments } from '../../../../src/cli/flags/arguments.ts';
import { UsageError } from '../../../../src/cli/common/errors.ts';

const FORMS = [
  { name: 'kubeconfig', isBoolean: false, isList: false },
  { name: 'kube-api-qps', isBoolean: false, isList: false },
  { name: 'v', isBoolean: false, isList: false },
  { name: 'v2', isBoolean: false, isList: false },
  { name: 'leader-elect', isBoolean: true, isList: false },
  { name: 'help', aliases: ['h'], isBoolean: true, isList: false },
  { name: 'as-group', isBoolean: false, isList: true },
];

const flags = (...argv: readonly string[]) => normaliseArguments(argv, FORMS).flags;
const positionals = (...argv: readonly string[]) => normaliseArguments(argv, FORMS).positionals;

describe('a flag', () => {
  test('has one dash or two, and its value after = or as the next argument', () => {
    for (const argv of [
      ['-kubeconfig=x'],
      ['--kubeconfig=x'],
      ['-kubeconfig', 'x'],
      ['--kubeconfig', 'x'],
    ]) {
      assert.deepEqual(flags(...argv), ['--kubeconfig=x']);
    }
  });

  test('can be written with _ for -, in its name only', () => {
    assert.deepEqual(flags('--kube_api_qps=a_b'), ['--kube-api-qps=a_b']);
  });

  test('takes the next argument in any form', () => {
    assert.deepEqual(flags('-kube-api-qps', '-1'), ['--kube-api-qps=-1']);
    assert.deepEqual(flags('--kubeconfig', '--v=1'), ['--kubeconfig=--v=1']);
  });

  test('accepts a value with = or line breaks, and an empty value', () => {
    assert.deepEqual(flags('--kubeconfig=a=b\nc'), ['--kubeconfig=a=b\nc']);
    assert.deepEqual(flags('--kubeconfig='), ['--kubeconfig=']);
  });

  test('of one letter can have a number attached, unless that is another flag', () => {
    assert.deepEqual(flags('-v4'), ['--v=4']);
    assert.deepEqual(flags('-v2', '5'), ['--v2=5']);
  });

  test('has its last value if repeated; a list is appended to', () => {
    assert.deepEqual(flags('-v=1', '--v=2'), ['--v=2']);
    assert.deepEqual(flags('--as-group=a', '--as-group', 'b,c'), ['--as-group=a,b,c']);
  });

  test('that is unknown is kept, without the next argument', () => {
    const { flags, positionals } = normaliseArguments(['-what', 'run', '--x_y=1'], FORMS);
    assert.deepEqual(flags, ['--what=', '--x-y=1']);
    assert.deepEqual(positionals, ['run']);
  });

  test('without a value, or with invalid syntax, is rejected', () => {
    assert.throws(() => flags('--kubeconfig'), /flag needs a value: --kubeconfig/);
    for (const bad of ['---v=1', '--=1', '-=1']) {
      assert.throws(() => flags(bad), UsageError, bad);
    }
  });
});

describe('a boolean flag', () => {
  test('is true without a value, and never takes the next argument', () => {
    const { flags, positionals } = normaliseArguments(['--leader-elect', 'false'], FORMS);
    assert.deepEqual(flags, ['--leader-elect=true']);
    assert.deepEqual(positionals, ['false']);
  });

  test('accepts the booleans of Go', () => {
    for (const text of ['1', 't', 'T', 'true', 'TRUE', 'True']) {
      assert.deepEqual(flags(`-leader-elect=${text}`), ['--leader-elect=true'], text);
    }
    for (const text of ['0', 'f', 'F', 'false', 'FALSE', 'False']) {
      assert.deepEqual(flags(`--leader_elect=${text}`), ['--leader-elect=false'], text);
    }
    assert.throws(() => flags('--leader-elect=yes'), {
      message: 'invalid value "yes" for --leader-elect: must be true or false',
    });
  });

  test('with a value suggests the flag of the command that ends with its name', () => {
    const forms = [...FORMS, { name: 'version', isBoolean: true, isList: false }];
    const own = [{ name: 'api-version', isBoolean: false, isList: false }];
    assert.throws(() => normaliseArguments(['--version=v1'], forms, own), {
      message:
        'invalid value "v1" for --version: must be true or false; did you mean --api-version?',
    });
  });

  test('is recognised by its alias', () => assert.deepEqual(flags('-h'), ['--help=true']));
});

test('accepts arguments between flags, and a single dash as an argument', () => {
  assert.deepEqual(positionals('serve', '-v=1', '-', 'x'), ['serve', '-', 'x']);
});

test('treats everything after -- as arguments', () => {
  const { flags, positionals } = normaliseArguments(['-v=1', '--', '-v=2', '--'], FORMS);
  assert.deepEqual(flags, ['--v=1']);
  assert.deepEqual(positionals, ['-v=2', '--']);
});
