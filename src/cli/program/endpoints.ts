import type { Client } from '../../client/client.ts';
import { DelegatedAccess } from '../../serving/delegated-access.ts';
import { HttpServer } from '../../serving/http-server.ts';
import type { HttpServerRoutes, Pages, RouteSetting, Settings } from '../../serving/routes.ts';
import type {
  CertificateFilesOptions,
  CertificateSource,
} from '../../serving/serving-certificate.ts';
import { CertificateFiles, selfSignedCertificate } from '../../serving/serving-certificate.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/values.ts';
import type { Runnable } from '../../util/runnable.ts';
import { UsageError } from '../common/errors.ts';
import { isNonLoopback } from '../../serving/bind-address.ts';
import type { LogLevel } from '../logs/log-level.ts';
import type { RunConfig, ServingConfig } from './run-config.ts';

/** Dependencies of `endpoints`. */
export interface EndpointsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly routes: EndpointRoutes;
  /** Required if an endpoint needs TLS and authorization. */
  readonly secure?: SecureServing | undefined;
}

/** Routes by the flag that configures their address. */
export interface EndpointRoutes {
  readonly health: Pick<HttpServerRoutes, 'livez' | 'readyz'>;
  readonly metrics: Pick<HttpServerRoutes, 'metrics'> | undefined;
  readonly debug: Pick<HttpServerRoutes, 'pages' | 'settings' | 'metrics'> | undefined;
  readonly profiling?: Pick<HttpServerRoutes, 'downloads'> | undefined;
}

/** Dependencies of endpoints with TLS and authorization. */
export interface SecureServing {
  /** Client for access reviews. Must not be behind a write fence, because standbys serve requests too. */
  readonly reviewer: Pick<Client, 'raw'>;
  readonly certificate: CertificateSource;
}

export type EndpointsConfig = Pick<
  RunConfig,
  'healthProbeBindAddress' | 'metricsBindAddress' | 'debugBindAddress'
> &
  Partial<Pick<RunConfig, 'serving' | 'profilerAddress'>>;

/** Routes of one address. */
interface Endpoint {
  routes: HttpServerRoutes;
  isSecure: boolean;
}

/**
 * Returns one server per address. Routes may share an address; if one of them needs TLS and
 * authorization, all of them get it. Metrics need it unless `--metrics-secure=false` is set. Debug
 * pages and profiles need it on addresses that other machines can reach. Health probes are never authorized.
 */
export function endpoints(deps: EndpointsDeps, config: EndpointsConfig): Runnable[] {
  const { log, routes } = deps;
  const { healthProbeBindAddress, metricsBindAddress, serving } = config;
  const { debugBindAddress, profilerAddress } = config;
  const byAddress = new Map<string, Endpoint>();
  const add = (
    address: string | undefined,
    more: HttpServerRoutes | undefined,
    isSecure: boolean,
  ) => {
    if (!address || !more) return;
    const shared = byAddress.get(address);
    byAddress.set(address, {
      routes: { ...shared?.routes, ...more },
      isSecure: isSecure || shared?.isSecure === true,
    });
  };
  add(healthProbeBindAddress, routes.health, false);
  add(metricsBindAddress, routes.metrics, serving?.isMetricsSecure ?? true);
  add(debugBindAddress, routes.debug, isNonLoopback(debugBindAddress));
  add(profilerAddress, routes.profiling, isNonLoopback(profilerAddress));
  if (metricsBindAddress && byAddress.get(metricsBindAddress)?.isSecure === false) {
    warnIfExposed(log, metricsBindAddress);
  }
  return Array.from(byAddress, ([address, endpoint]) => server(deps, serving, address, endpoint));
}

/**
 * Returns the certificate in the configured files, or a self-signed one.
 *
 * @throws {UsageError} if the files do not contain a valid certificate
 */
export async function servingCertificate(
  { certificate }: Pick<ServingConfig, 'certificate'>,
  { clock, log, host }: { readonly clock: Clock; readonly log: Logger; readonly host: string },
): Promise<CertificateSource> {
  if (!certificate) return selfSignedCertificate({ clock, dnsNames: [host] });
  return certificateFiles(certificate, { clock, log }, '--metrics-cert-path');
}

/**
 * Returns the certificate in files.
 *
 * @param flag flag with the folder of the files, for error messages
 * @throws {UsageError} if the files do not contain a valid certificate
 */
export async function certificateFiles(
  options: CertificateFilesOptions,
  deps: { readonly clock: Clock; readonly log: Logger },
  flag: string,
): Promise<CertificateSource> {
  const files = new CertificateFiles(deps, options);
  try {
    await files.load();
  } catch (cause) {
    throw new UsageError(`${flag}: unable to load the certificate: ${messageOf(cause)}`, { cause });
  }
  return files;
}

/** Setting `/debug/flags/v` for the log verbosity, as in Kubernetes components. */
export function debugFlags(level: LogLevel): Settings {
  const verbosity: RouteSetting = {
    name: 'klog.logging.verbosity',
    get: () => String(level.verbosity),
    set: (text) => {
      const digits = text.trim();
      if (!/^[-+]?\d{1,19}$/.test(digits)) {
        throw new RangeError(`strconv.ParseInt: parsing ${JSON.stringify(digits)}: invalid syntax`);
      }
      level.setVerbosity(Number(digits));
    },
  };
  return new Map([['/debug/flags/v', verbosity]]);
}

function warnIfExposed(log: Logger, address: string): void {
  if (!isNonLoopback(address)) return;
  log.info('Serving metrics without TLS and authentication (--metrics-secure=false)', { address });
}

function server(
  { clock, log, secure }: EndpointsDeps,
  serving: ServingConfig | undefined,
  bindAddress: string,
  { routes, isSecure }: Endpoint,
): Runnable {
  const options = { name: 'endpoints', bindAddress, routes };
  return new HttpServer({ log }, isSecure ? { ...options, ...protection() } : options);

  function protection() {
    if (!secure)
      throw new TypeError(`Option secure is required: ${bindAddress} needs TLS and authorization`);
    const { reviewer, certificate } = secure;
    const authorizer = new DelegatedAccess({ client: reviewer, clock, log: log.named('access') });
    const { isMetricsSecure: _, ...tls } = { ...serving };
    return { authorizer, tls: { ...tls, certificate } };
  }
}

/** Options of {@link servePage}. */
interface PageOptions {
  readonly pages: Pages;
  readonly settings?: Settings | undefined;
  readonly port: number;
  readonly log: Logger;
  /** Called with the address of the page. */
  readonly announce: (url: string) => void;
}

/**
 * Serves a debug page on the loopback address until the signal aborts.
 *
 * @throws {AddressError} if the port cannot be used
 */
export async function servePage(
  { port, log, announce, ...routes }: PageOptions,
  signal: AbortSignal,
): Promise<void> {
  const server = new HttpServer(
    { log },
    { name: 'page', bindAddress: `127.0.0.1:${port}`, routes },
  );
  void server.listening.then((address) => announce(`http://${address}/debug/`));
  await server.run(signal);
}
