import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { apply, applyTo } from '../../../../src/cli/commands/apply.ts';
import { UsageError } from '../../../../src/cli/common/errors.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { parseFlags } from '../../../../src/cli/flags/flag-parser.ts';
import { createLogging } from '../../../../src/cli/logs/logging.ts';
import { APPLY_OPTIONS } from '../../../../src/cli/flags/options.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import type { Client } from '../../../../src/client/client.ts';
import { parseManifests } from '../../../../src/client/apply/manifest.ts';
import { PROGRAM, environmentOf } from '../../../support/own-program.ts';

const LOGGING = {
  format: 'text',
  verbosity: 0,
  vmodule: [],
  skipHeaders: true,
  addDirHeader: false,
} as const;

let server: ApiServer;
let client: Client;
/** Paths of the writes. */
let writes: string[];
let printed: string[];
let warned: string[];

describe('crd-controller apply', () => {
  beforeEach(() => {
    server = new ApiServer();
    writes = [];
    client = new HttpClient({
      handler: (request) => {
        if (request.method !== 'GET') writes.push(request.path);
        return server.handler(request);
      },
      server: 'in-process',
    });
    printed = [];
    warned = [];
  });

  const context = () => ({
    print: (text: string) => printed.push(text),
    warn: (text: string) => warned.push(text),
    signal: new AbortController().signal,
    namespace: 'default',
  });
  const flagsOf = (...flags: readonly string[]) =>
    parseFlags(APPLY_OPTIONS, flags, environmentOf()).values;
  const run = (text: string, ...flags: readonly string[]) =>
    applyTo(client, parseManifests([{ source: 'a.yaml', text }]), flagsOf(...flags), context());

  const map = (data: string, name = 'a') =>
    `{apiVersion: v1, kind: ConfigMap, metadata: {name: ${name}}, data: ${data}}`;

  describe('apply', () => {
    test('prints a line for each object, as kubectl does', async () => {
      const deployment =
        '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}';
      const text = `${map('{a: b}')}\n---\n${deployment}`;
      assert.equal(await run(text), 0);
      assert.equal(await run(text.replace('{a: b}', '{a: c}')), 0);
      assert.equal(await run(text, '--dry-run=server'), 0);
      assert.deepEqual(printed, [
        'configmap/a created',
        'deployment.apps/web created',
        'configmap/a configured',
        'deployment.apps/web unchanged',
        'configmap/a configured (server dry run)',
        'deployment.apps/web unchanged (server dry run)',
      ]);
      assert.deepEqual(warned, []);
    });

    test('reports rejected objects with their position and the next step, and exits with 1', async () => {
      await run(map('{a: b}'));
      const text = [
        map('{a: c}'),
        '{apiVersion: v1, kind: Pods, metadata: {name: "x\\e[2J"}}',
        map('{}', 'b'),
      ];
      assert.equal(await run(text.join('\n---\n'), '--field-manager=other'), 1);
      assert.deepEqual(printed, ['configmap/a created', 'configmap/b created']);
      assert.deepEqual(warned, [
        'Error: a.yaml: document 1, line 1: configmap/a: a field was set to another value by other managers: .data.a by "crd-controller-apply". Omit the fields, or set --force-conflicts to take them over',
        'Error: a.yaml: document 2, line 3: Pods/x\uFFFD[2J: the server has no kind Pods in v1: did you mean v1 Pod?',
        'Error: 2 of 3 objects were rejected',
      ]);
      assert.equal(await run(text[0] ?? '', '--field-manager=other', '--force-conflicts'), 0);
    });

    test('reports how many objects were not applied if the server fails', async () => {
      server.faults.failNext({ method: 'PATCH', name: 'b' }, 401);
      await assert.rejects(run([map('{}'), map('{}', 'b'), map('{}', 'c')].join('\n---\n')));
      assert.deepEqual(printed, ['configmap/a created', 'configmap/c created']);
      assert.deepEqual(warned, ['Stopped: 1 of 3 objects were not applied']);
    });

    test('sends what its flags say', async () => {
      const defaults = { fieldManager: 'crd-controller-apply', fieldValidation: 'Strict' };
      const named =
        '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-public}}';
      for (const [flags, changes, text, namespace = 'default'] of [
        [[], {}, map('{}')],
        [['--field-manager=other'], { fieldManager: 'other' }, map('{}', 'b')],
        [['--force-conflicts'], { force: 'true' }, map('{}')],
        [['--dry-run=server'], { dryRun: 'All' }, map('{}')],
        [['--validate=warn'], { fieldValidation: 'Warn' }, map('{}')],
        [['--validate=ignore'], { fieldValidation: 'Ignore' }, map('{}')],
        [[], {}, named, 'kube-public'],
      ] as [string[], object, string, string?][]) {
        writes = [];
        assert.equal(await run(text, ...flags), 0, flags.join());
        const [path = '', query = ''] = (writes[0] ?? '').split('?');
        assert.equal(path.slice(0, -1), `/api/v1/namespaces/${namespace}/configmaps/`);
        const sent = Object.fromEntries(new URLSearchParams(query));
        assert.deepEqual(sent, { ...defaults, ...changes }, flags.join());
      }
      assert.equal(
        await run(named, '--namespace=default'),
        1,
        'a namespace other than that of the flag',
      );
    });

    test('waits for a kind that is not served as long as --timeout says', async () => {
      const crd =
        '{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.a.io}, spec: {group: a.io, scope: Cluster, names: {plural: things, singular: thing, kind: Thing}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}';
      const text = `${crd}\n---\n{apiVersion: a.io/v1, kind: Thing, metadata: {name: a}}`;
      const manifests = parseManifests([{ source: 'a.yaml', text }]);
      // The discovery of another server never has the kind.
      const other = new ApiServer();
      const unserved = new HttpClient({
        handler: (request) =>
          (/^\/apis(?:\?|$)/.test(request.path) ? other : server).handler(request),
        server: 'in-process',
      });
      const clock = new FakeClock();
      let code: number | undefined;
      const given = { ...context(), clock };
      void applyTo(unserved, manifests, flagsOf('--timeout=40s'), given).then((it) => (code = it));
      await clock.advance(39_000);
      assert.equal(code, undefined);
      await clock.advance(2000);
      assert.equal(code, 1);
      assert.match(warned.join('\n'), /document 2.*Thing.*not served after 40s/);
    });

    test('rejects invalid flags before it reads or sends anything', async () => {
      const { log, level } = createLogging(LOGGING);
      const all = {
        ...context(),
        log,
        logLevel: level,
        program: PROGRAM,
        logging: LOGGING,
        environment: {},
        colour: false,
      };
      for (const flags of [
        [],
        ['--filename=/nonexistent', '--field-manager='],
        ['--filename=/nonexistent', '--namespace=No'],
        ['--filename=/nonexistent', '--as-group=a'],
      ]) {
        await assert.rejects(apply(flagsOf(...flags), all), UsageError, flags.join(' '));
      }
      assert.equal(await apply(flagsOf('--filename=/nonexistent'), all), 2);
      assert.deepEqual(warned, ['Error: /nonexistent: there is no such file or folder']);
    });
  });
});
