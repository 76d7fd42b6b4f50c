import { join } from 'node:path';
import { goQuote } from '../../util/go-quote.ts';
import { UsageError } from '../exit-codes.ts';
import type { OptionValues } from '../flags/option.ts';
import type { RUN_OPTIONS } from '../flags/run-options.ts';
import { isLoopback } from '../../manager/serving/bind-address.ts';
import { TLS_VERSIONS, cipherList } from './tls-flags.ts';

/** How what is not for everybody is served. */
export interface ServingConfig {
  /** Whether /metrics is served over TLS, and only to those whom the cluster allows it. */
  readonly isMetricsSecure: boolean;
  /** Absent: one is made at the start, for which nobody vouches. */
  readonly certificate: CertificatePaths | undefined;
  readonly minVersion: (typeof TLS_VERSIONS)[keyof typeof TLS_VERSIONS];
  /** As OpenSSL takes them; absent: those of Node.js. */
  readonly ciphers: string | undefined;
  readonly http2: boolean;
}

export interface CertificatePaths {
  readonly certificatePath: string;
  readonly privateKeyPath: string;
}

/** @throws {UsageError} if flags contradict each other or name what is not there */
export function servingConfig(values: OptionValues<typeof RUN_OPTIONS>): ServingConfig {
  const isMetricsSecure = values['metrics-secure'];
  for (const [flag, address] of [
    ['--debug-bind-address', values['debug-bind-address']],
    ['--profiler-address', profilerAddress(values)],
  ] as const) {
    const isShared = address !== undefined && address === values['metrics-bind-address'];
    if (isShared && !isMetricsSecure && !isLoopback(address)) {
      throw new UsageError(
        `invalid value ${goQuote(address)} for ${flag}: there, --metrics-secure=false would show it to everybody`,
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
 * Where profiles are served, if they are.
 *
 * @throws {UsageError} if they are to be, and nowhere
 */
export function profilerAddress(values: OptionValues<typeof RUN_OPTIONS>): string | undefined {
  if (!values['enable-profiling']) return undefined;
  const address = values['profiler-address'];
  if (address === undefined) throw new UsageError('--enable-profiling needs --profiler-address');
  return address;
}
