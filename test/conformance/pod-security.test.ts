import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { skipBefore } from '../support/skip.ts';
import type { Json, Reply } from './api.ts';
import { Api, assertRejected } from './api.ts';
import { pods } from './objects.ts';

const PREFIX = 'pod-security.kubernetes.io/';

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

const labelled = (labels: Json) =>
  Object.fromEntries(Object.entries(labels).map(([name, value]) => [PREFIX + name, value]));

/** Creates a namespace with these labels of Pod Security. Returns its name. */
async function namespaceWith(labels: Json): Promise<string> {
  const metadata = { generateName: 'security-', labels: labelled(labels) };
  const { name } = (await api.made(api.post('/api/v1/namespaces', { metadata }))).metadata;
  await api.until('the default ServiceAccount is not needed or exists', async () => {
    const accounts = `/api/v1/namespaces/${name}/serviceaccounts`;
    const { status } = await api.post(accounts, { metadata: { name: 'default' } });
    return status === 201 || status === 409;
  });
  return name;
}

const container = (securityContext: Json, name: string = 'c', more: Json = {}) => ({
  name,
  image: 'nginx',
  securityContext,
  ...more,
});
const one = (securityContext: Json, spec: Json = {}) => ({
  containers: [container(securityContext)],
  ...spec,
});

const GOOD = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
  seccompProfile: { type: 'RuntimeDefault' },
};
const ESCALATION =
  'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)';
const NON_ROOT =
  'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)';

/** Specs of Pods, and why they are forbidden: undefined if they are allowed. */
type Rows = readonly (readonly [what: string, spec: Json, why: string | undefined])[];

const BASELINE: Rows = [
  ['no security context', one({}), undefined],
  [
    'AppArmor',
    one({ appArmorProfile: { type: 'Unconfined' } }),
    'forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined")',
  ],
  [
    'capabilities',
    one({ capabilities: { add: ['SYS_ADMIN', 'CHOWN', 'NET_ADMIN'] } }),
    'non-default capabilities (container "c" must not include "NET_ADMIN", "SYS_ADMIN" in securityContext.capabilities.add)',
  ],
  [
    'namespaces of the host',
    one({}, { hostNetwork: true, hostPID: true, hostIPC: true }),
    'host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)',
  ],
  [
    'paths of the host',
    one(
      {},
      {
        volumes: [
          { name: 'a', hostPath: { path: '/' } },
          { name: 'b', emptyDir: {} },
        ],
      },
    ),
    'hostPath volumes (volume "a")',
  ],
  [
    'ports of the host',
    {
      containers: [80, 9].map((port) =>
        container({}, `c${port}`, { ports: [{ containerPort: port, hostPort: port }] }),
      ),
    },
    'hostPort (containers "c80", "c9" use hostPorts 80, 9)',
  ],
  [
    'privileged',
    {
      containers: [container({ privileged: true })],
      initContainers: [container({ privileged: true }, 'i')],
    },
    'privileged (containers "i", "c" must not set securityContext.privileged=true)',
  ],
  [
    'SELinux',
    one(
      { seLinuxOptions: { type: 'container_t', role: 'r' } },
      { securityContext: { seLinuxOptions: { type: 'x_t', user: 'u' } } },
    ),
    'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: type "x_t"; user may not be set; role may not be set)',
  ],
  [
    'seccomp',
    one({ seccompProfile: { type: 'Unconfined' } }),
    'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
  ],
  [
    'sysctls',
    one(
      {},
      {
        securityContext: {
          sysctls: [
            { name: 'kernel.msgmax', value: '1' },
            { name: 'net.ipv4.tcp_rmem', value: '1' },
          ],
        },
      },
    ),
    'forbidden sysctls (kernel.msgmax)',
  ],
  [
    'processes of a Windows host',
    one(
      {},
      {
        os: { name: 'windows' },
        hostNetwork: true,
        securityContext: { windowsOptions: { hostProcess: true } },
      },
    ),
    'host namespaces (hostNetwork=true), hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)',
  ],
];

const RESTRICTED: Rows = [
  ['a restricted Pod', one(GOOD), undefined],
  [
    'no security context',
    one({}),
    `${ESCALATION}, unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), ${NON_ROOT}, seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`,
  ],
  [
    'capabilities',
    one({ ...GOOD, capabilities: { add: ['CHOWN'] } }),
    'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; container "c" must not include "CHOWN" in securityContext.capabilities.add)',
  ],
  [
    'volumes',
    one(GOOD, {
      volumes: [
        { name: 'a', hostPath: { path: '/' } },
        { name: 'b', nfs: { server: 's', path: '/' } },
      ],
    }),
    'restricted volume types (volumes "a", "b" use restricted volume types "hostPath", "nfs")',
  ],
  [
    'root',
    one({ ...GOOD, runAsNonRoot: false, runAsUser: 0 }),
    'runAsNonRoot != true (container "c" must not set securityContext.runAsNonRoot=false), runAsUser=0 (container "c" must not set runAsUser=0)',
  ],
  [
    'seccomp for some containers',
    { containers: [container(GOOD), container({ ...GOOD, seccompProfile: null }, 'd')] },
    'seccompProfile (pod or container "d" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ],
  ['Windows', one({ runAsNonRoot: true }, { os: { name: 'windows' } }), undefined],
];

async function assertAllowed(namespace: string, policy: string, rows: Rows): Promise<void> {
  for (const [what, spec, why] of rows) {
    const reply = await api.post(`${pods(namespace)}?dryRun=All`, {
      metadata: { name: 'p' },
      spec,
    });
    if (why === undefined) assert.equal(reply.status, 201, `${what}: ${reply.text}`);
    else {
      const message = `pods "p" is forbidden: violates PodSecurity "${policy}": ${why}`;
      assertRejected(reply, { code: 403, reason: 'Forbidden', message });
    }
  }
}

test('a namespace forbids Pods that its level does not allow', skipBefore(35), async () => {
  await assertAllowed(await namespaceWith({ enforce: 'baseline' }), 'baseline:latest', BASELINE);
  const restricted = await namespaceWith({ enforce: 'restricted' });
  await assertAllowed(restricted, 'restricted:latest', RESTRICTED);
  await assertAllowed(await namespaceWith({ warn: 'restricted' }), '', [
    ['no level', one({}), undefined],
  ]);
});

test('a level of an older version has the checks of that version', skipBefore(35), async () => {
  const probe = container(GOOD, 'c', { livenessProbe: { tcpSocket: { port: 80, host: 'a' } } });
  const probed = { containers: [probe] };
  const why = 'probe or lifecycle host (container "c" uses probe or lifecycle host "a")';
  const at = (minor: number) =>
    namespaceWith({ enforce: 'restricted', 'enforce-version': `v1.${minor}` });
  await assertAllowed(await at(34), 'restricted:v1.34', [['a host of a probe', probed, why]]);
  await assertAllowed(await at(33), 'restricted:v1.33', [['a host of a probe', probed, undefined]]);
  const sysctls = { sysctls: [{ name: 'net.ipv4.tcp_rmem', value: '1' }] };
  await assertAllowed(await at(18), 'restricted:v1.18', [
    ['no security context', one({}), `${ESCALATION}, ${NON_ROOT}`],
    ['sysctls', one(GOOD, { securityContext: sysctls }), 'forbidden sysctls (net.ipv4.tcp_rmem)'],
    ['Windows', one({ runAsNonRoot: true }, { os: { name: 'windows' } }), ESCALATION],
  ]);
});

function warningsOf({ headers }: Reply): string[] {
  const { warning = '' } = headers;
  return Array.from(warning.matchAll(/299 - "((?:\\.|[^"\\])*)"/g), ([, text = '']) =>
    text.replaceAll(/\\(.)/g, '$1'),
  );
}

test('a namespace warns of Pods and templates that its level would not allow', async () => {
  const namespace = await namespaceWith({ enforce: 'baseline', warn: 'restricted' });
  const spec = one({ ...GOOD, allowPrivilegeEscalation: true });
  const text = `would violate PodSecurity "restricted:latest": ${ESCALATION}`;
  const ofPod = await api.post(`${pods(namespace)}?dryRun=All`, { metadata: { name: 'p' }, spec });
  assert.deepEqual([ofPod.status, warningsOf(ofPod)], [201, [text]]);
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments?dryRun=All`;
  const labels = { app: 'web' };
  const deploy = (podSpec: Json) =>
    api.post(deployments, {
      metadata: { name: 'd' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: podSpec },
      },
    });
  assert.deepEqual(warningsOf(await deploy(spec)), [text]);
  const privileged = await deploy(
    one({ ...GOOD, privileged: true, allowPrivilegeEscalation: true }),
  );
  assert.equal(privileged.status, 201, 'templates are not forbidden');
  const enforced = await namespaceWith({ enforce: 'restricted' });
  const jobs = `/apis/batch/v1/namespaces/${enforced}/jobs?dryRun=All`;
  const template = { spec: { ...spec, restartPolicy: 'Never' } };
  const job = await api.post(jobs, { metadata: { name: 'j' }, spec: { template } });
  assert.deepEqual(warningsOf(job), [text]);
});

test('labels of a namespace must be valid, and existing Pods cause warnings', async () => {
  const namespaces = '/api/v1/namespaces';
  const levels = 'must be one of privileged, baseline, restricted';
  const versions = 'must be "latest" or "v1.x"';
  const labels = labelled({
    enforce: 'x',
    'audit-version': '1.2',
    'warn-version': `v1.${'9'.repeat(20)}`,
  });
  assertRejected(await api.post(namespaces, { metadata: { name: 'invalid', labels } }), {
    code: 422,
    reason: 'Invalid',
    message: /^Namespace "invalid" is invalid: /,
    causes: [
      [`metadata.labels[${PREFIX}enforce]`, `Invalid value: "x": ${levels}`],
      [`metadata.labels[${PREFIX}audit-version]`, `Invalid value: "1.2": ${versions}`],
      [
        `metadata.labels[${PREFIX}warn-version]`,
        `Invalid value: "v1.${'9'.repeat(20)}": ${versions}`,
      ],
    ],
  });
  const namespace = await namespaceWith({});
  const reference = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    name: 'r',
    uid: 'r',
    controller: true,
  };
  for (const [name, ownerReferences, spec] of [
    ['b', [reference], one({})],
    ['a', [reference], one({})],
    ['host', [], one(GOOD, { hostNetwork: true })],
  ] as const) {
    await api.made(api.post(pods(namespace), { metadata: { name, ownerReferences }, spec }));
  }
  const path = `${namespaces}/${namespace}`;
  const level = (enforce: string) =>
    api.patch(`${path}?dryRun=All`, { metadata: { labels: labelled({ enforce }) } });
  await api.until(
    'the Pods are seen',
    async () => warningsOf(await level('restricted')).length === 3,
  );
  assert.deepEqual(warningsOf(await level('restricted')), [
    `existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "restricted:latest"`,
    'a (and 1 other pod): allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile',
    'host: host namespaces',
  ]);
  assert.deepEqual(warningsOf(await level('privileged')), []);
});

test('a change of a Pod is checked if it changes a container', async () => {
  const namespace = await namespaceWith({});
  await api.made(api.post(pods(namespace), { metadata: { name: 'p' }, spec: one({}) }));
  await api.patch(`/api/v1/namespaces/${namespace}`, {
    metadata: { labels: labelled({ enforce: 'restricted' }) },
  });
  const path = `${pods(namespace)}/p`;
  const image = (value: string) =>
    api.patch(
      `${path}?dryRun=All`,
      [{ op: 'replace', path: '/spec/containers/0/image', value }],
      'application/json-patch+json',
    );
  await api.until('the level applies', async () => (await image('other')).status === 403);
  assert.equal((await image('nginx')).status, 200);
  const label = await api.patch(path, { metadata: { labels: { a: 'b' } } });
  assert.equal(label.status, 200);
  const ephemeralContainers = [{ name: 'debug', image: 'nginx' }];
  const debug = await api.patch(
    `${path}/ephemeralcontainers`,
    { spec: { ephemeralContainers } },
    'application/strategic-merge-patch+json',
  );
  assert.equal(debug.status, 403);
});
