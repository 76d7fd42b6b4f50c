/** What to do about an error of `listen` that a restart does not resolve. */
const STEPS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'stop the process that uses it, or choose another port',
  EADDRNOTAVAIL: 'choose an address of this machine',
  EACCES: 'choose a port above 1023',
};

/** An address on which a server cannot listen. The message has the next step. */
export class AddressError extends Error {
  override readonly name = 'AddressError';

  /** @param server what listens, such as `webhook` */
  constructor(address: string, server: string, cause: NodeJS.ErrnoException) {
    const step = STEPS[cause.code ?? ''];
    const next = step === undefined ? '' : `; ${step}`;
    super(`Unable to listen on ${address} for ${server}: ${cause.message}${next}`, { cause });
  }
}
