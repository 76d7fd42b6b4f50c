import { UsageError } from '../exit-codes.ts';
import { goQuote } from '../../util/go-quote.ts';

/** Versions as Go spells them, and as Node.js does. Older ones are not safe to speak. */
export const TLS_VERSIONS = { VersionTLS12: 'TLSv1.2', VersionTLS13: 'TLSv1.3' } as const;

/** Cipher suites of TLS 1.3, which OpenSSL calls as Go does. */
const MODERN: readonly string[] = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
];

/** Those of TLS 1.2 that Go takes for safe, as OpenSSL calls them. */
const OLDER: ReadonlyMap<string, string> = new Map([
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
 * Go's names as the list that OpenSSL takes; undefined for none, which leaves the choice to Node.js.
 * Go lets nobody choose those of TLS 1.3; here they all stay, unless some of them are named.
 *
 * @throws {UsageError} naming a suite that there is not, or that is not safe
 */
export function cipherList(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const modern = names.filter((name) => MODERN.includes(name));
  const older = names
    .filter((name) => !MODERN.includes(name))
    .map((name) => {
      const known = OLDER.get(name);
      if (known !== undefined) return known;
      const all = [...MODERN, ...OLDER.keys()].join(', ');
      throw new UsageError(
        `invalid value ${goQuote(name)} for --tls-cipher-suites: must be among ${all}`,
      );
    });
  return [...(modern.length > 0 ? modern : MODERN), ...older].join(':');
}
