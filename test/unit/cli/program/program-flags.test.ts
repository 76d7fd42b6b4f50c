import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flagValues } from '../../../../src/cli/program/program.ts';
import type { ProgramOptions } from '../../../../src/cli/program/program.ts';
import { integerOption, textOption } from '../../../../src/cli/flags/option.ts';

test('flagValues returns the parsed defaults, and the values that are given', () => {
  const flags = {
    'billing-url': textOption({ help: 'Address', default: 'https://billing' }),
    retries: integerOption({ help: 'Number', min: 0, default: 3 }),
  };
  assert.deepEqual({ ...flagValues({ flags }) }, { 'billing-url': 'https://billing', retries: 3 });
  const given = flagValues({ flags }, { 'billing-url': 'http://test' });
  assert.deepEqual({ ...given }, { 'billing-url': 'http://test', retries: 3 });
  assert.deepEqual({ ...flagValues({}) }, {});
});

test('the type of a program refuses names of flags that the program refuses', () => {
  const camel = { billingUrl: textOption({ help: 'Address' }) };
  const snake = { billing_url: textOption({ help: 'Address' }) };
  const programs: readonly Pick<ProgramOptions, 'flags'>[] = [
    // @ts-expect-error a capital letter
    { flags: { billingUrl: textOption({ help: 'Address' }) } },
    // @ts-expect-error a capital letter, for the inferred type of the flags
    { flags: camel } satisfies Pick<ProgramOptions<typeof camel>, 'flags'>,
    // @ts-expect-error an underscore
    { flags: snake } satisfies Pick<ProgramOptions<typeof snake>, 'flags'>,
    { flags: { 'billing-url': textOption({ help: 'Address' }) } },
  ];
  assert.equal(programs.length, 4);
});
