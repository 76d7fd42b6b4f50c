import type { Client } from '../../client/client.ts';
import { DelegatedAccess } from '../../manager/serving/delegated-access.ts';
import { HttpServer } from '../../manager/serving/http-server.ts';
import type { HttpServerRoutes } from '../../manager/serving/http-server.ts';
import type { CertificateSource } from '../../manager/serving/serving-certificate.ts';
import { CertificateFiles, selfSigned } from '../../manager/serving/serving-certificate.ts';
import type { Setting, Settings } from '../../manager/serving/settings.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/values.ts';
import type { Runnable } from '../../util/runnable.ts';
import { UsageError } from '../exit-codes.ts';
import { isBeyond } from '../../manager/serving/bind-address.ts';
import type { LogLevel } from '../logs/log-level.ts';
import type { RunConfig } from '../run-config.ts';
import type { ServingConfig } from './serving-config.ts';

/** Dependencies of `Endpoints`. */
export interface EndpointsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly routes: EndpointRoutes;
  /** Needed where anything is to be served that is not for everybody. */
  readonly secure?: SecureServing | undefined;
}

/** What is served, by the flag that says where. */
export interface EndpointRoutes {
  readonly health: Pick<HttpServerRoutes, 'livez' | 'readyz'>;
  readonly metrics: Pick<HttpServerRoutes, 'metrics'> | undefined;
  readonly debug: Pick<HttpServerRoutes, 'pages' | 'settings' | 'metrics'> | undefined;
  readonly profiling?: Pick<HttpServerRoutes, 'downloads'> | undefined;
}

/** What it takes to serve what is not for everybody. */
export interface SecureServing {
  /** Asks the cluster who may ask. No fence may stand before it: a standby is asked as well. */
  readonly reviewer: Pick<Client, 'raw'>;
  readonly certificate: CertificateSource;
}

export type EndpointsConfig = Pick<
  RunConfig,
  'healthProbeBindAddress' | 'metricsBindAddress' | 'debugBindAddress'
> &
  Partial<Pick<RunConfig, 'serving' | 'profilerAddress'>>;

/** What is to be served at one address. */
interface Place {
  routes: HttpServerRoutes;
  isSecure: boolean;
}

/** Ports that others have, and addresses that are not ours: trying again will not help. */
const NOT_OURS: ReadonlySet<unknown> = new Set(['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES']);

/**
 * One server for each address: two endpoints may share theirs, and what makes one of them secure then
 * makes both so. Metrics are secure unless they are not to be; what is for debugging and profiles are
 * wherever more than this machine can reach them. Probes are for everybody, if need be over TLS.
 */
export function endpoints(deps: EndpointsDeps, config: EndpointsConfig): Runnable[] {
  const { log, routes } = deps;
  const { healthProbeBindAddress, metricsBindAddress, serving } = config;
  const { debugBindAddress, profilerAddress } = config;
  const places = new Map<string, Place>();
  const serve = (
    address: string | undefined,
    more: HttpServerRoutes | undefined,
    isSecure: boolean,
  ) => {
    if (!address || !more) return;
    const place = places.get(address);
    places.set(address, {
      routes: { ...place?.routes, ...more },
      isSecure: isSecure || place?.isSecure === true,
    });
  };
  serve(healthProbeBindAddress, routes.health, false);
  serve(metricsBindAddress, routes.metrics, serving?.isMetricsSecure ?? true);
  serve(debugBindAddress, routes.debug, isBeyond(debugBindAddress));
  serve(profilerAddress, routes.profiling, isBeyond(profilerAddress));
  if (metricsBindAddress && places.get(metricsBindAddress)?.isSecure === false) {
    tellWhoReads(log, metricsBindAddress);
  }
  return Array.from(places, ([bindAddress, place]) => server(deps, serving, bindAddress, place));
}

/** The certificate in the files that flags name, or one of our own. */
export async function servingCertificate(
  { certificate }: Pick<ServingConfig, 'certificate'>,
  { clock, log, host }: { readonly clock: Clock; readonly log: Logger; readonly host: string },
): Promise<CertificateSource> {
  if (!certificate) return selfSigned({ clock, dnsNames: [host] });
  const files = new CertificateFiles({ clock, log }, certificate);
  try {
    await files.load();
  } catch (cause) {
    const message = `--metrics-cert-path: no certificate to serve: ${messageOf(cause)}`;
    throw new UsageError(message, { cause });
  }
  return files;
}

/** `/debug/flags/v`, as kube components have it. */
export function debugFlags(level: LogLevel): Settings {
  const verbosity: Setting = {
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

function tellWhoReads(log: Logger, address: string): void {
  if (!isBeyond(address)) return;
  log.info('Metrics are served in the clear to whoever asks: --metrics-secure=false', { address });
}

function server(
  { clock, log, secure }: EndpointsDeps,
  serving: ServingConfig | undefined,
  bindAddress: string,
  { routes, isSecure }: Place,
): Runnable {
  const about = { name: 'endpoints', bindAddress, routes };
  const http = new HttpServer({ log }, isSecure ? { ...about, ...protection() } : about);
  return {
    name: http.name,
    run: async (signal) => {
      try {
        await http.run(signal);
      } catch (error) {
        throw isTaken(error) ? new UsageError(messageOf(error), { cause: error }) : error;
      }
    },
  };

  function protection() {
    if (!secure) throw new TypeError(`secure must be given: ${bindAddress} is not for everybody`);
    const { reviewer, certificate } = secure;
    const guard = new DelegatedAccess({ client: reviewer, clock, log: log.named('access') });
    const { isMetricsSecure: _, ...tls } = { ...serving };
    return { guard, tls: { ...tls, certificate } };
  }
}

function isTaken(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && NOT_OURS.has(cause.code);
}
