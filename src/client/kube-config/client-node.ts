import { KubeConfig as AnyKubeConfig } from '@kubernetes/client-node/dist/config.js';
import { OpenIDConnectAuth as AnyProvider } from '@kubernetes/client-node/dist/oidc_auth.js';
import type { KubeConfigLookup } from './kube-config-context.ts';
import type { KubeConfigEntries } from './kube-config-decoder.ts';

/**
 * What we use of client-node. The build replaces this module by one without the generated API, which both import: see
 * `hack/client-node-bundle.ts`.
 */

/** It returns the entries that it was given. */
interface EntriesOfKubeConfig extends KubeConfigLookup {
  loadFromOptions(entries: KubeConfigEntries): void;
  getCurrentContext(): string;
}

interface OidcProvider {
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

// Its types have entries without the file and the fields that it ignores, and a client of openid-client.
export const KubeConfig = AnyKubeConfig as unknown as new () => EntriesOfKubeConfig;
export const OpenIDConnectAuth = AnyProvider as unknown as new () => OidcProvider;
