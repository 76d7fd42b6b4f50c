import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS, LEASES, NODES } from '../../../../src/api/builtin.ts';
import type { CustomResourceDefinition } from '../../../../src/api/builtin.ts';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { preflight } from '../../../../src/cli/commands/check.ts';
import type { PreflightPlan } from '../../../../src/cli/commands/check.ts';
import { allPassed } from '../../../../src/cli/check/check-result.ts';
import type { CheckResult } from '../../../../src/cli/check/check-result.ts';
import { ServerClock } from '../../../../src/cli/check/server-check.ts';
import { installCommand } from '../../../../src/cli/common/own-command.ts';
import { readerOf } from '../../../../src/cli/program/installation.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { HttpHandler, HttpResponse } from '../../../../src/util/http.ts';
import { webhookNames, webhookRules } from '../../../../src/webhook/manifests.ts';
import { Webhooks } from '../../../../src/webhook/webhooks.ts';
import { crdOf } from '../../../support/test-cluster.ts';
import { manifestsOf, rulesOf } from '../../../support/roles.ts';
import type { PolicyRule } from '../../../support/roles.ts';
import { PROGRAM } from '../../../support/own-program.ts';

const COUNT = { name: 'count', isOnByDefault: true, resource: COUNTS, isBuiltin: false };
const POD_COUNT = { name: 'pod-count', isOnByDefault: false, resource: NODES, isBuiltin: true };
const PLAN: PreflightPlan = { controllers: [COUNT], namespaces: [] };
const LEASE = { namespace: 'sys', names: ['crd-controller'] };

const ROLES = [
  'rbac/controllers/count.yaml',
  'rbac/events/events.yaml',
  'rbac/identity/leader-election.yaml',
].flatMap((file) => rulesOf(manifestsOf(file)));

describe('preflight', () => {
  let clock: FakeClock;
  let server: ApiServer;
  let around: (handler: HttpHandler) => HttpHandler;

  beforeEach(() => {
    clock = new FakeClock(Date.UTC(2026, 8, 1));
    around = (handler) => handler;
    server = new ApiServer({
      clock,
      authenticate: true,
      users: [
        { token: 'installed', name: 'installed', rules: ROLES },
        { token: 'powerless', name: 'powerless', rules: [] },
        {
          token: 'poor',
          name: 'poor',
          rules: ROLES.map(withoutCreate),
        },
        {
          token: 'plain',
          name: 'plain',
          rules: ROLES.filter(({ resources }) => !resources.includes('counts/finalizers')),
        },
      ],
    });
  });

  const clientOf = (token: string, handler: HttpHandler = server.handler) =>
    new HttpClient({
      handler: (request) =>
        handler({
          ...request,
          headers: { ...request.headers, ...(token && { authorization: `Bearer ${token}` }) },
        }),
      server: 'https://here',
      clock,
    });

  async function look(
    plan: Partial<PreflightPlan> = {},
    token = server.token,
  ): Promise<CheckResult[]> {
    const serverClock = new ServerClock(clock);
    const dated: HttpHandler = async (request) => {
      const response = await server.handler(request);
      return withDate(response, clock.now());
    };
    const client = clientOf(token, serverClock.around(around(dated)));
    const { deploy } = PROGRAM;
    assert.ok(deploy);
    const read = readerOf(deploy);
    const deps = {
      client,
      server: 'https://here',
      clock,
      serverClock,
      read,
      install: (part: string) => installCommand('crd-controller', part, {}),
    };
    return preflight(deps, { ...PLAN, ...plan }, new AbortController().signal);
  }

  const rowsOf = (results: readonly CheckResult[]) =>
    results.map(({ check, result }) => `${check}: ${result}`);
  const row = (results: readonly CheckResult[], check: string): CheckResult =>
    results.find((each) => each.check === check) ?? assert.fail(rowsOf(results).join('\n'));

  const install = () => clientOf(server.token).create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(COUNTS));

  it('passes for a user with the roles of an installation, and changes nothing', async () => {
    await install();
    const before = server.requests.recent.length;
    const results = await look({ leases: LEASE }, 'installed');
    assert.deepEqual(rowsOf(results), [
      'API server: ok',
      'version: ok',
      'clock: ok',
      'CRD counts.demo.mark8s.io: ok',
      'permissions of count: ok',
      'permissions of events: ok',
      'permissions of leader election: ok',
      'Lease sys/crd-controller: ok',
    ]);
    assert.match(row(results, 'API server').detail, /responded in 0ms; user "installed"$/);
    assert.equal(row(results, 'CRD counts.demo.mark8s.io').detail, 'serves v1');
    for (const { method, path } of server.requests.recent.slice(before)) {
      assert.ok(method === 'GET' || /\/selfsubject\w*reviews$/.test(path), `${method} ${path}`);
    }
  });

  it('checks the webhooks of the program, and the permissions for their certificate', async () => {
    const entries = new Webhooks().validates(COUNTS, () => []).entries();
    const names = webhookNames('crd-controller', 'sys');
    const rules = webhookRules(entries, names);
    const plan = { webhooks: { entries, names, managesCertificate: true } };
    const missing = (await look(plan, 'installed')).filter(
      ({ check }) => check === 'permissions of webhooks',
    );
    assert.equal(missing.length, rules.namespace.length + rules.cluster.length);
    const results = await look(plan);
    assert.match(row(results, 'permissions of webhooks').detail, /granted$/);
    const { detail, next } = row(results, 'ValidatingWebhookConfiguration crd-controller');
    assert.equal(detail, 'not installed');
    assert.match(next?.join() ?? '', /crd-controller manifests --only=webhook \| kubectl apply/);
  });

  it('reports the state of a CRD to a user who can read CRDs', async () => {
    const next = () => row(results, 'CRD counts.demo.mark8s.io').next?.join() ?? '';
    const detail = () => row(results, 'CRD counts.demo.mark8s.io').detail;
    let results = await look();
    assert.equal(detail(), 'not installed');
    assert.match(next(), /crd-controller manifests --only=crds \| kubectl apply/);
    await install();
    results = await look();
    assert.equal(detail(), 'Established, serves v1');
    const admin = clientOf(server.token);
    const at = { name: 'counts.demo.mark8s.io' };
    const crd = await admin.get(CUSTOM_RESOURCE_DEFINITIONS, at);
    const [v1] = crd.spec.versions;
    const versions = [
      { ...v1!, served: false },
      { ...v1!, name: 'v2', storage: false },
    ];
    await admin.patch(CUSTOM_RESOURCE_DEFINITIONS, at, {
      type: 'merge',
      body: { spec: { versions } },
    });
    results = await look();
    assert.equal(detail(), 'serves v2, but this release requires v1');
  });

  it('reports why an installed CRD is not served', async () => {
    await install();
    const refused = async (change: (crd: CustomResourceDefinition) => object) => {
      around = (handler) => async (request) => {
        const response = await handler(request);
        if (!request.path.includes('/customresourcedefinitions/')) return response;
        return jsonOf(change(JSON.parse(await textOf(response))));
      };
      const { result, detail, next } = row(await look(), 'CRD counts.demo.mark8s.io');
      return [result, detail, next?.length];
    };
    const conditions = (...conditions: object[]) => ({ status: { conditions } });
    for (const type of ['Established', 'NamesAccepted']) {
      const no = { type, status: 'False', reason: 'TakenItem', message: 'by others' };
      assert.deepEqual(await refused((crd) => ({ ...crd, ...conditions(no) })), [
        'failed',
        `not served: condition ${type} is False, TakenItem: by others`,
        1,
      ]);
    }
    assert.deepEqual(await refused((crd) => ({ ...crd, ...conditions() })), [
      'failed',
      'not Established yet',
      1,
    ]);
    const deletionTimestamp = '2026-09-01T00:00:00Z';
    assert.deepEqual(
      await refused((crd) => ({ ...crd, metadata: { ...crd.metadata, deletionTimestamp } })),
      ['failed', 'being deleted: waits until its objects are deleted', 1],
    );
  });

  it('reports a version that is not served to a user who cannot read CRDs', async () => {
    const { detail, result } = row(await look({}, 'installed'), 'CRD counts.demo.mark8s.io');
    assert.deepEqual(
      [result, detail],
      ['failed', 'v1 is not served; no permission to read the CRD'],
    );
  });

  it('reports the rule and the command for each missing permission', async () => {
    await install();
    const results = await look({ leases: LEASE, namespaces: ['a'] }, 'poor');
    const missing = results.filter(({ result }) => result === 'failed');
    assert.deepEqual(
      missing.map(({ check, detail, next }) => [check, detail].concat(next ?? [])),
      [
        [
          'permissions of count',
          'cannot create pods in namespace a',
          'Add this rule to a Role or ClusterRole of the user: {apiGroups: [""], resources: ["pods"], verbs: ["create"]}',
          'Verify: kubectl auth can-i create pods --namespace=a --as=poor',
        ],
        ...['a', 'sys'].map((namespace) => [
          'permissions of events',
          `cannot create events in namespace ${namespace}`,
          'Add this rule to a Role or ClusterRole of the user: {apiGroups: [""], resources: ["events"], verbs: ["create"]}',
          `Verify: kubectl auth can-i create events --namespace=${namespace} --as=poor`,
        ]),
        [
          'permissions of leader election',
          'cannot create leases of coordination.k8s.io in namespace sys',
          'Add this rule to a Role or ClusterRole of the user: {apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"]}',
          'Verify: kubectl auth can-i create leases.coordination.k8s.io --namespace=sys --as=poor',
        ],
      ],
    );
  });

  it('reports all missing permissions', async () => {
    await install();
    const results = await look({ leases: LEASE }, 'powerless');
    const missing = results.filter(({ check }) => check.startsWith('permissions of '));
    assert.ok(missing.length > 6, rowsOf(missing).join());
    for (const { result } of missing) assert.notEqual(result, 'ok');
    const verbs = missing.flatMap(({ detail }) =>
      (/cannot ([\w, ]+?) \w+(?:\/| )/.exec(detail)?.[1] ?? '').split(', '),
    );
    assert.ok(verbs.length > 10, verbs.join());
  });

  it('checks controllers that are off by default, and no CRD of built-in kinds', async () => {
    const results = await look({ controllers: [POD_COUNT] }, 'poor');
    assert.equal(
      results.some(({ check }) => check.startsWith('CRD')),
      false,
    );
    assert.match(
      row(results, 'permissions of pod-count').next?.[0] ?? '',
      /^Add this rule to a ClusterRole of the user: \{apiGroups: \[""\], resources: \["nodes"\]/,
    );
  });

  it('checks the permissions for the review APIs if an endpoint is protected', async () => {
    const results = await look({ hasProtectedEndpoints: true }, 'installed');
    assert.deepEqual(
      results
        .filter(({ check }) => check === 'permissions of endpoints')
        .map(({ detail }) => detail),
      [
        'cannot create tokenreviews of authentication.k8s.io in all namespaces',
        'cannot create subjectaccessreviews of authorization.k8s.io in all namespaces',
      ],
    );
  });

  it('warns of a missing permission that only an admission plugin checks', async () => {
    await install();
    const results = await look({}, 'plain');
    const { result, detail, next } = row(results, 'permissions of count');
    assert.equal(result, 'warning');
    assert.match(
      detail,
      /^cannot update counts\/finalizers of demo\.mark8s\.io .*if the admission plugin OwnerReferencesPermissionEnforcement is enabled/,
    );
    assert.match(
      next?.[0] ?? '',
      /^Add this rule to a ClusterRole of the user: .*counts\/finalizers/,
    );
    assert.ok(allPassed(results), rowsOf(results).join());
  });

  it('checks the Leases of this installation by name', async () => {
    const results = await look({ leases: { namespace: 'sys', names: ['mine'] } }, 'installed');
    const { detail, next } = row(results, 'permissions of leader election');
    assert.equal(
      detail,
      'cannot get, watch, update leases of coordination.k8s.io named mine in namespace sys',
    );
    assert.match(
      next?.join() ?? '',
      /resourceNames: \["mine"\].*can-i get leases\.coordination\.k8s\.io\/mine/,
    );
    assert.equal(row(results, 'Lease sys/mine').result, 'skipped');
  });

  it('reports the holder and the last renewal of the Lease, by the clock of the server', async () => {
    const admin = clientOf(server.token);
    const renewTime = new Date(clock.now()).toISOString().replace('Z', '000Z');
    await admin.create(LEASES, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace: 'default', name: 'x' },
      spec: {
        holderIdentity: 'pod-1_abc',
        leaseDurationSeconds: 15,
        acquireTime: renewTime,
        renewTime,
      },
    });
    const lease = async () =>
      row(await look({ leases: { namespace: 'default', names: ['x'] } }), 'Lease default/x');
    await clock.advance(4000);
    assert.deepEqual(await lease(), {
      check: 'Lease default/x',
      result: 'ok',
      detail: 'held by "pod-1_abc" since 2026-09-01T00:00:00.000000Z, renewed 4s ago',
    });
    await clock.advance(60_000);
    const { result, detail, next } = await lease();
    assert.equal(result, 'warning');
    assert.match(detail, /not renewed for 1m4s: another replica acquires it$/);
    assert.match(next?.join() ?? '', /grep pod-1$/);
  });

  it('fails if the clocks differ', async () => {
    around = (handler) => async (request) => {
      return withDate(await handler(request), clock.now() - 3_600_000);
    };
    const { result, detail } = row(await look(), 'clock');
    assert.equal(result, 'failed');
    assert.match(detail, /^59m5\ds ahead of the server's clock: Ats start at the wrong time/);
  });

  it('stops if the server cannot be reached, or rejects the credentials', async () => {
    around = () => () => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }));
    const [refused, ...none] = await look();
    assert.deepEqual([refused?.check, refused?.result, none], ['API server', 'failed', []]);
    assert.match(refused?.detail ?? '', /connection refused/);
    around = (handler) => handler;
    const [unknown] = await look({}, 'unknown');
    assert.match(unknown?.next?.[0] ?? '', /^Renew the token/);
  });

  it('requests credentials if access reviews are forbidden, as for anonymous users', async () => {
    const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Forbidden' };
    around = (handler) => async (request) =>
      request.path.includes('/selfsubject')
        ? jsonOf({ ...status, message: 'no', code: 403 }, 403)
        : handler(request);
    const results = await look();
    assert.match(row(results, 'API server').detail, /responded in 0ms$/);
    assert.match(row(results, 'permissions of count').next?.[0] ?? '', /^Set credentials/);
    const [anonymous] = await look({}, '');
    assert.equal(anonymous?.result, 'ok', 'the version is public');
  });

  it('reports server versions that are not tested', async () => {
    const version = async (minor: string): Promise<CheckResult> => {
      around = (handler) => async (request) =>
        request.path === '/version'
          ? jsonOf({ major: '1', minor, gitVersion: `v1.${minor}` })
          : handler(request);
      return row(await look(), 'version');
    };
    assert.equal((await version('20')).result, 'failed');
    assert.equal((await version('99')).result, 'warning');
    assert.equal((await version('x')).result, 'warning');
  });
});

function withoutCreate(rule: PolicyRule): PolicyRule {
  return { ...rule, verbs: rule.verbs.filter((verb) => verb !== 'create') };
}

function withDate(response: HttpResponse, ms: number): HttpResponse {
  return { ...response, headers: { ...response.headers, date: new Date(ms).toUTCString() } };
}

function jsonOf(value: unknown, status: number = 200): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json' },
    body: (async function* () {
      yield Buffer.from(JSON.stringify(value));
    })(),
  };
}

async function textOf({ body }: HttpResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
