/** The watch of kubernetes-fluent-client: a private cache without indexes, one callback. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GenericKind, K8s, kind, RegisterKind, WatchEvent } from 'kubernetes-fluent-client';
import { KINDS } from '../support/object-bytes.ts';
import { Meter } from './meter.ts';

class Foo extends GenericKind {}

const meter = new Meter();
const { server, caFile, objects, latency } = meter.options;
useServer(server);

meter.start();
const { group, version, plural, kind: name } = KINDS[meter.options.kind];
if (group !== '') RegisterKind(Foo, { group, version, plural, kind: name });
let added = 0;
const watcher = K8s(group === '' ? kind.Pod : Foo).Watch(({ metadata }, phase: string) => {
  if (phase === 'MODIFIED') meter.event(latency ? metadata?.annotations?.['sent'] : undefined);
  else if (++added === objects) setImmediate(() => meter.synced());
});
for (const event of [WatchEvent.LIST_ERROR, WatchEvent.WATCH_ERROR, WatchEvent.NETWORK_ERROR]) {
  watcher.events.on(event, (error: unknown) => {
    throw error;
  });
}
await watcher.start();

/** Sets the kubeconfig in the environment, which is the client's only source. */
function useServer(url: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'bench-fluent-'));
  const file = join(folder, 'config');
  const trust =
    caFile === undefined
      ? { 'insecure-skip-tls-verify': true }
      : { 'certificate-authority': caFile };
  const cluster = { server: url, ...trust };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'bench', cluster }],
    users: [{ name: 'bench', user: {} }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    'current-context': 'bench',
  };
  writeFileSync(file, JSON.stringify(config));
  process.env['KUBECONFIG'] = file;
  process.on('exit', () => rmSync(folder, { recursive: true }));
}
