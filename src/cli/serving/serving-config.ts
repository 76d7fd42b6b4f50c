import { join } from 'node:path';
import { goQuote } from '../../util/go-quote.ts';
import { UsageError } from '../exit-codes.ts';
import type { OptionValues } from '../flags/option.ts';
import type { RUN_OPTIONS } from '../flags/run-options.ts';
import { isLoopback } from '../../serving/bind-address.ts';
import type { CertificateFilesOptions } from '../../serving/serving-certificate.ts';

/** TLS and authorization of the endpoints. */
export interface ServingConfig {
  /** Whether /metrics needs TLS and authorization. */
  readonly isMetricsSecure: boolean;
  /** Undefined for a self-signed certificate. */
  readonly certificate: CertificateFilesOptions | undefined;
  readonly minVersion: (typeof TLS_VERSIONS)[keyof typeof TLS_VERSIONS];
  /** Cipher list in OpenSSL's format; undefined for the ciphers of Node.js. */
  readonly ciphers: string | undefined;
  readonly http2: boolean;
}

/**
 * Returns the serving configuration from the flags.
 *
 * @throws {UsageError} if flags contradict each other or have invalid values
 */
export function servingConfig(values: OptionValues<typeof RUN_OPTIONS>): ServingConfig {
  const isMetricsSecure = values['metrics-secure'];
  for (const [flag, address] of [
    ['--debug-bind-address', values['debug-bind-address']],
    ['--profiler-address', profilerAddress(values)],
  ] as const) {
    const isShared = address !== undefined && address === values['metrics-bind-address'];
    if (isShared && !isMetricsSecure && !isLoopback(address)) {
      throw new UsageError(
        `invalid value ${goQuote(address)} for ${flag}: --metrics-secure=false disables authorization on this address`,
      );
    }
  }
  const folder = values['metrics-cert-path'];
  return Object.freeze({
    isMetricsSecure,
    certificate: folder
      ? Object.freeze({
          certificatePath: join(folder, values['metrics-cert-name']),
          privateKeyPath: join(folder, values['metrics-cert-key']),
        })
      : undefined,
    minVersion: TLS_VERSIONS[values['tls-min-version']],
    ciphers: cipherList(values['tls-cipher-suites']),
    http2: values['enable-http2'],
  });
}

/**
 * Returns the address of the profile endpoints, or undefined if profiling is disabled.
 *
 * @throws {UsageError} if profiling is enabled without an address
 */
export function profilerAddress(values: OptionValues<typeof RUN_OPTIONS>): string | undefined {
  if (!values['enable-profiling']) return undefined;
  const address = values['profiler-address'];
  if (address === undefined) throw new UsageError('--enable-profiling needs --profiler-address');
  return address;
}

/** TLS versions by their names in Go, with those of Node.js. Older versions are not secure. */
export const TLS_VERSIONS = { VersionTLS12: 'TLSv1.2', VersionTLS13: 'TLSv1.3' } as const;

/** Cipher suites of TLS 1.3. OpenSSL and Go use the same names. */
const TLS13_SUITES: readonly string[] = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
];

/** Cipher suites of TLS 1.2 that Go considers secure, with their names in OpenSSL. */
const TLS12_SUITES: ReadonlyMap<string, string> = new Map([
  ['TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA', 'ECDHE-ECDSA-AES128-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA', 'ECDHE-ECDSA-AES256-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA', 'ECDHE-RSA-AES128-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA', 'ECDHE-RSA-AES256-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
]);

/**
 * Converts Go's names of cipher suites to OpenSSL's list. Returns undefined without names, which
 * selects the ciphers of Node.js. All suites of TLS 1.3 stay enabled unless the names include some of
 * them; in Go, those of TLS 1.3 cannot be configured.
 *
 * @throws {UsageError} if a suite is unknown or not secure
 */
export function cipherList(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const tls13 = names.filter((name) => TLS13_SUITES.includes(name));
  const tls12 = names
    .filter((name) => !TLS13_SUITES.includes(name))
    .map((name) => {
      const known = TLS12_SUITES.get(name);
      if (known !== undefined) return known;
      const all = [...TLS13_SUITES, ...TLS12_SUITES.keys()].join(', ');
      throw new UsageError(
        `invalid value ${goQuote(name)} for --tls-cipher-suites: must be among ${all}`,
      );
    });
  return [...(tls13.length > 0 ? tls13 : TLS13_SUITES), ...tls12].join(':');
}
