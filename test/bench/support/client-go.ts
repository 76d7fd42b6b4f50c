import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Command } from './client-program.ts';

const source = join(import.meta.dirname, '..', 'client-go');

/** Builds the program in `client-go/` into a cache outside the repository. Returns undefined without Go. */
export async function clientGo(): Promise<Command | undefined> {
  try {
    await promisify(execFile)('go', ['version']);
  } catch {
    console.error('bench: SKIPPED client-go: Go is not installed');
    return undefined;
  }
  const file = join(cacheFolder(), `client-${fingerprint()}`);
  if (!existsSync(file)) {
    console.error('bench: building the client-go program');
    mkdirSync(cacheFolder(), { recursive: true });
    await promisify(execFile)('go', ['build', '-o', file, '.'], { cwd: source });
  }
  return { file, args: [] };
}

function cacheFolder(): string {
  const root = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return join(root, 'crd-controller', 'bench');
}

/** Returns a hash of the program, so that a change builds it again. */
function fingerprint(): string {
  const hash = createHash('sha256');
  for (const name of ['go.mod', 'go.sum', 'main.go']) hash.update(readFileSync(join(source, name)));
  return hash.digest('hex').slice(0, 16);
}
