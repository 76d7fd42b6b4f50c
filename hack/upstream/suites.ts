import { kubernetesVersion } from '../envtest/binaries.ts';

/** The newest release of controller-runtime that is tested. */
export const CONTROLLER_RUNTIME = {
  module: 'sigs.k8s.io/controller-runtime',
  version: '0.25.2',
  packages: [
    'pkg/client',
    'pkg/builder',
    'pkg/handler',
    'pkg/manager',
    'pkg/controller',
    'pkg/cache',
    'pkg/source',
    'pkg/internal/recorder',
  ],
} as const;

/**
 * Kubernetes' end-to-end tests that need an API server and controllers, but no containers, network or volumes.
 * The patterns are matched with the full names of the tests.
 */
export const KUBERNETES = {
  version: kubernetesVersion(),
  focus: [
    String.raw`\[sig-api-machinery\]`,
    group(
      'apps',
      'adopt|orphan|lifecycle|status|Status endpoints|collection|scale subresource|Replace and Patch',
      'CronJob should|Daemon set should list|Deployment|DisruptionController|Job should (delete a|apply)',
      'exceeded quota|ReplicationController should (get|release|test)|working scale',
    ),
    group(
      'auth',
      'API operations|Certificates API|ClusterTrustBundle.*CRUD|Review|no secret-based|kube-root-ca',
      'ServiceAccounts should (create|run|update)',
    ),
    group(
      'cli',
      'Kubectl (api-versions|cluster-info should|create quota|describe|diff|get comp|label|patch)',
      'Kubectl (replace|run pod|server-side|taint|validation|version)|Proxy server|delete interactive',
      'kubectl (apply|kuberc|subresource|wait)|rollout undo',
    ),
    group('instrumentation', 'Events|API server|NativeHistograms'),
    group(
      'network',
      'API operations|static URL|secure master|custom Endpoints resource|lifecycle|collection',
      'Services should (find|prevent|check)|selector that matches no pods|Endpoint.*matching a Service',
      'API with endport',
    ),
    group(
      'node',
      'API|lifecycle|PodTemplates|collection|CRUD|Lease|RuntimeClass should|QOS Class|negative grace',
      'ConfigMap should (fail|run|update)|Secrets should (fail|patch)|fail to be created',
      'Pods should (be|patch|allow)|Node Lifecycle|OwnerReferences',
    ),
    group('scheduling', 'LimitRange|PriorityClass endpoints'),
    group(
      'storage',
      'CSI Conformance|CSIDriver|CSIStorage|CSIVolumeSource|immutable|PVC? Protection',
    ),
    group('storage', 'VolumeAttachment Conformance'),
  ],
  skip: [
    // Needs other features, machines or days.
    String.raw`\[(Disruptive|Slow|Alpha|Feature:OffByDefault|Feature:CBOR|Feature:StorageVersionAPI)\]`,
    String.raw`\[(Feature:ComprehensiveNamespaceDraining|Provider:[a-z,]+|LinuxOnly|Driver: [^\]]*)\]`,
    'DRA Node|PodCertificateRequest]|priority and fairness',
    // Needs Pods or Services that can be reached.
    'AdmissionWebhook|ConversionWebhook|CustomResourceFieldSelectors|Aggregat(or|ed APIServer)',
    'IssuerDiscovery|InClusterConfig|automount|mount|remote command|websockets|PVC in active use',
    'readiness gates|restart is Never|Simple pod|that PVC',
    // Needs containers that a container runtime runs.
    'missed schedule|limit of one|unexpected warnings|lifecycle of a job|suspended|proportional',
    'Lifecycle (Hook|Sleep|sleep)|Container lifecycle|Downward API|FileKeyRef|KubeletFineGrained',
    String.raw`evict (un)?ready|\[DRA\] kubelet|CSI Mock|Feature:RuntimeHandler|should run a Pod`,
    'the kubelet should|PVC Protection|Non-retain|StatefulSetBasic. should adopt|status ready field',
  ],
} as const;

/** Returns the pattern of a group's tests whose names contain one of the alternatives. */
function group(name: string, ...alternatives: readonly string[]): string {
  return String.raw`\[sig-${name}\].*(${alternatives.join('|')})`;
}

/**
 * The integration tests of CustomResourceDefinitions. Upstream starts a server for each test; the files that
 * replace its fixture return the server that runs.
 */
export const APIEXTENSIONS = {
  module: 'k8s.io/apiextensions-apiserver',
  version: kubernetesVersion().replace(/^1/, '0'),
  packages: ['test/integration', 'test/integration/conversion'],
  /** Files of the module, and their replacements in `hack/upstream/apiextensions`. */
  replacements: {
    'test/integration/fixtures/server.go': 'server.go',
    'test/integration/storage/objectreader.go': 'objectreader.go',
  },
  /** Tests that read or write etcd. Those that need servers with flags fail on both planes. */
  skip: 'EtcdStorage|MetaInStorage|PruningFromStorage|CBORStorage|EtcdBypass|NonStructural.*(Update|Migrated)',
} as const;

/** A module of an operator whose tests start etcd and kube-apiserver from `KUBEBUILDER_ASSETS`. */
interface OperatorModule {
  readonly module: string;
  readonly version: string;
  readonly packages: readonly string[];
}

/** Operators, tested as their own `make test` does. */
export const OPERATORS: readonly OperatorModule[] = [
  {
    module: 'sigs.k8s.io/jobset',
    version: '0.12.0',
    packages: ['test/integration/webhook'],
  },
  {
    module: 'sigs.k8s.io/kueue',
    version: '0.14.0',
    packages: [
      'test/integration/singlecluster/webhook/core',
      'test/integration/singlecluster/controller/core',
    ],
  },
  {
    module: 'sigs.k8s.io/lws',
    version: '0.8.0',
    packages: ['test/integration/webhooks'],
  },
];

export const SUITES = ['controller-runtime', 'kubernetes', 'apiextensions', 'operators'] as const;
export type SuiteName = (typeof SUITES)[number];
