import type { KubeConfigEntries } from '../kube-config-decoder.js';
import type { KubeConfigLookup } from '../kube-config-context.js';

/** The `KubeConfig` of client-node. It returns the entries that it was given. */
export declare class KubeConfig {
  loadFromOptions(entries: KubeConfigEntries): void;
  getCurrentContext(): string;
  readonly getContexts: KubeConfigLookup['getContexts'];
  readonly getClusters: KubeConfigLookup['getClusters'];
  readonly getUsers: KubeConfigLookup['getUsers'];
  readonly getContextObject: KubeConfigLookup['getContextObject'];
  readonly getCluster: KubeConfigLookup['getCluster'];
  readonly getUser: KubeConfigLookup['getUser'];
}

/** The OpenID Connect provider of client-node. */
export declare class OpenIDConnectAuth {
  /** Sets the Authorization header, and the new tokens in `user`. */
  applyAuthentication(
    user: {
      readonly name: string;
      readonly authProvider: { readonly name: 'oidc'; readonly config: Record<string, string> };
    },
    options: { readonly headers: Record<string, string> },
    client: { refresh(refreshToken: string): Promise<object> },
  ): Promise<void>;
}
