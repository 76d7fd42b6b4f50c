import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../../src/util/x509.ts';
import type { CannedServerOptions, FromServer, ToServer } from './canned-server.ts';

/** A child process with the canned server. */
export interface ServerProgram extends AsyncDisposable {
  readonly url: string;
  /** File with the CA of the server, with TLS. */
  readonly caFile: string | undefined;
  readonly checksums: FromServer['checksums'];
  /** Starts the events on every watch. */
  storm(): void;
}

export interface ServerOptions extends Partial<Omit<CannedServerOptions, 'certificate'>> {
  readonly objects: number;
  /** Whether the server uses TLS and offers HTTP/2. */
  readonly tls?: boolean;
}

/** Resolves when all responses are rendered. */
export async function startServer({
  tls = false,
  ...given
}: ServerOptions): Promise<ServerProgram> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-server-'));
  const caFile = tls ? join(folder, 'ca.crt') : undefined;
  const options: CannedServerOptions = {
    kind: 'foos',
    events: 0,
    mode: 'stream',
    rate: 0,
    expires: false,
    ...given,
    ...(caFile !== undefined && { certificate: await certificateIn(caFile) }),
  };
  const child = fork(join(import.meta.dirname, 'canned-server.ts'), [JSON.stringify(options)], {
    // All events in one buffer, and the text they are rendered from.
    execArgv: ['--max-old-space-size=12288'],
  });
  const exited = once(child, 'exit');
  const [{ port, checksums }] = (await once(child, 'message')) as [FromServer];
  return {
    url: `http${tls ? 's' : ''}://127.0.0.1:${port}`,
    caFile,
    checksums,
    storm: () => void child.send('storm' satisfies ToServer),
    [Symbol.asyncDispose]: async () => {
      child.disconnect();
      await exited;
      rmSync(folder, { recursive: true });
    },
  };
}

async function certificateIn(caFile: string) {
  const authority = await createCertificateAuthority({ commonName: 'bench' });
  writeFileSync(caFile, authority.certificatePem);
  const { certificatePem, privateKeyPem } = await authority.issue({
    commonName: 'bench',
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  });
  return { certificatePem, privateKeyPem };
}
