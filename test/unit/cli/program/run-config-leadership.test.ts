import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaseNamespace, runConfig } from '../../../../src/cli/program/run-config.ts';
import { parseFlags } from '../../../../src/cli/flags/flag-parser.ts';
import { leaseTimeoutMs } from '../../../../src/leaderelection/leader-elector-options.ts';
import { PROGRAM, RUN_OPTIONS, environmentOf } from '../../../support/own-program.ts';

function configOf(...flags: readonly string[]) {
  const { values } = parseFlags(RUN_OPTIONS, ['--leader-elect=true', ...flags], environmentOf());
  const { leaderElection } = runConfig(values, PROGRAM);
  assert.ok(leaderElection);
  return leaderElection;
}

test('uses the namespace of the flag, else the namespace of the process', () => {
  const here = { namespace: 'here', source: 'in-cluster' };
  assert.equal(leaseNamespace(configOf(), here), 'here');
  const flag = configOf('--leader-elect-resource-namespace=there');
  assert.equal(leaseNamespace(flag, here), 'there');
});

test('requires a namespace for the Lease instead of assuming one', () => {
  const nowhere = { namespace: 'default', namespaceIsAssumed: true, source: '/home/me/config' };
  assert.throws(() => leaseNamespace(configOf(), nowhere), {
    name: 'UsageError',
    message:
      '--leader-elect requires a namespace for its Lease, and /home/me/config has none: set --leader-elect-resource-namespace',
  });
});

test('sets the timeout of Lease requests to half of the renew deadline, and at least 1 s', () => {
  assert.equal(leaseTimeoutMs(configOf().renewDeadlineMs), 5000);
  const short = ['--leader-elect-renew-deadline=1500ms', '--leader-elect-retry-period=500ms'];
  assert.equal(leaseTimeoutMs(configOf(...short).renewDeadlineMs), 1000);
});
