import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { normaliseArguments } from '../../../../src/cli/flags/arguments.ts';
import { UsageError } from '../../../../src/cli/exit-codes.ts';

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
  test('may have one dash or two, and its value after = or as the next argument', () => {
    for (const argv of [
      ['-kubeconfig=x'],
      ['--kubeconfig=x'],
      ['-kubeconfig', 'x'],
      ['--kubeconfig', 'x'],
    ]) {
      assert.deepEqual(flags(...argv), ['--kubeconfig=x']);
    }
  });

  test('may be written with _ for -, in its name only', () => {
    assert.deepEqual(flags('--kube_api_qps=a_b'), ['--kube-api-qps=a_b']);
  });

  test('takes the next argument whatever it looks like', () => {
    assert.deepEqual(flags('-kube-api-qps', '-1'), ['--kube-api-qps=-1']);
    assert.deepEqual(flags('--kubeconfig', '--v=1'), ['--kubeconfig=--v=1']);
  });

  test('keeps a value with = or line breaks, and an empty one', () => {
    assert.deepEqual(flags('--kubeconfig=a=b\nc'), ['--kubeconfig=a=b\nc']);
    assert.deepEqual(flags('--kubeconfig='), ['--kubeconfig=']);
  });

  test('of one letter may have its number attached, unless that is a flag of its own', () => {
    assert.deepEqual(flags('-v4'), ['--v=4']);
    assert.deepEqual(flags('-v2', '5'), ['--v2=5']);
  });

  test('given twice counts as the last time; a list grows', () => {
    assert.deepEqual(flags('-v=1', '--v=2'), ['--v=2']);
    assert.deepEqual(flags('--as-group=a', '--as-group', 'b,c'), ['--as-group=a,b,c']);
  });

  test('that is not known is passed on and takes no argument with it', () => {
    const { flags, positionals } = normaliseArguments(['-what', 'run', '--x_y=1'], FORMS);
    assert.deepEqual(flags, ['--what=', '--x-y=1']);
    assert.deepEqual(positionals, ['run']);
  });

  test('without its value, or of bad form, is refused', () => {
    assert.throws(() => flags('--kubeconfig'), /flag needs a value: --kubeconfig/);
    for (const bad of ['---v=1', '--=1', '-=1']) {
      assert.throws(() => flags(bad), UsageError, bad);
    }
  });
});

describe('a boolean flag', () => {
  test('is true when it stands alone, and never takes the next argument', () => {
    const { flags, positionals } = normaliseArguments(['--leader-elect', 'false'], FORMS);
    assert.deepEqual(flags, ['--leader-elect=true']);
    assert.deepEqual(positionals, ['false']);
  });

  test('takes what Go takes for a boolean', () => {
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

  test('is known by its alias', () => assert.deepEqual(flags('-h'), ['--help=true']));
});

test('other arguments may stand between flags; a single dash is one of them', () => {
  assert.deepEqual(positionals('serve', '-v=1', '-', 'x'), ['serve', '-', 'x']);
});

test('after -- nothing is a flag', () => {
  const { flags, positionals } = normaliseArguments(['-v=1', '--', '-v=2', '--'], FORMS);
  assert.deepEqual(flags, ['--v=1']);
  assert.deepEqual(positionals, ['-v=2', '--']);
});
