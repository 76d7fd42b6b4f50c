import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { ReadFile } from '../client/kube-config/read-file.ts';
import { readTextFile } from '../client/kube-config/read-file.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/values.ts';
import { untilAborted } from '../util/abort.ts';
import type { Certificate } from '../util/x509.ts';

/** Source of a server's certificate. */
export interface CertificateSource {
  /** Returns the certificate. Rejects if there is no valid one. */
  load(): Promise<Certificate>;
  /** Calls `renew` with each new certificate. Resolves on abort. */
  watch(signal: AbortSignal, renew: (pair: Certificate) => void): Promise<void>;
}

/** Dependencies of {@link CertificateFiles}. */
export interface CertificateFilesDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** @default reads from the file system */
  readonly readFile?: ReadFile | undefined;
}

/** Options of {@link CertificateFiles}. */
export interface CertificateFilesOptions {
  /** PEM file with the certificate, followed by its intermediate certificates. */
  readonly certificatePath: string;
  /** PEM file with the private key. */
  readonly privateKeyPath: string;
  /**
   * Interval at which the files are read again, in milliseconds.
   * @default 10_000
   */
  readonly reloadIntervalMs?: number | undefined;
}

/**
 * Certificate in files that another program renews, such as cert-manager through a mounted Secret.
 * The files are read periodically, because an update of a mounted Secret replaces a symbolic link,
 * and not every file system reports that to file watchers.
 *
 * Certificate and key are replaced together. If the files cannot be read or do not match, the error is
 * logged once and the previous certificate stays in use.
 */
export class CertificateFiles implements CertificateSource {
  readonly #deps: CertificateFilesDeps;
  readonly #options: CertificateFilesOptions;
  #pair: Certificate | undefined;
  /** Last logged reason why the files are not valid. */
  #lastError: string | undefined;

  constructor(deps: CertificateFilesDeps, options: CertificateFilesOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  async load(): Promise<Certificate> {
    this.#pair = await this.#read();
    return this.#pair;
  }

  async watch(signal: AbortSignal, renew: (pair: Certificate) => void): Promise<void> {
    const { clock } = this.#deps;
    const { reloadIntervalMs = 10_000 } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(reloadIntervalMs, signal);
      const pair = signal.aborted ? undefined : await this.#renewed();
      if (pair) renew(pair);
    }
  }

  /** Returns the certificate in the files if it has changed. */
  async #renewed(): Promise<Certificate | undefined> {
    const { log } = this.#deps;
    const { certificatePath: file } = this.#options;
    try {
      const read = await this.#read();
      this.#lastError = undefined;
      if (isSame(read, this.#pair)) return undefined;
      this.#pair = read;
      const { validTo, fingerprint256 } = new X509Certificate(read.certificatePem);
      log.info('Serving a new certificate', { file, validTo, fingerprint: fingerprint256 });
      return read;
    } catch (error) {
      const message = messageOf(error);
      if (message !== this.#lastError) {
        log.error(error, 'Unable to load the new certificate; serving the previous one', {
          file,
        });
      }
      this.#lastError = message;
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
      throw new Error(`${files} are not a certificate and its key: ${messageOf(cause)}`, { cause });
    }
    return pair;
  }
}

/**
 * Self-signed certificate that is generated at startup. It protects against eavesdropping, not against
 * a man in the middle. For a certificate that clients can verify, use `CertificateFiles`.
 */
export function selfSignedCertificate({
  clock,
  dnsNames,
}: {
  readonly clock: Pick<Clock, 'now'>;
  readonly dnsNames: readonly string[];
}): CertificateSource {
  return {
    async load() {
      // Loading this module is slow, and most programs do not need it.
      const { createCertificateAuthority } = await import('../util/x509.ts');
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
