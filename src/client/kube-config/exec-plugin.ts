import { spawn } from 'node:child_process';
import { ApiError } from '../../api/api-error.ts';
import type { RestClientMetrics } from '../../metrics/rest-client-metrics.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { ClusterConfig, ExecSource } from './cluster-config.ts';
import { credentialError, requirePair } from './credential-files.ts';
import { hasErrorCode, isRecord } from '../../util/values.ts';
import { TimeoutError, withinTimeout } from '../../util/within-timeout.ts';

/** The credentials of a plugin: a token, a certificate with its key, or both. */
export interface ExecCredential {
  readonly token?: string;
  /** PEM, always together with the key. */
  readonly certificate?: string;
  readonly key?: string;
  /** Expiry in milliseconds since the Unix epoch; absent: valid until the server responds with 401. */
  readonly expiresAtMs?: number;
}

/** Options of `ExecPlugin`. */
export interface ExecPluginOptions {
  readonly source: ExecSource;
  /** The cluster, for plugins with `provideClusterInfo`. */
  readonly cluster: Pick<
    ClusterConfig,
    'server' | 'tlsServerName' | 'insecureSkipTlsVerify' | 'proxyUrl'
  >;
  /** Returns the PEM of the cluster's CA, for plugins with `provideClusterInfo`. */
  readonly ca: () => Promise<string | undefined>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RestClientMetrics;
}

/** Timeout of one run, in milliseconds. A plugin has no terminal and cannot wait for input. */
const RUN_TIMEOUT_MS = 60_000;
/** Time before the expiry at which a credential is renewed, in milliseconds; at most half its lifetime. */
const EXPIRY_SKEW_MS = 30_000;
/** Delay after a failed renewal of a credential that is still valid, in milliseconds. */
const RETRY_MS = 10_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/**
 * Runs an exec credential plugin (client.authentication.k8s.io/v1, v1beta1). It runs without a shell, one run at
 * a time for all callers, and again when the credential expires or the server rejects it. If a renewal fails,
 * the credential is used until it expires. Standard output is never logged. Standard error is passed to that of
 * this process, as kubectl does.
 */
export class ExecPlugin {
  readonly #options: ExecPluginOptions;
  #credential: ExecCredential | undefined;
  #renewAtMs = Number.NEGATIVE_INFINITY;
  #running: Promise<ExecCredential> | undefined;

  constructor(options: ExecPluginOptions) {
    this.#options = options;
  }

  /**
   * Returns the credential; the same object as long as it is valid.
   *
   * @throws {ApiError} of kind `unauthorized` if the plugin fails
   */
  async credential(): Promise<ExecCredential> {
    if (this.#credential && this.#options.clock.now() < this.#renewAtMs) return this.#credential;
    this.#running ??= this.#renew().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Discards the token, or (undefined) the certificate, that the server rejected. A newer one stays. */
  invalidate(token: string | undefined): void {
    if (this.#credential?.token === token) this.#credential = undefined;
  }

  async #renew(): Promise<ExecCredential> {
    const { source, clock, log, metrics } = this.#options;
    const startedMs = clock.now();
    let output: ExecCredential;
    try {
      output = await parseCredential(await this.#run(), source);
    } catch (error) {
      const kept = this.#credential;
      if (!kept || clock.now() >= expiryOf(kept)) throw error;
      this.#renewAtMs = Math.min(clock.now() + RETRY_MS, expiryOf(kept));
      log.error(error, 'Failed to renew a credential, using it until it expires', {
        plugin: source.command,
      });
      return kept;
    }
    const lifeMs = Math.max(0, expiryOf(output) - startedMs);
    this.#renewAtMs = expiryOf(output) - Math.min(EXPIRY_SKEW_MS, lifeMs / 2);
    this.#credential = output;
    metrics.execPluginExpiry(expiryOf(output));
    return output;
  }

  async #run(): Promise<Buffer> {
    const { source, ca, clock, metrics } = this.#options;
    const info = execInfo(this.#options, source.provideClusterInfo ? await ca() : undefined);
    const environment = { ...source.environment, KUBERNETES_EXEC_INFO: JSON.stringify(info) };
    try {
      const output = await withinTimeout({ clock, timeoutMs: RUN_TIMEOUT_MS }, (signal) =>
        outputOf(source, environment, signal),
      );
      metrics.execPluginCalled({ code: 0, status: 'no_error' });
      return output;
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #failure(error: unknown): ApiError {
    const { source, metrics } = this.#options;
    const name = `The credential plugin ${source.command}`;
    if (error instanceof ExitError) {
      metrics.execPluginCalled({ code: error.code, status: 'plugin_execution_error' });
      const nextStep = 'See its standard error, or run it manually.';
      return credentialError(`${name} failed`, error, nextStep);
    }
    if (error instanceof TimeoutError) {
      metrics.execPluginCalled({ code: 1, status: 'plugin_execution_error' });
      return credentialError(
        `${name} timed out`,
        error,
        'It cannot read input; log in beforehand.',
      );
    }
    const missing = hasErrorCode(error, 'ENOENT');
    metrics.execPluginCalled({
      code: 1,
      status: missing ? 'plugin_not_found_error' : 'client_internal_error',
    });
    const hint = source.installHint?.trim() || 'Install it, or check the PATH and the kubeconfig.';
    return missing
      ? credentialError(`${name} was not found`, undefined, hint)
      : credentialError(`${name} could not be run`, error, 'Check its name and permissions.');
  }
}

function expiryOf({ expiresAtMs = Number.POSITIVE_INFINITY }: ExecCredential): number {
  return expiresAtMs;
}

class ExitError extends Error {
  readonly code: number;

  constructor(code: number | null, signal: NodeJS.Signals | null) {
    super(code === null ? `ended by ${signal}` : `exit code ${code}`);
    this.code = code ?? 1;
  }
}

/** Returns the standard output of a successful run. Aborting the signal kills the process. */
function outputOf(
  { command, args }: ExecSource,
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: environment,
      shell: false,
      stdio: ['ignore', 'pipe', 'inherit'],
      windowsHide: true,
    });
    const chunks: Buffer[] = [];
    let length = 0;
    const fail = (error: unknown) => {
      child.kill('SIGKILL');
      reject(error);
    };
    const abort = () => fail(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    child.stdout.on('data', (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length > MAX_OUTPUT_BYTES)
        fail(new Error(`it printed more than ${MAX_OUTPUT_BYTES} bytes`));
    });
    child.once('error', reject);
    child.once('close', (code, endedBy) => {
      signal.removeEventListener('abort', abort);
      if (code === 0) resolve(Buffer.concat(chunks));
      else reject(new ExitError(code, endedBy));
    });
  });
}

function execInfo({ source, cluster }: ExecPluginOptions, caPem: string | undefined): object {
  const { server, tlsServerName, insecureSkipTlsVerify, proxyUrl } = cluster;
  return {
    apiVersion: source.apiVersion,
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      ...(source.provideClusterInfo && {
        cluster: {
          server,
          'tls-server-name': tlsServerName,
          'insecure-skip-tls-verify': insecureSkipTlsVerify || undefined,
          'certificate-authority-data': caPem && Buffer.from(caPem).toString('base64'),
          'proxy-url': proxyUrl,
          config: source.clusterSettings,
        },
      }),
    },
  };
}

/** Parses the output of a plugin. Error messages do not quote it. */
async function parseCredential(
  output: Buffer,
  { command, apiVersion }: ExecSource,
): Promise<ExecCredential> {
  const wrong = (what: string) =>
    credentialError(
      `The credential plugin ${command} printed ${what}`,
      undefined,
      `Expected an ExecCredential of ${apiVersion}.`,
    );
  let parsed: unknown;
  try {
    parsed = await parseOutput(output.toString('utf8'));
  } catch {
    throw wrong(`neither JSON nor YAML (${output.length} bytes)`);
  }
  if (!isRecord(parsed) || parsed['kind'] !== 'ExecCredential')
    throw wrong('another kind of object');
  if (parsed['apiVersion'] !== apiVersion) throw wrong('another version');
  const status = isRecord(parsed['status']) ? parsed['status'] : {};
  const textOf = (field: string): string | undefined => {
    const value = status[field] ?? '';
    if (typeof value !== 'string') throw wrong(`a ${field} that is not a string`);
    return value === '' ? undefined : value;
  };
  const token = textOf('token');
  const certificate = textOf('clientCertificateData');
  const key = textOf('clientKeyData');
  if ((certificate === undefined) !== (key === undefined)) throw wrong('only half of a key pair');
  if (token === undefined && certificate === undefined) throw wrong('no credentials');
  if (certificate !== undefined && key !== undefined) {
    try {
      requirePair(certificate, key);
    } catch {
      throw wrong('a key pair that cannot be used');
    }
  }
  const expiry = status['expirationTimestamp'] ?? undefined;
  const isTime = typeof expiry === 'string' && RFC_3339.test(expiry);
  const expiresAtMs = isTime ? Date.parse(expiry) : undefined;
  if ((expiry !== undefined && !isTime) || Number.isNaN(expiresAtMs)) {
    throw wrong('an invalid expirationTimestamp');
  }
  return {
    ...(token !== undefined && { token }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
    ...(expiresAtMs !== undefined && { expiresAtMs }),
  };
}

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** Parses JSON, or YAML as client-go does. The parser of YAML is loaded on demand. */
async function parseOutput(text: string): Promise<unknown> {
  if (/^\s*\{/.test(text)) return JSON.parse(text);
  const { parseGoYaml } = await import('../../util/go-yaml.ts');
  return parseGoYaml(text);
}
