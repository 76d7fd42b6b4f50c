import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRealControlPlane } from '../../../hack/envtest/real-control-plane.ts';
import { MeteredProcess } from './metered-process.ts';
import { daemonFromBundle } from './programs.ts';

/** An API server in a process of its own. */
export interface ControlPlane extends AsyncDisposable {
  readonly kubeconfig: string;
}

export type ServerKind = 'real' | 'embedded';

export function startControlPlane(kind: ServerKind): Promise<ControlPlane> {
  return kind === 'real' ? startReal() : startEmbedded();
}

async function startReal(): Promise<ControlPlane> {
  const plane = await startRealControlPlane(
    (line) => console.error(`bench: ${line}`),
    ['--delete-collection-workers=10'],
  );
  return { kubeconfig: plane.kubeconfigPath, [Symbol.asyncDispose]: () => plane.stop() };
}

/** Resolves when the server listens. */
async function startEmbedded(): Promise<ControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-embedded-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const program = new MeteredProcess(await daemonFromBundle(), {
    args: ['serve', '--no-cluster-controllers', `--write-kubeconfig=${kubeconfig}`],
  });
  while (!existsSync(kubeconfig)) {
    program.requireRunning();
    await sleep(20);
  }
  return {
    kubeconfig,
    [Symbol.asyncDispose]: async () => {
      await program[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}
