/**
 * Baseline: undici and JSON.parse for each line. Without a storm it keeps the parsed objects in a Map,
 * for comparison of the heap.
 */
import { Pool } from 'undici';
import { FOOS } from '../support/foo-bytes.ts';
import { Meter } from './meter.ts';

interface Foo {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly annotations?: object;
  };
}

const meter = new Meter();
const { server, mode, objects, events } = meter.options;
const pool = new Pool(server);
const kept = new Map<string, Foo>();

meter.start();
if (events > 0) {
  await watch(
    `resourceVersion=1&watch=true`,
    'MODIFIED',
    () => meter.event(),
    () => meter.synced(),
  );
} else if (mode === 'pages') {
  await listPages();
} else {
  await watch(
    'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
    'ADDED',
    (foo) => {
      keep(foo);
      if (kept.size === objects) meter.synced();
    },
  );
}

async function watch(
  query: string,
  type: string,
  onObject: (foo: Foo) => void,
  onOpen?: () => void,
): Promise<void> {
  const { body } = await pool.request({ method: 'GET', path: `${FOOS.path}?${query}` });
  onOpen?.();
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const event = JSON.parse(line) as { type: string; object: Foo };
      if (event.type === type) onObject(event.object);
    }
  }
}

async function listPages(): Promise<void> {
  let token = '';
  do {
    const path = `${FOOS.path}?limit=500${token === '' ? '' : `&continue=${token}`}`;
    const { body } = await pool.request({ method: 'GET', path });
    const page = JSON.parse(await body.text()) as {
      items: Foo[];
      metadata: { continue?: string };
    };
    for (const item of page.items) keep(item);
    token = page.metadata.continue ?? '';
  } while (token !== '');
  meter.synced();
}

function keep(foo: Foo): void {
  kept.set(`${foo.metadata.namespace}/${foo.metadata.name}`, foo);
}
