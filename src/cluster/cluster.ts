import type { ControllerDeps } from '../manager/controller-options.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import type { CertificateAuthority } from '../util/x509.ts';
import { certificateSigner } from './certificate-signer.ts';
import { ClusterControllers } from './cluster-controllers.ts';
import type { ClusterControllersOptions } from './cluster-controllers.ts';

const CLUSTER_OPTIONS: OptionNames<ClusterOptions> = {
  controllers: true,
  kubelet: true,
  events: true,
  rootCaPem: true,
  authority: true,
  checkPolicyTypes: true,
};

/** Options of `Cluster`. */
export interface ClusterOptions extends Omit<ClusterControllersOptions, 'signer'> {
  /**
   * Authority of the server, which signs approved CertificateSigningRequests.
   * @default none: nothing is signed
   */
  readonly authority?: CertificateAuthority;
}

/**
 * Cluster controllers: garbage collector, namespaces and their defaults, workloads, endpoints, quotas, scheduler,
 * taint eviction, event expiry and a simulated kubelet. They use a `Client`, so they work with the embedded API server and with a
 * kube-apiserver that has no controller manager.
 */
export class Cluster extends ClusterControllers {
  constructor(deps: ControllerDeps, options: ClusterOptions = {}) {
    checkOptions(options, CLUSTER_OPTIONS, 'Cluster');
    const { authority, ...others } = options;
    super(deps, {
      ...others,
      signer: authority && ((clusterDeps) => certificateSigner(clusterDeps, authority)),
    });
  }
}
