import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS } from '../../../../src/api/builtin.ts';
import type { CustomResourceDefinition } from '../../../../src/api/builtin.ts';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import { isApiError } from '../../../../src/api/api-error.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { applyManifests } from '../../../../src/client/apply/apply.ts';
import type { ApplyOptions } from '../../../../src/client/apply/apply.ts';
import type { ApplyResult } from '../../../../src/client/apply/apply-result.ts';
import type { Client } from '../../../../src/client/client.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { parseManifests } from '../../../../src/client/apply/manifest.ts';
import type { Manifest } from '../../../../src/client/apply/manifest.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { HttpHandler, HttpRequest } from '../../../../src/util/http.ts';
import { Access } from '../../../support/access.ts';
import { countCrd } from '../../../support/test-cluster.ts';

const DEFINITION = JSON.stringify(countCrd());

let clock: FakeClock;
let server: ApiServer;
let client: Client;
let requests: string[];

describe('applyManifests', () => {
  beforeEach(() => {
    clock = new FakeClock();
    server = new ApiServer({ clock });
    requests = [];
    client = behind((handler) => handler);
  });

  /** A client that records its requests and sends them through `around`. */
  function behind(around: (handler: HttpHandler) => HttpHandler): Client {
    const handler = around(server.handler);
    return new HttpClient({
      handler: (request) => {
        requests.push(`${request.method} ${request.path}`);
        return handler(request);
      },
      server: 'https://test',
      clock,
      keepManagedFields: true,
    });
  }

  function read(...documents: readonly string[]): Manifest[] {
    return parseManifests([{ source: 'a.yaml', text: documents.join('\n---\n') }]);
  }

  async function apply(
    documents: readonly string[],
    options: ApplyOptions = {},
    from: Client = client,
  ): Promise<ApplyResult[]> {
    return Array.fromAsync(applyManifests(from, read(...documents), { clock, ...options }));
  }

  /** `count/a created`, or the reason of the failure. */
  function summaries(results: readonly ApplyResult[]): string[] {
    return results.map((result) => {
      const { kind, metadata } = result.manifest.object;
      const what = result.kind === 'applied' ? result.change : result.rejection.message;
      return `${kind}/${metadata.name} ${what}`;
    });
  }

  const configMap = (data: string = '{a: b}', metadata: string = '{name: a}') =>
    `{apiVersion: v1, kind: ConfigMap, metadata: ${metadata}, data: ${data}}`;
  const count = (spec: string = '{name: nginx, count: 1}', metadata: string = '{name: c}') =>
    `{apiVersion: demo.mark8s.io/v1, kind: Count, metadata: ${metadata}, spec: ${spec}}`;
  const namespace = (name: string) =>
    `{apiVersion: v1, kind: Namespace, metadata: {name: ${name}}}`;

  describe('for a batch', () => {
    test('reports the change of each object', async () => {
      assert.deepEqual(summaries(await apply([configMap()])), ['ConfigMap/a created']);
      assert.deepEqual(summaries(await apply([configMap()])), ['ConfigMap/a unchanged']);
      assert.deepEqual(summaries(await apply([configMap('{a: c}')])), ['ConfigMap/a configured']);
      const stored = await client.get(CONFIG_MAPS, { namespace: 'default', name: 'a' });
      assert.deepEqual(
        stored.metadata.managedFields?.map(({ manager, operation }) => [manager, operation]),
        [['crd-controller-apply', 'Apply']],
      );
    });

    test('applies namespaces, then definitions, then the other objects in their order', async () => {
      const documents = [
        count(undefined, '{name: c, namespace: prod}'),
        configMap(undefined, '{name: b, namespace: prod}'),
        DEFINITION,
        configMap(undefined, '{name: a, namespace: prod}'),
        namespace('prod'),
      ];
      assert.deepEqual(summaries(await apply(documents)), [
        'Namespace/prod created',
        'CustomResourceDefinition/counts.demo.mark8s.io created',
        'Count/c created',
        'ConfigMap/b created',
        'ConfigMap/a created',
      ]);
      assert.equal((await client.get(COUNTS, { namespace: 'prod', name: 'c' })).spec.count, 1);
    });

    test('continues after an object that is rejected', async () => {
      assert.deepEqual(
        summaries(await apply([configMap(undefined, '{name: A}'), configMap()])).at(1),
        'ConfigMap/a created',
      );
    });

    test('stops if the server cannot be reached or rejects the credentials', async () => {
      server.faults.failNext({ method: 'PATCH' }, 401);
      await assert.rejects(apply([configMap()]), (error) => isApiError(error, 'unauthorized'));
      const lost = behind(() => () => Promise.reject(new Error('no network')));
      await assert.rejects(apply([configMap()], {}, lost), (error) =>
        isApiError(error, 'unreachable'),
      );
      const controller = new AbortController();
      controller.abort(new Error('stopped'));
      await assert.rejects(apply([configMap()], { signal: controller.signal }), /^Error: stopped$/);
    });

    test('requests discovery once, and again only for a kind that is missing', async () => {
      await apply([configMap(), configMap(undefined, '{name: b}')]);
      const discoveries = () => requests.filter((request) => /^GET \/apis?$/.test(request)).length;
      assert.equal(discoveries(), 2);
      requests.length = 0;
      await apply([configMap(), count(), count(), count()]);
      assert.equal(discoveries(), 4);
    });

    test('finds a kind that was added during the apply', async () => {
      const results = applyManifests(client, read(configMap(), count()), { clock });
      assert.equal((await results.next()).done, false);
      await client.create(CUSTOM_RESOURCE_DEFINITIONS, countCrd());
      const { value } = await results.next();
      assert.deepEqual(summaries(value ? [value] : []), ['Count/c created']);
    });
  });

  describe('at the same time', () => {
    /** Number of PATCH requests in progress, and the highest number. */
    let inFlight: number;
    let peak: number;

    /** Delays the response to each PATCH of an object by its number of milliseconds. */
    const delayed = (delayMs: (name: string) => number) => {
      inFlight = 0;
      peak = 0;
      return behind((handler) => async (request) => {
        if (request.method !== 'PATCH') return handler(request);
        peak = Math.max(peak, ++inFlight);
        const ms = delayMs(nameIn(request.path));
        if (ms > 0) await clock.sleep(ms, request.signal);
        request.signal?.throwIfAborted();
        const response = await handler(request);
        inFlight--;
        return response;
      });
    };
    const nameIn = (path: string) => /\/([^/?]+)\?/.exec(path)?.[1] ?? '';
    const patched = () =>
      requests.filter((request) => request.startsWith('PATCH')).map((request) => nameIn(request));
    const maps = (...names: readonly string[]) =>
      names.map((name) => configMap(undefined, `{name: ${name}}`));
    const serviceAccount = (name: string) =>
      `{apiVersion: v1, kind: ServiceAccount, metadata: {name: ${name}}}`;
    const priority = (name: string) =>
      `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: ${name}}, value: 1}`;
    const pod = (name: string, priorityClassName: string) =>
      `{apiVersion: v1, kind: Pod, metadata: {name: ${name}}, spec: {priorityClassName: ${priorityClassName}, containers: [{name: a, image: b}]}}`;

    test('applies a limited number of objects, and yields their results in order', async () => {
      const names = Array.from({ length: 40 }, (_, index) => `map-${index}`);
      const from = delayed((name) => 100 - 2 * Number(name.slice(4)));
      const applying = apply(maps(...names), { concurrency: 4 }, from);
      await clock.advance(2000);
      assert.deepEqual(
        summaries(await applying),
        names.map((name) => `ConfigMap/${name} created`),
      );
      assert.equal(peak, 4);
      await assert.rejects(apply([], { concurrency: 0 }), RangeError);
    });

    test('applies the first object of each kind after all objects before it', async () => {
      const from = delayed((name) => (name === 'b' || name === 'c' ? 1000 : 0));
      const applying = apply(
        [...maps('a', 'b'), serviceAccount('c'), serviceAccount('d'), ...maps('e')],
        {},
        from,
      );
      await clock.advance(900);
      assert.deepEqual(patched(), ['a', 'b']);
      await clock.advance(200);
      assert.deepEqual(patched(), ['a', 'b', 'c']);
      await clock.advance(1000);
      assert.deepEqual(patched(), ['a', 'b', 'c', 'd', 'e']);
      assert.equal((await applying).length, 5);
    });

    test('applies an object again if the objects before it were in progress when it was rejected', async () => {
      const from = delayed((name) => (name === 'high' ? 1000 : 0));
      const applying = apply(
        [priority('low'), pod('a', 'low'), priority('high'), pod('b', 'high')],
        {},
        from,
      );
      await clock.advance(1000);
      assert.deepEqual(summaries(await applying), [
        'PriorityClass/low created',
        'Pod/a created',
        'PriorityClass/high created',
        'Pod/b created',
      ]);
      assert.deepEqual(patched(), ['low', 'a', 'high', 'b', 'b']);
    });

    test('does not repeat a rejection if nothing before it changed', async () => {
      const from = delayed(() => 100);
      const applying = apply(maps('A', 'B', 'C', 'D'), {}, from);
      await clock.advance(1000);
      await applying;
      assert.deepEqual(patched(), ['A', 'B', 'C', 'D']);
      await apply(maps('a', 'b'));
      requests.length = 0;
      const unchanged = apply(
        maps('a', 'b', 'C'),
        {},
        delayed((name) => (name === 'b' ? 100 : 0)),
      );
      await clock.advance(1000);
      await unchanged;
      assert.deepEqual(patched(), ['a', 'C', 'b']);
    });

    test('applies an object that occurs twice in order', async () => {
      let calls = 0;
      const from = delayed(() => (++calls === 2 ? 1000 : 0));
      const twice = [
        ...maps('first'),
        configMap('{a: old}', '{name: a}'),
        configMap('{a: new}', '{name: a, namespace: default}'),
      ];
      const applying = apply(twice, {}, from);
      await clock.advance(1000);
      await applying;
      const { data } = await client.get(CONFIG_MAPS, { namespace: 'default', name: 'a' });
      assert.equal(data?.['a'], 'new');
    });

    test('reports the objects in progress if the server fails, and starts no more', async () => {
      server.faults.failNext({ method: 'PATCH', name: 'c' }, 401);
      const from = delayed((name) => (name === 'd' ? 1000 : 0));
      const results: ApplyResult[] = [];
      const applying = (async () => {
        const options = { clock, concurrency: 3 };
        const batch = applyManifests(from, read(...maps('a', 'b', 'c', 'd', 'e', 'f')), options);
        for await (const result of batch) results.push(result);
      })();
      const ended = assert.rejects(applying, (error) => isApiError(error, 'unauthorized'));
      await clock.advance(1000);
      await ended;
      assert.deepEqual(summaries(results), [
        'ConfigMap/a created',
        'ConfigMap/b created',
        'ConfigMap/d created',
        'ConfigMap/e created',
      ]);
      assert.ok(!patched().includes('f'));
    });

    test('stops when the signal aborts', async () => {
      const from = delayed((name) => (name === 'a' ? 0 : 1000));
      const stop = new AbortController();
      const options = { concurrency: 2, signal: stop.signal };
      const ended = assert.rejects(
        apply(maps('a', 'b', 'c', 'd'), options, from),
        /^Error: stopped$/,
      );
      await clock.advance(500);
      stop.abort(new Error('stopped'));
      await ended;
      assert.deepEqual(patched(), ['a', 'b', 'c']);
      assert.equal((await client.list(CONFIG_MAPS, { namespace: 'default' })).items.length, 1);
    });

    test('waits for the objects in progress if its results are not read to the end', async () => {
      const from = delayed((name) => ({ b: 500, c: 1000 })[name] ?? 0);
      const batch = applyManifests(from, read(...maps('a', 'b', 'c')), { clock });
      await batch.next();
      const second = batch.next();
      await clock.advance(500);
      assert.equal((await second).done, false);
      assert.equal(inFlight, 1);
      const left = batch.return().then(() => inFlight);
      await clock.advance(500);
      assert.equal(await left, 0);
    });
  });

  describe('in a dry run', () => {
    test('reports the changes and stores nothing', async () => {
      await apply([configMap()]);
      const dryRun = true;
      const documents = (data: string) => [configMap(data), configMap(data, '{name: b}')];
      const before = await client.list(CONFIG_MAPS);
      assert.deepEqual(summaries(await apply(documents('{a: b}'), { dryRun })), [
        'ConfigMap/a unchanged',
        'ConfigMap/b created',
      ]);
      assert.deepEqual(summaries(await apply(documents('{a: c}'), { dryRun })), [
        'ConfigMap/a configured',
        'ConfigMap/b created',
      ]);
      assert.deepEqual(await client.list(CONFIG_MAPS), before);
    });

    test('rejects objects whose namespace or definition is only in the batch', async () => {
      const documents = [
        DEFINITION,
        namespace('prod'),
        count(),
        configMap('{}', '{name: a, namespace: prod}'),
      ];
      assert.deepEqual(summaries(await apply(documents, { dryRun: true })).slice(2), [
        'Count/c the server has no kind Count in demo.mark8s.io/v1: its definition is in this batch, and a dry run does not create it',
        'ConfigMap/a namespaces "prod" not found: the namespace is in this batch, and a dry run does not create it',
      ]);
    });
  });

  describe('for a definition', () => {
    /** Returns the CRD as not established until `ms` have passed. */
    const establishedAfter = (ms: number) =>
      behind((handler) => async (request) => {
        const response = await handler(request);
        const isCrd =
          request.method === 'GET' && request.path.includes('/customresourcedefinitions/');
        if (!isCrd || clock.monotonic() >= ms || response.status !== 200) return response;
        return changed(response, ({ status }) => {
          if (status) status.conditions = [{ type: 'Established', status: 'False' }];
        });
      });

    test('waits until it is established before it applies its objects', async () => {
      const applying = apply([DEFINITION, count()], {}, establishedAfter(5000));
      await clock.advance(4900);
      assert.ok(!requests.some((request) => request.includes('/counts/')));
      await clock.advance(2000);
      assert.deepEqual(summaries(await applying).at(1), 'Count/c created');
    });

    test('waits until discovery contains its kinds', async () => {
      const late = behind((handler) => async (request) => {
        const response = await handler(request);
        if (request.path !== '/apis' || clock.monotonic() >= 5000) return response;
        return changed(response, (groups) => {
          groups.items = groups.items.filter(({ metadata }) => metadata.name !== 'demo.mark8s.io');
        });
      });
      const applying = apply([DEFINITION, count()], {}, late);
      await clock.advance(4900);
      assert.ok(!requests.some((request) => request.includes('/counts/')));
      await clock.advance(2000);
      assert.deepEqual(summaries(await applying).at(1), 'Count/c created');
    });

    test('waits for discovery only if it may not read the definition, and for served versions', async () => {
      const denied = behind((handler) => async (request) => {
        const isCrd = request.method === 'GET' && request.path.includes('/customresourcedefinit');
        return isCrd
          ? answer(403, '{"kind":"Status","code":403,"reason":"Forbidden"}', 'application/json')
          : handler(request);
      });
      const crd = countCrd();
      const [version] = crd.spec.versions;
      const unserved = { ...version, name: 'v9', served: false, storage: false };
      const versions = [...crd.spec.versions, unserved];
      const definition = JSON.stringify({ ...crd, spec: { ...crd.spec, versions } });
      const applying = apply([definition, count()], {}, denied);
      await clock.advance(1000);
      assert.deepEqual(summaries(await applying).at(1), 'Count/c created');
    });

    test('stops waiting once after the timeout and continues with other objects', async () => {
      const options = { servedTimeoutMs: 3000 };
      const applying = apply(
        [DEFINITION, count(), count(), configMap()],
        options,
        establishedAfter(10_000),
      );
      await clock.advance(4100);
      const why =
        'counts.demo.mark8s.io is not served after 3s: its condition Established is not True';
      assert.deepEqual(summaries(await applying).slice(1), [
        `Count/c ${why}`,
        `Count/c ${why}`,
        'ConfigMap/a created',
      ]);
    });

    test('does not wait if its names are not accepted', async () => {
      const crd = countCrd();
      const group = {
        ...crd.spec,
        names: { ...crd.spec.names, plural: 'others', shortNames: [], singular: 'other' },
      };
      const rival = { ...crd, metadata: { name: 'others.demo.mark8s.io' }, spec: group };
      await apply([JSON.stringify(rival)]);
      const [, rejected] = summaries(await apply([DEFINITION, count()]));
      assert.match(
        rejected ?? '',
        /^Count\/c the names of counts\.demo\.mark8s\.io are not accepted: .*already in use/,
      );
    });

    test('retries while an API server does not serve it yet', async () => {
      let bare = 2;
      const slow = behind((handler) => async (request) => {
        if (!request.path.includes('/counts/') || bare-- <= 0) return handler(request);
        return answer(404, '404 page not found', 'text/plain');
      });
      const applying = apply([DEFINITION, count()], {}, slow);
      await clock.advance(3000);
      assert.deepEqual(summaries(await applying).at(1), 'Count/c created');
    });
  });

  describe('for an object', () => {
    test('uses the default namespace, and rejects another namespace if enforced', async () => {
      await apply([namespace('prod')]);
      const there = configMap(undefined, '{name: b, namespace: default}');
      const options = { namespace: 'prod', enforceNamespace: true };
      assert.deepEqual(summaries(await apply([configMap(), there, namespace('dev')], options)), [
        'Namespace/dev created',
        'ConfigMap/a created',
        'ConfigMap/b its namespace is default, expected prod',
      ]);
      assert.deepEqual(summaries(await apply([there], { namespace: 'prod' })), [
        'ConfigMap/b created',
      ]);
      const { items } = await client.list(CONFIG_MAPS);
      assert.deepEqual(
        items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).toSorted(),
        ['default/b', 'prod/a'],
      );
    });

    test('suggests similar kinds if the kind does not exist', async () => {
      await apply([DEFINITION]);
      const of = (apiVersion: string, kind: string) =>
        `{apiVersion: ${apiVersion}, kind: ${kind}, metadata: {name: a}}`;
      const results = await apply([
        of('apps/v1', 'Deploymnet'),
        of('v1', 'Deployment'),
        of('demo.mark8s.io/v2', 'Count'),
        of('demo.mark8.io/v1', 'count'),
        of('example.com/v1', 'Nothing'),
        of('v1', 'K'.repeat(10_000)),
      ]);
      assert.deepEqual(
        results.map(
          (result) =>
            result.kind === 'rejected' &&
            result.rejection.reason === 'unknownKind' &&
            result.rejection.suggestions,
        ),
        [
          ['apps/v1 Deployment'],
          ['apps/v1 Deployment'],
          ['demo.mark8s.io/v1 Count'],
          ['demo.mark8s.io/v1 Count'],
          [],
          [],
        ],
      );
      assert.deepEqual(summaries(results).slice(0, 1), [
        'Deploymnet/a the server has no kind Deploymnet in apps/v1: did you mean apps/v1 Deployment?',
      ]);
    });

    test('rejects a field that the kind does not have, and names the field', async () => {
      const [rejected] = summaries(
        await apply([DEFINITION, count('{name: a, count: 1, cuont: 2}')]),
      ).slice(1);
      assert.match(rejected ?? '', /^Count\/c .*\.spec\.cuont: field not declared in schema/);
    });

    test('reports a conflict with the field managers, and force takes over the fields', async () => {
      await apply([configMap('{a: b, b: c}')]);
      const conflicting = [configMap('{a: c, b: d}')];
      const [conflict] = await apply(conflicting, { fieldManager: 'other' });
      assert.ok(conflict?.kind === 'rejected' && conflict.rejection.reason === 'conflict');
      assert.deepEqual(conflict.rejection.conflicts, [
        { field: '.data.a', manager: '"crd-controller-apply"' },
        { field: '.data.b', manager: '"crd-controller-apply"' },
      ]);
      assert.equal(
        conflict.rejection.message,
        '2 fields were set to another value by other managers: .data.a, .data.b by "crd-controller-apply"',
      );
      const forced = await apply(conflicting, { fieldManager: 'other', force: true });
      assert.deepEqual(summaries(forced), ['ConfigMap/a configured']);
    });

    test('reports an unknown change if the object can be written but not read', async () => {
      const access = new Access(
        ({ verb, resource }) => verb !== 'get' || resource !== 'configmaps',
      );
      const results = await apply([configMap()], {}, behind(access.around));
      assert.deepEqual(summaries(results), ['ConfigMap/a unknown']);
    });

    test('rejects a kind that does not support patch without sending it', async () => {
      const readOnly = behind((handler) => async (request) => {
        const response = await handler(request);
        if (request.path !== '/api') return response;
        return changed(response, ({ items }) => {
          for (const { versions } of items) {
            for (const { resources } of versions) {
              for (const resource of resources) resource.verbs = ['get', 'list'];
            }
          }
        });
      });
      const results = await apply([configMap()], {}, readOnly);
      assert.deepEqual(summaries(results), [
        'ConfigMap/a configmaps cannot be applied: the server supports only get, list',
      ]);
    });
  });

  test('no message about a Secret contains one of its values', async () => {
    const secret = (content: string) =>
      `{apiVersion: v1, kind: Secret, metadata: {name: s}, ${content}}`;
    const documents = [
      'data: {password: hunter2}',
      'stringData: {password: 4242}',
      'stringdata: {password: hunter2}',
      'type: [hunter2]',
      'data: [hunter2]',
    ].map(secret);
    const quoting = behind((handler) => (request: HttpRequest) => {
      if (request.method !== 'PATCH') return handler(request);
      const message = `Secret "s" is invalid: data[password]: Invalid value: "${String(request.body)}": bad, unknown field "data.a"`;
      const causes = [{ reason: 'FieldValueInvalid', message, field: 'data[password]' }];
      const status = { kind: 'Status', reason: 'Invalid', code: 422, message, details: { causes } };
      return Promise.resolve(answer(422, JSON.stringify(status), 'application/json'));
    });
    for (const from of [client, quoting]) {
      const results = await apply(documents, {}, from);
      assert.equal(results.length, 5);
      for (const result of results) {
        assert.ok(result.kind === 'rejected' && result.rejection.reason === 'server');
        const { message, error } = result.rejection;
        assert.doesNotMatch(JSON.stringify([message, error, error.message]), /hunter2|4242/);
        assert.match(message, /the server rejected the Secret \(\d+ \w+\)/);
      }
    }
    // Other objects are not secret, so the message of the server is shown.
    const [shown] = await apply([configMap('{a: hunter2}')], {}, quoting);
    assert.ok(shown?.kind === 'rejected');
    assert.match(shown.rejection.message, /Invalid value: .*hunter2/);
    const [first] = summaries(await apply(documents.slice(0, 1), {}, quoting));
    assert.match(
      first ?? '',
      /data\[password\]: FieldValueInvalid, unknown field "data\.a"\. Its message is omitted/,
    );
  });

  function answer(status: number, body: string, type: string) {
    return {
      status,
      headers: { 'content-type': type },
      body: (async function* () {
        yield Buffer.from(body);
      })(),
    };
  }

  /** Overrides of the discovery response. */
  interface GroupList {
    items: {
      readonly metadata: { readonly name?: string };
      readonly versions: readonly { readonly resources: readonly { verbs: string[] }[] }[];
    }[];
  }

  /** Returns the response with another body. */
  async function changed(
    response: Awaited<ReturnType<HttpHandler>>,
    change: (body: GroupList & CustomResourceDefinition) => void,
  ) {
    const body: GroupList & CustomResourceDefinition = JSON.parse(
      Buffer.concat(await Array.fromAsync(response.body)).toString(),
    );
    change(body);
    return answer(response.status, JSON.stringify(body), response.headers['content-type'] ?? '');
  }
});
