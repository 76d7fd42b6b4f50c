import { assertNever } from '../../util/values.ts';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { silentLogger } from '../../util/logger.ts';
import type { RestClientMetrics } from '../../metrics/rest-client-metrics.ts';
import { noRestClientMetrics } from '../../metrics/no-metrics.ts';
import type { ClusterConfig, HeaderSource } from './cluster-config.ts';
import type { TlsMaterial } from '../transport/dial.ts';
import { ExecPlugin } from './exec-plugin.ts';
import { PemFiles, TokenFile } from './credential-files.ts';
import { OidcProvider } from './oidc-provider.ts';
import type { ReadFile } from './read-file.ts';
import { readTextFile } from './read-file.ts';

type Headers = Readonly<Record<string, string>>;

/** Authenticates requests by a header. */
export interface RequestCredentials {
  /** Returns the headers that authenticate the next request; no promise if they are known. */
  headers(): Headers | Promise<Headers>;
  /**
   * Discards headers that the server rejected. Returns whether the next call of `headers` can return others.
   */
  invalidate(rejected: Headers): boolean;
}

/** The credentials of the client and the trusted CAs, renewed when they change. */
export interface Credentials extends RequestCredentials {
  /**
   * Returns the certificates for new connections; the same object as long as they are unchanged, and no promise
   * if they are known.
   */
  tls(): TlsMaterial | Promise<TlsMaterial>;
  /** Reads the certificate files again, after either side rejected the other's certificate. */
  invalidateTls(): void;
}

/** Options of `credentialsOf`. */
export interface CredentialsOptions {
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default silent */
  readonly log?: Logger | undefined;
  /** @default none */
  readonly metrics?: RestClientMetrics | undefined;
  /**
   * Reads the files that the configuration names.
   * @default reads files of this machine
   */
  readonly readFile?: ReadFile | undefined;
}

/** Returns the credentials of a configuration. Reads no file and runs no plugin before they are needed. */
export function credentialsOf(
  config: ClusterConfig,
  {
    clock = systemClock,
    log = silentLogger,
    metrics = noRestClientMetrics,
    readFile = readTextFile,
  }: CredentialsOptions = {},
): Credentials {
  const source = config.credentials;
  const pemFiles = new PemFiles({
    sources: {
      ca: config.ca,
      ...(source.kind === 'clientCertificate' && {
        certificate: source.certificate,
        key: source.key,
      }),
    },
    clock,
    log,
    readFile,
  });
  const tls = {
    tls: () => pemFiles.material(),
    invalidateTls: () => pemFiles.invalidate(),
  };
  switch (source.kind) {
    case 'none':
      return { ...tls, headers: () => NO_HEADERS, invalidate: () => false };
    case 'clientCertificate': {
      const header = source.header && headerCredentials(source.header, { clock, log, readFile });
      return {
        ...tls,
        headers: () => header?.headers() ?? NO_HEADERS,
        invalidate(rejected) {
          pemFiles.invalidate();
          const hasOther = header?.invalidate(rejected) ?? false;
          return hasOther || source.certificate.kind === 'file';
        },
      };
    }
    case 'exec': {
      const ca = async () => (await pemFiles.material()).ca;
      const plugin = new ExecPlugin({ source, cluster: config, ca, clock, log, metrics });
      return execCredentials(plugin, tls);
    }
    default:
      return { ...tls, ...headerCredentials(source, { clock, log, readFile }) };
  }
}

interface Context {
  readonly clock: Clock;
  readonly log: Logger;
  readonly readFile: ReadFile;
}

function headerCredentials(source: HeaderSource, context: Context): RequestCredentials {
  switch (source.kind) {
    case 'token': {
      const headers = bearer(source.token);
      return { headers: () => headers, invalidate: () => false };
    }
    case 'basic': {
      const pair = Buffer.from(`${source.username}:${source.password}`).toString('base64');
      const headers = { authorization: `Basic ${pair}` };
      return { headers: () => headers, invalidate: () => false };
    }
    case 'tokenFile': {
      const { path, token: fallback } = source;
      const file = new TokenFile({ path, fallback, ...context });
      return bearerCredentials(file.token.bind(file), (token) => {
        file.invalidate(token);
        return true;
      });
    }
    case 'oidc': {
      const provider = new OidcProvider({ source, ...context });
      // As in client-go, a rejected token is used until it expires or the kubeconfig changes.
      return bearerCredentials(provider.token.bind(provider), () => false);
    }
    default:
      return assertNever(source);
  }
}

/** Returns credentials with a token that changes; the same headers as long as it is unchanged. */
function bearerCredentials(
  currentToken: () => string | Promise<string>,
  discard: (token: string) => boolean,
): RequestCredentials {
  let last = { token: '', headers: NO_HEADERS };
  const headersOf = (token: string) => {
    if (token !== last.token) last = { token, headers: bearer(token) };
    return last.headers;
  };
  return {
    headers() {
      const token = currentToken();
      return typeof token === 'string' ? headersOf(token) : token.then(headersOf);
    },
    invalidate: (rejected) => discard(tokenOf(rejected) ?? ''),
  };
}

/** Returns the credentials of a plugin: a token, a client certificate, or both. */
function execCredentials(
  plugin: ExecPlugin,
  trusted: Pick<Credentials, 'tls' | 'invalidateTls'>,
): Credentials {
  /** The last result and its parts, so that unchanged parts return the same object. */
  let last: { readonly of: readonly unknown[]; readonly material: TlsMaterial } | undefined;
  return {
    ...trusted,

    async headers() {
      const { token } = await plugin.credential();
      return token === undefined ? {} : bearer(token);
    },

    async tls() {
      const base = await trusted.tls();
      const { certificate, key } = await plugin.credential();
      if (certificate === undefined || key === undefined) return base;
      const of = [base, certificate, key];
      if (!last || last.of.some((part, index) => part !== of[index])) {
        last = { of, material: { ...base, certificate, key } };
      }
      return last.material;
    },

    invalidate(rejected) {
      plugin.invalidate(tokenOf(rejected));
      return true;
    },
  };
}

const NO_HEADERS: Readonly<Record<string, string>> = {};

const BEARER = 'Bearer ';

function bearer(token: string): Readonly<Record<string, string>> {
  return { authorization: BEARER + token };
}

function tokenOf(headers: Readonly<Record<string, string>>): string | undefined {
  return headers['authorization']?.slice(BEARER.length);
}
