import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { CannedServerOptions, FromServer, ToServer } from './canned-server.ts';

/** A child process with the canned server. */
export interface ServerProgram extends AsyncDisposable {
  readonly url: string;
  /** Starts a storm on every watch. */
  storm(): void;
}

/** Resolves when all responses are rendered. */
export async function startServer(options: CannedServerOptions): Promise<ServerProgram> {
  const child = fork(join(import.meta.dirname, 'canned-server.ts'), [JSON.stringify(options)], {
    // 100,000 events in one buffer, and the text they are rendered from.
    execArgv: ['--max-old-space-size=8192'],
  });
  const exited = once(child, 'exit');
  const [{ port }] = (await once(child, 'message')) as [FromServer];
  return {
    url: `http://127.0.0.1:${port}`,
    storm: () => void child.send('storm' satisfies ToServer),
    [Symbol.asyncDispose]: async () => {
      child.disconnect();
      await exited;
    },
  };
}
