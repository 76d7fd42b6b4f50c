/**
 * Baseline: undici and JSON.parse for each line. It keeps the parsed objects of the initial state in a Map, for
 * comparison of the heap, and drops those of events. Over TLS it uses HTTP/2.
 */
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';
import { KINDS } from '../support/object-bytes.ts';
import { Meter } from './meter.ts';

interface Item {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

interface Page {
  readonly items: readonly Item[];
  readonly metadata: { readonly continue?: string };
}

// A cache that receives events would not be bare.
const meter = new Meter(() => (meter.options.events === 0 ? kept.values() : undefined));
const { server, caFile, kind, mode, objects, latency } = meter.options;
const { path: collection } = KINDS[kind];
const kept = new Map<string, Item>();
let isSynced = false;

meter.start();
const pool = new Pool(server, {
  allowH2: caFile !== undefined,
  ...(caFile !== undefined && { connect: { ca: readFileSync(caFile) } }),
});
for (;;) {
  if (mode === 'pages') await list();
  else
    await watch(
      'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
    );
  if (mode === 'pages' && !isSynced) {
    isSynced = true;
    meter.synced();
  }
  if (mode === 'pages') await watch('resourceVersion=1');
}

/** Resolves when the watch has ended. */
async function watch(query: string): Promise<void> {
  const { body } = await pool.request({ method: 'GET', path: `${collection}?watch=true&${query}` });
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) receive(JSON.parse(line) as { type: string; object: Item });
  }
}

function receive({ type, object }: { readonly type: string; readonly object: Item }): void {
  if (type === 'MODIFIED') {
    meter.event(latency ? object.metadata.annotations?.['sent'] : undefined);
  } else if (type === 'ADDED') {
    keep(object);
    if (kept.size === objects && !isSynced) {
      isSynced = true;
      // Not within the loop over a chunk, in which events are still unread.
      setImmediate(() => meter.synced());
    }
  }
}

async function list(): Promise<void> {
  let token = '';
  do {
    const path = `${collection}?limit=500${token === '' ? '' : `&continue=${token}`}`;
    const { body } = await pool.request({ method: 'GET', path });
    const page = JSON.parse(await body.text()) as Page;
    for (const item of page.items) keep(item);
    token = page.metadata.continue ?? '';
  } while (token !== '');
}

function keep(item: Item): void {
  kept.set(`${item.metadata.namespace}/${item.metadata.name}`, item);
}
