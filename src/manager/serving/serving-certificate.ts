import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { ReadFile } from '../../client/read-file.ts';
import { readTextFile } from '../../client/read-file.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/values.ts';
import { untilAborted } from '../../util/abort.ts';
import type { Certificate } from '../../util/x509.ts';
import { checkOptions } from '../../util/check-options.ts';
import type { OptionNames } from '../../util/check-options.ts';

const OPTIONS: OptionNames<CertificateFilesOptions> = {
  certificatePath: true,
  privateKeyPath: true,
  rereadMs: true,
};

/** Where a server has its certificate from. */
export interface CertificateSource {
  /** Rejects where there is none. */
  load(): Promise<Certificate>;
  /** Calls `renew` with each one that takes the place of the one before; resolves on abort. */
  watch(signal: AbortSignal, renew: (pair: Certificate) => void): Promise<void>;
}

/** Dependencies of `CertificateFiles`. */
export interface CertificateFilesDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** @default the machine's files */
  readonly readFile?: ReadFile;
}

/** Options of `CertificateFiles`. */
export interface CertificateFilesOptions {
  /** PEM: the certificate, and what vouches for it behind it. */
  readonly certificatePath: string;
  /** PEM. */
  readonly privateKeyPath: string;
  /**
   * Between two looks at the files, in milliseconds.
   * @default 10_000
   */
  readonly rereadMs?: number;
}

/**
 * A certificate in files that somebody else renews: cert-manager, or whoever writes the Secret that
 * is mounted there. They are read again and again, because a mounted Secret changes by a link that is
 * turned, which watches of files see in some places and not in others.
 *
 * Both change together: what cannot be read, is half written or does not fit the key is told once, and
 * what was read before stays in use.
 */
export class CertificateFiles implements CertificateSource {
  readonly #deps: CertificateFilesDeps;
  readonly #options: CertificateFilesOptions;
  #pair: Certificate | undefined;
  /** Why what is there now is of no use, as it was told. */
  #trouble: string | undefined;

  constructor(deps: CertificateFilesDeps, options: CertificateFilesOptions) {
    checkOptions(options, OPTIONS, 'CertificateFiles');
    this.#deps = deps;
    this.#options = options;
  }

  async load(): Promise<Certificate> {
    this.#pair = await this.#read();
    return this.#pair;
  }

  async watch(signal: AbortSignal, renew: (pair: Certificate) => void): Promise<void> {
    const { clock } = this.#deps;
    const { rereadMs = 10_000 } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(rereadMs, signal);
      const pair = signal.aborted ? undefined : await this.#renewed();
      if (pair) renew(pair);
    }
  }

  /** What is in the files, if that is another pair than before. */
  async #renewed(): Promise<Certificate | undefined> {
    const { log } = this.#deps;
    const { certificatePath: file } = this.#options;
    try {
      const read = await this.#read();
      this.#trouble = undefined;
      if (isSame(read, this.#pair)) return undefined;
      this.#pair = read;
      const { validTo, fingerprint256 } = new X509Certificate(read.certificatePem);
      log.info('Serving a new certificate', { file, validTo, fingerprint: fingerprint256 });
      return read;
    } catch (error) {
      const trouble = messageOf(error);
      if (trouble !== this.#trouble) {
        log.error(error, 'Could not take the new certificate, serving the one from before', {
          file,
        });
      }
      this.#trouble = trouble;
      return undefined;
    }
  }

  async #read(): Promise<Certificate> {
    const { readFile = readTextFile } = this.#deps;
    const { certificatePath, privateKeyPath } = this.#options;
    const certificatePem = await readFile(certificatePath);
    const pair = { certificatePem, privateKeyPem: await readFile(privateKeyPath) };
    if (isSame(pair, this.#pair)) return pair;
    try {
      createSecureContext({ cert: certificatePem, key: pair.privateKeyPem });
    } catch (cause) {
      const files = `${certificatePath} and ${privateKeyPath}`;
      throw new Error(`${files} are no pair to serve: ${messageOf(cause)}`, { cause });
    }
    return pair;
  }
}

/**
 * A certificate that is made when it is needed and that nobody vouches for: it keeps out who listens,
 * not who stands in between. For one that clients can check, see `CertificateFiles`.
 */
export function selfSigned({
  clock,
  dnsNames,
}: {
  readonly clock: Pick<Clock, 'now'>;
  readonly dnsNames: readonly string[];
}): CertificateSource {
  return {
    async load() {
      // Few need it, and it takes its time to load.
      const { createCertificateAuthority } = await import('../../util/x509.ts');
      const authority = await createCertificateAuthority({ commonName: 'self-signed', clock });
      return authority.issue({
        commonName: dnsNames[0] ?? 'localhost',
        dnsNames: [...new Set([...dnsNames, 'localhost'])],
        ipAddresses: ['127.0.0.1', '::1'],
        usages: 'server',
      });
    },
    watch: untilAborted,
  };
}

function isSame(a: Certificate, b: Certificate | undefined): boolean {
  return a.certificatePem === b?.certificatePem && a.privateKeyPem === b.privateKeyPem;
}
