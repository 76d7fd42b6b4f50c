/** Start and idle memory of a controller without objects: from the start of the program until it syncs an object. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startControlPlane } from '../support/control-plane.ts';
import type { ServerKind } from '../support/control-plane.ts';
import { CONTROLLERS, FooServer } from '../support/foo-controllers.ts';
import { MeteredProcess } from '../support/metered-process.ts';
import { numberIn } from '../support/workload.ts';
import type { Case, Options, Sample, Setting, Workload } from '../support/workload.ts';

/** Node.js without a program. */
const NODE = 'node';

export const workload: Workload = {
  description: 'start-to-ready and idle memory of a controller',
  options: { server: 'real', 'idle-seconds': '10' },
  short: { server: 'embedded', 'idle-seconds': '3' },
  columns: [
    { key: 'readyMs', title: 'ready ms' },
    { key: 'cpuMs', title: 'CPU ms until ready' },
    { key: 'rssMb', title: 'idle RSS MiB', ratio: true },
    { key: 'idleCpuMs', title: 'idle CPU ms/s', digits: 1 },
  ],
  chart: [{ key: 'rssMb', title: 'Idle RSS in MiB' }],
  cases(options: Options): readonly Case[] {
    const idleMs = numberIn(options, 'idle-seconds') * 1000;
    return (options['server'] ?? '').split(',').map((kind) => ({
      name: kind === 'real' ? 'idle' : `idle, ${kind} server`,
      contestants: [NODE, ...Object.keys(CONTROLLERS).filter((name) => name !== 'bare')],
      open: (chosen) => open(kind as ServerKind, chosen, idleMs),
    }));
  },
};

async function open(kind: ServerKind, chosen: readonly string[], idleMs: number): Promise<Setting> {
  for (const name of chosen) await CONTROLLERS[name]?.program().catch(() => undefined);
  const plane = await startControlPlane(kind);
  const server = await FooServer.install(plane.kubeconfig);
  return {
    sample: (name) => (name === NODE ? idleNode(idleMs) : sample(server, name, idleMs)),
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await plane[Symbol.asyncDispose]();
    },
  };
}

async function idleNode(idleMs: number): Promise<Sample> {
  const args = ['--eval', 'setInterval(() => undefined, 1e6)'];
  await using running = new MeteredProcess({ file: process.execPath, args });
  // The process ends when this function returns.
  return await idle(running, idleMs);
}

/** The program is ready when the Deployment of a Foo that exists at its start is created. */
async function sample(server: FooServer, name: string, idleMs: number): Promise<Sample> {
  const { program, args } = CONTROLLERS[name]!;
  const command = await program();
  await server.clear();
  await server.createFoos(1);
  const started = performance.now();
  await using running = new MeteredProcess(command, {
    args,
    env: { KUBECONFIG: server.kubeconfig },
  });
  while ((await server.deployments()) === 0) {
    running.requireRunning();
    await sleep(5);
  }
  const readyMs = performance.now() - started;
  const { cpuMs } = running.usage();
  return { readyMs, cpuMs, ...(await idle(running, idleMs)) };
}

async function idle(running: MeteredProcess, idleMs: number): Promise<Sample> {
  await sleep(1000);
  const before = running.usage();
  await sleep(idleMs);
  const { cpuMs, rssMb } = running.usage();
  return { rssMb, idleCpuMs: ((cpuMs - before.cpuMs) * 1000) / idleMs };
}
