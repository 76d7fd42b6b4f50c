import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { normaliseArguments } from '../../../../src/cli/flags/arguments.ts';
import { flagForms, parseFlags } from '../../../../src/cli/flags/flag-parser.ts';
import { runConfig } from '../../../../src/cli/program/run-config.ts';
import { PROGRAM, RUN_OPTIONS, environmentOf } from '../../../support/own-program.ts';

function configOf(argv: readonly string[], environment: Record<string, string> = {}) {
  return runConfig(parsed(argv, environment).values, PROGRAM);
}

function parsed(argv: readonly string[], environment: Record<string, string> = {}) {
  const { flags } = normaliseArguments(argv, flagForms(RUN_OPTIONS));
  return parseFlags(RUN_OPTIONS, flags, environmentOf(environment));
}

test('has defaults for local runs', () => {
  assert.deepEqual(configOf([]), {
    cluster: {
      kubeconfig: undefined,
      context: undefined,
      master: undefined,
      impersonate: undefined,
    },
    controllers: ['count', 'webapp', 'at', 'foo'],
    namespaces: [],
    labelSelector: '',
    features: { WatchListClient: true },
    isDryRun: false,
    isOnce: false,
    concurrentSyncs: new Map([
      ['count', 10],
      ['webapp', 10],
      ['at', 10],
      ['foo', 10],
      ['pod-count', 10],
    ]),
    flags: { 'pod-count-events': true },
    resyncPeriodMs: 36_000_000,
    eventApiVersion: 'v1',
    leaderElection: undefined,
    requests: { qps: undefined, burst: 30, timeoutMs: 30_000 },
    gracefulShutdownTimeoutMs: 30_000,
    healthProbeBindAddress: undefined,
    metricsBindAddress: undefined,
    debugBindAddress: undefined,
    profilerAddress: undefined,
    serving: {
      isMetricsSecure: true,
      certificate: undefined,
      minVersion: 'TLSv1.2',
      ciphers: undefined,
      http2: false,
    },
    webhooks: undefined,
    isTraced: false,
    recording: undefined,
  });
});

test('converts flags to the units of the program, and to text for the log', () => {
  const flags = [
    '-kubeconfig=/tmp/k',
    '--context=dev',
    '--master=https://10.0.0.1:6443',
    '--as=jane',
    '--as-group=a',
    '--as-group=b',
    '--controllers=-webapp,-at,-foo',
    '--namespace=dev,test,dev',
    '--watch-label-selector=team=a,!old',
    '--feature-gates=WatchListClient=false',
    '--once',
    '--concurrent_count_syncs=7',
    '--resync-period=1h30m',
    '-leader-elect',
    '--leader-elect-lease-duration=1m',
    '--leader-elect-renew-deadline=40s',
    '--leader-elect-retry-period=15s',
    '--leader-elect-release-on-cancel=false',
    '--leader-elect-resource-lock=leases',
    '--leader-elect-resource-name=mine',
    '--leader-elect-resource-namespace=ops',
    '--shards=3',
    '--kube-api-qps=50',
    '--kube-api-burst=60',
    '--kube-api-content-type=application/json',
    '--kube-api-request-timeout=0',
    '--graceful-shutdown-timeout=500ms',
    '--health-probe-bind-address=:8081',
    '--metrics-bind-address=[::1]:8080',
    '--debug-bind-address=localhost:6060',
    '--enable-profiling',
    '--profiler-address=:6061',
    '--metrics-secure=false',
    '--metrics-cert-path=/certs',
    '--metrics-cert-key=key.pem',
    '--tls-min-version=VersionTLS13',
    '--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305',
    '--enable-http2',
  ];
  assert.deepEqual(configOf(flags), {
    cluster: {
      kubeconfig: '/tmp/k',
      context: 'dev',
      master: 'https://10.0.0.1:6443',
      impersonate: { user: 'jane', groups: ['a', 'b'] },
    },
    controllers: ['count'],
    namespaces: ['dev', 'test'],
    labelSelector: 'team=a,!old',
    features: { WatchListClient: false },
    isDryRun: false,
    isOnce: true,
    concurrentSyncs: new Map([
      ['count', 7],
      ['webapp', 10],
      ['at', 10],
      ['foo', 10],
      ['pod-count', 10],
    ]),
    flags: { 'pod-count-events': true },
    resyncPeriodMs: 5_400_000,
    eventApiVersion: 'v1',
    leaderElection: {
      name: 'mine',
      namespace: 'ops',
      leaseDurationMs: 60_000,
      renewDeadlineMs: 40_000,
      retryPeriodMs: 15_000,
      releaseOnCancel: false,
      shards: 3,
    },
    requests: { qps: 50, burst: 60, timeoutMs: undefined },
    gracefulShutdownTimeoutMs: 500,
    healthProbeBindAddress: ':8081',
    metricsBindAddress: '[::1]:8080',
    debugBindAddress: 'localhost:6060',
    profilerAddress: ':6061',
    webhooks: undefined,
    isTraced: false,
    recording: undefined,
    serving: {
      isMetricsSecure: false,
      certificate: { certificatePath: '/certs/tls.crt', privateKeyPath: '/certs/key.pem' },
      minVersion: 'TLSv1.3',
      ciphers:
        'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305',
      http2: true,
    },
  });
  const { changed } = parsed(flags);
  assert.equal(changed['resync-period'], '1h30m');
  assert.equal(changed['as-group'], 'a,b');
  assert.equal(Object.keys(changed).length, 35);
});

test('is frozen', () => {
  const config = configOf([]);
  assert.ok(Object.isFrozen(config));
  assert.ok(Object.isFrozen(config.cluster));
  assert.ok(Object.isFrozen(config.requests));
});

describe('a flag', () => {
  test('has precedence over its environment variable, and the variable over the default', () => {
    const environment = { CRD_CONTROLLER_RESYNC_PERIOD: '5m', WATCH_NAMESPACE: 'dev' };
    assert.equal(configOf([], environment).resyncPeriodMs, 300_000);
    assert.equal(configOf(['--resync-period=1s'], environment).resyncPeriodMs, 1000);
    assert.deepEqual(configOf([], environment).namespaces, ['dev']);
    assert.equal(parsed([], environment).changed['resync-period'], '5m');
  });

  test('can have another variable: POD_NAMESPACE is the namespace of the Lease', () => {
    const namespaceIn = (environment: Record<string, string>) =>
      configOf(['--leader-elect'], environment).leaderElection?.namespace;
    const own = { CRD_CONTROLLER_LEADER_ELECT_RESOURCE_NAMESPACE: 'mine' };
    assert.equal(namespaceIn({}), undefined);
    assert.equal(namespaceIn({ POD_NAMESPACE: 'ops' }), 'ops');
    assert.equal(namespaceIn({ POD_NAMESPACE: 'ops', ...own }), 'mine');
  });

  test('with a list is replaced by the command line, not appended to', () => {
    const environment = { CRD_CONTROLLER_NAMESPACES: 'a,b' };
    assert.deepEqual(configOf(['--namespaces=c'], environment).namespaces, ['c']);
  });

  test('is not set by an empty variable, and help and version not by any variable', () => {
    const environment = { CRD_CONTROLLER_RESYNC_PERIOD: '', CRD_CONTROLLER_VERSION: '1.2.3' };
    assert.equal(configOf([], environment).resyncPeriodMs, 36_000_000);
  });

  test('masks the credentials in its value for the log', () => {
    const { changed } = parsed(['--master=https://me:pass@host:1']);
    assert.equal(changed['master'], 'https://[redacted]@host:1');
  });
});

const refused: readonly (readonly [argv: string, message: string])[] = [
  ['--no-such=1', 'unknown flag: --no-such'],
  ['--constructor=1', 'unknown flag: --constructor'],
  ['-x', 'unknown flag: -x'],
  ['-v=high', 'invalid value "high" for -v: must be a whole number, 0 or more'],
  ['-v=-1', 'invalid value "-1" for -v: must be a whole number, 0 or more'],
  [
    '--concurrent-count-syncs=0',
    'invalid value "0" for --concurrent-count-syncs: must be a whole number from 1 to 1000',
  ],
  [
    '--resync-period=30',
    'invalid value "30" for --resync-period: missing unit in duration "30": did you mean "30s"?',
  ],
  ['--resync-period=-1s', 'invalid value "-1s" for --resync-period: must not be negative'],
  [
    '--kube-api-qps=0',
    'invalid value "0" for --kube-api-qps: must be 1 or more, or -1 to disable the limit',
  ],
  [
    '--metrics-bind-address=8080',
    'invalid value "8080" for --metrics-bind-address: must be HOST:PORT or :PORT, or 0 to disable it',
  ],
  [
    '--debug-bind-address=:6060 --metrics-bind-address=:6060 --metrics-secure=false',
    'invalid value ":6060" for --debug-bind-address: --metrics-secure=false disables authorization on this address',
  ],
  [
    '--enable-profiling --profiler-address=:6060 --metrics-bind-address=:6060 --metrics-secure=false',
    'invalid value ":6060" for --profiler-address: --metrics-secure=false disables authorization on this address',
  ],
  ['--enable-profiling --profiler-address=0', '--enable-profiling needs --profiler-address'],
  [
    '--tls-min-version=VersionTLS10',
    'invalid value "VersionTLS10" for --tls-min-version: must be "VersionTLS12" or "VersionTLS13"',
  ],
  ['--logging-format=xml', 'invalid value "xml" for --logging-format: must be "text" or "json"'],
  [
    '--master=10.0.0.1:6443',
    'invalid value "10.0.0.1:6443" for --master: must be a URL, as in https://10.0.0.1:6443',
  ],
  [
    '--master=http://10.0.0.1:8080',
    'invalid value "http://10.0.0.1:8080" for --master: must be an https URL, unless the host is a loopback address',
  ],
  ['--shards=2', '--shards requires --leader-elect: each shard has a Lease'],
  ['--as-group=admins', '--as-group requires --as: groups cannot be impersonated without a user'],
  [
    '--namespaces=Dev',
    'invalid value "Dev" for --namespaces: a namespace consists of lower-case letters, digits and "-", at most 63 characters',
  ],
];

for (const [argument, message] of refused) {
  test(`rejects ${argument}`, () => {
    assert.throws(() => configOf(argument.split(' ')), { name: 'UsageError', message });
  });
}

const refusedTerms: readonly (readonly [argv: string, message: string])[] = [
  [
    '--leader-elect-lease-duration=10s',
    '--leader-elect-lease-duration must exceed --leader-elect-renew-deadline: got 10s and 10s',
  ],
  [
    '--leader-elect-renew-deadline=12s --leader-elect-retry-period=10s',
    '--leader-elect-renew-deadline must exceed 1.2 times --leader-elect-retry-period: got 12s and 10s',
  ],
  [
    '--leader-elect-retry-period=0',
    'invalid value "0" for --leader-elect-retry-period: must be more than 0',
  ],
  [
    '--leader-elect-resource-lock=endpoints',
    'invalid value "endpoints" for --leader-elect-resource-lock: must be "leases"',
  ],
  [
    '--kube-api-content-type=application/vnd.kubernetes.protobuf',
    'invalid value "application/vnd.kubernetes.protobuf" for --kube-api-content-type: must be "application/json"',
  ],
  [
    '--leader-elect-resource-name=My/Lease',
    'invalid value "My/Lease" for --leader-elect-resource-name: the name of a Lease consists of lower-case letters, digits, "-" and ".", at most 253 characters',
  ],
  [
    '--leader-elect-resource-namespace=../x',
    'invalid value "../x" for --leader-elect-resource-namespace: a namespace consists of lower-case letters, digits and "-", at most 63 characters',
  ],
];

for (const [argument, message] of refusedTerms) {
  test(`rejects ${argument} with leader election`, () => {
    const given = () => configOf(['--leader-elect', ...argument.split(' ')]);
    assert.throws(given, { name: 'UsageError', message });
  });
}

test('has the default timing of Kubernetes components for leader election', () => {
  assert.deepEqual(configOf(['--leader-elect']).leaderElection, {
    name: 'crd-controller',
    namespace: undefined,
    leaseDurationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2_000,
    releaseOnCancel: true,
  });
});

test('names the variable of an invalid value', () => {
  assert.throws(() => configOf([], { CRD_CONTROLLER_V: 'x' }), {
    name: 'UsageError',
    message: 'invalid value "x" for CRD_CONTROLLER_V: must be a whole number, 0 or more',
  });
});

test('has no leader election in a dry run', () => {
  assert.equal(configOf(['--leader-elect', '--dry-run']).leaderElection, undefined);
});

test('permits plain HTTP for loopback addresses only', () => {
  for (const master of ['http://127.0.0.1:8001', 'http://localhost:8001', 'http://[::1]:8001']) {
    assert.equal(configOf([`--master=${master}`]).cluster.master, master);
  }
});
