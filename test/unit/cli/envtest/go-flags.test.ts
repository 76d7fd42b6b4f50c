import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGoFlags, flagNames } from '../../../../src/cli/envtest/go-flags.ts';

const FLAGS = { names: flagNames('name list quiet v'), booleans: flagNames('quiet') };

test('flags are parsed as by pflag', () => {
  const cases: readonly (readonly [args: string[], values: Record<string, string> | string])[] = [
    [['--name=a=b'], { name: 'a=b' }],
    [['--name', 'a', '--quiet', '-v=4'], { name: 'a', quiet: 'true', v: '4' }],
    [['--quiet=false', '--name='], { quiet: 'false', name: '' }],
    [['--list=a', '--list=b,c'], { list: 'a,b,c' }],
    [['--name', '--quiet'], { name: '--quiet' }],
    [['--other=1'], 'unknown flag: --other=1'],
    [['stray'], 'unknown flag: stray'],
    [['--name'], 'flag needs an argument: --name'],
  ];
  for (const [args, expected] of cases) {
    const parsed = parseGoFlags(args, FLAGS);
    const result = parsed.kind === 'parsed' ? Object.fromEntries(parsed.values) : parsed.problem;
    assert.deepEqual(result, expected, args.join(' '));
  }
});
