import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { DEPLOYMENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import { equalJson } from '../../src/api/equal.ts';
import { toJsonPointer, valueAt } from '../../src/api/field-path.ts';
import type { FieldPath } from '../../src/api/field-path.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { JsonSchema } from '../../src/api/json-schema.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import { linkedSchema, schemaName } from '../../src/apiserver/schema/builtin-schemas.ts';
import { KINDS, SampleObject } from '../support/kinds.ts';
import { Simulation } from '../support/simulation.ts';

/** A part of an owned object, whose fields another client changes one after another. */
interface Part {
  readonly owner: Resource;
  readonly child: Resource;
  readonly at: FieldPath;
  /** Fields with which the object still does what it is for, or whose values others may choose. */
  readonly open: string;
  /**
   * Fields that the server does not let the client set to the value here.
   * @default all others that do not change: almost all of a Pod
   */
  readonly fixed?: string;
}

const TEMPLATE = ['spec', 'template', 'spec'];

const CONTAINER = [...TEMPLATE, 'containers', 0];

const PARTS: readonly Part[] = [
  {
    owner: WEB_APPS,
    child: SERVICES,
    at: ['spec'],
    open: 'externalIPs externalName internalTrafficPolicy ipFamilyPolicy loadBalancerIP ports publishNotReadyAddresses sessionAffinity trafficDistribution',
    fixed:
      'allocateLoadBalancerNodePorts clusterIP clusterIPs externalTrafficPolicy healthCheckNodePort ipFamilies loadBalancerClass loadBalancerSourceRanges sessionAffinityConfig',
  },
  {
    owner: WEB_APPS,
    child: SERVICES,
    at: ['spec', 'ports', 0],
    open: 'appProtocol',
    fixed: 'nodePort',
  },
  {
    owner: WEB_APPS,
    child: DEPLOYMENTS,
    at: ['spec'],
    open: 'minReadySeconds progressDeadlineSeconds revisionHistoryLimit strategy',
    fixed: 'selector template',
  },
  {
    owner: WEB_APPS,
    child: DEPLOYMENTS,
    at: TEMPLATE,
    open: 'affinity dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets initContainers nodeSelector os priority readinessGates resourceClaims resources securityContext serviceAccount setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes',
    fixed:
      'activeDeadlineSeconds ephemeralContainers evictionResponders restartPolicy schedulingGroup serviceAccountName',
  },
  {
    owner: WEB_APPS,
    child: DEPLOYMENTS,
    at: CONTAINER,
    open: 'env envFrom imagePullPolicy lifecycle livenessProbe ports readinessProbe resizePolicy resources restartPolicy securityContext startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty workingDir',
    fixed: 'restartPolicyRules volumeDevices volumeMounts',
  },
  {
    owner: WEB_APPS,
    child: DEPLOYMENTS,
    at: [...CONTAINER, 'ports', 0],
    open: 'hostIP hostPort',
    fixed: '',
  },
  {
    owner: FOOS,
    child: DEPLOYMENTS,
    at: ['spec'],
    open: 'minReadySeconds progressDeadlineSeconds revisionHistoryLimit strategy',
    fixed: 'selector template',
  },
  { owner: COUNTS, child: PODS, at: ['spec'], open: 'activeDeadlineSeconds tolerations' },
  { owner: COUNTS, child: PODS, at: ['spec', 'containers', 0], open: '' },
];

/** Time in which a rollout is done, in milliseconds. */
const WAIT_MS = 5000;

/** Values of fields whose type does not suggest one. */
const VALUES: Readonly<Record<string, unknown>> = {
  affinity: { nodeAffinity: {} },
  args: ['other'],
  clusterIP: 'None',
  clusterIPs: ['None'],
  command: ['other'],
  containers: [{ name: 'other', image: 'nginx:1.27' }],
  dnsConfig: { nameservers: ['10.0.0.1'] },
  dnsPolicy: 'Default',
  env: [{ name: 'other', value: 'other' }],
  envFrom: [{ configMapRef: { name: 'other', optional: true } }],
  ephemeralContainers: [{ name: 'other', image: 'other' }],
  evictionResponders: [{ name: 'example.com/other', priority: 1000 }],
  externalIPs: ['192.0.2.1'],
  externalName: 'other.example.com',
  externalTrafficPolicy: 'Local',
  hostAliases: [{ ip: '192.0.2.1', hostnames: ['other'] }],
  imagePullPolicy: 'Never',
  imagePullSecrets: [{ name: 'other' }],
  initContainers: [{ name: 'other', image: 'other', restartPolicy: 'Always' }],
  internalTrafficPolicy: 'Local',
  ipFamilies: ['IPv6'],
  ipFamilyPolicy: 'PreferDualStack',
  lifecycle: { preStop: { exec: { command: ['other'] } } },
  livenessProbe: { exec: { command: ['other'] } },
  loadBalancerSourceRanges: ['192.0.2.0/24'],
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  os: { name: 'windows' },
  overhead: { cpu: '1m' },
  preemptionPolicy: 'Never',
  priority: 0,
  protocol: 'UDP',
  readinessGates: [{ conditionType: 'example.com/other' }],
  readinessProbe: { exec: { command: ['true'] } },
  resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
  resourceClaims: [{ name: 'other', resourceClaimName: 'other' }],
  resources: { requests: { cpu: '1m' } },
  restartPolicy: 'OnFailure',
  restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }],
  schedulingGates: [{ name: 'example.com/other' }],
  schedulingGroup: { podGroupName: 'other' },
  securityContext: { runAsUser: 7 },
  selector: { other: 'other' },
  sessionAffinity: 'ClientIP',
  sessionAffinityConfig: { clientIP: { timeoutSeconds: 7 } },
  startupProbe: { exec: { command: ['true'] } },
  strategy: { type: 'Recreate' },
  ports: [{ name: 'other', port: 81, containerPort: 81 }],
  targetPort: 8080,
  template: {
    metadata: { labels: { other: 'other' } },
    spec: { containers: [{ name: 'other', image: 'nginx:1.27' }] },
  },
  terminationMessagePolicy: 'FallbackToLogsOnError',
  tolerations: [{ key: 'other', operator: 'Exists' }],
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: 'other', whenUnsatisfiable: 'ScheduleAnyway' },
  ],
  trafficDistribution: 'PreferClose',
  type: 'ExternalName',
  volumeDevices: [{ name: 'other', devicePath: '/other' }],
  volumeMounts: [{ name: 'other', mountPath: '/other' }],
  volumes: [{ name: 'other', emptyDir: {} }],
};

function otherValue(field: string, { type }: JsonSchema, present: unknown): unknown {
  if (Object.hasOwn(VALUES, field)) return VALUES[field];
  if (type === 'boolean') return present !== true;
  if (type === 'integer') return typeof present === 'number' ? present + 1 : 7;
  assert.equal(type, 'string', `VALUES needs a value of ${field}`);
  return 'other';
}

function schemaAt({ child, at }: Part): JsonSchema {
  let schema: JsonSchema | undefined = linkedSchema(schemaName(child, child.kind));
  for (const step of at) {
    schema = typeof step === 'number' ? schema?.items : schema?.properties?.[step];
  }
  assert.ok(schema);
  return schema;
}

describe('Another client that changes an owned object', () => {
  for (const part of PARTS) {
    const { owner, child, at, open, fixed } = part;
    it(`is overruled or reported: ${child.kind}${toJsonPointer(at)} of a ${owner.kind}`, async () => {
      const simulation = new Simulation();
      try {
        simulation.startCluster();
        const kind = KINDS.find(({ resource }) => resource === owner);
        assert.ok(kind);
        const object = new SampleObject(simulation, kind);
        await object.install();
        simulation.startDaemon({ controllers: [kind.controller] });
        await object.create();
        await object.untilDone();
        const name = kind.owned.find(({ resource }) => resource === child)?.name ?? '';
        const where = { namespace: simulation.namespace, name };
        const read = () => simulation.client.get<KubernetesObject>(child, where);
        const set = (path: FieldPath, value: unknown) => {
          const op = value === undefined ? 'remove' : 'add';
          const body: { op: 'add' | 'remove'; path: string; value?: unknown }[] = [
            { op, path: toJsonPointer(path), value },
          ];
          if (value === 'ExternalName') {
            body.push({ op: 'add', path: '/spec/externalName', value: 'other.example.com' });
          }
          return simulation.client.patch<KubernetesObject>(child, where, { type: 'json', body });
        };
        const seen: { open: string[]; fixed: string[] } = { open: [], fixed: [] };
        for (const [field, schema] of Object.entries(schemaAt(part).properties ?? {})) {
          await simulation.pass(WAIT_MS);
          const path = [...at, field];
          const original = valueAt(await read(), path);
          try {
            const changed = valueAt(await set(path, otherValue(field, schema, original)), path);
            if (equalJson(changed, original)) {
              seen.fixed.push(field);
              continue;
            }
          } catch (error) {
            if (!isApiError(error, 'invalid')) throw error;
            seen.fixed.push(field);
            continue;
          }
          await simulation.pass(WAIT_MS);
          const isMended = equalJson(valueAt(await read(), path), original);
          const isReady = await object.has('Ready');
          if (isMended) assert.ok(isReady, `Ready after ${field}`);
          else if (isReady) seen.open.push(field);
          if (!isMended && child !== PODS) await set(path, original);
        }
        assert.deepEqual(seen.open, words(open));
        if (fixed !== undefined) assert.deepEqual(seen.fixed, words(fixed));
      } finally {
        await simulation.end();
      }
    });
  }
});

function words(text: string): string[] {
  return text === '' ? [] : text.split(' ');
}
