import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, done, FlightRecorder, HttpClient, runControllers } from 'crd-controller';
import type { ControllerKit } from 'crd-controller';
import { NAMESPACES } from 'crd-controller/kinds';
import { ApiServer, describeReport, replay } from 'crd-controller/testing';

const stop = new AbortController();

/** Records an event for the namespace `default`. */
const greeting = (message: string) => (kit: ControllerKit) => {
  const namespaces = kit.informers.for(NAMESPACES);
  const recorder = kit.events.recorder('greeting');
  const controller = new Controller(kit, {
    name: 'greeting',
    kind: 'Namespace',
    sync: async (key) => {
      const namespace = namespaces.lister.get(key);
      if (key !== 'default' || !namespace) return done();
      recorder.normal(namespace, 'Greeted', message);
      stop.abort();
      return done();
    },
  });
  return controller.for(namespaces);
};

const file = join(tmpdir(), `recording-${process.pid}.ndjson`);
const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const recorder = new FlightRecorder({ file });
await runControllers({ client, controllers: [greeting('Hello')], recorder }, stop.signal);

const same = await replay({ file, controllers: [greeting('Hello')] });
console.log(same.differences.length); // prints: 0

const changed = await replay({ file, controllers: [greeting('Good morning')] });
for (const { kind, write } of changed.differences.flatMap(({ writes }) => writes)) {
  console.log(kind, write); // prints: different event Normal Greeted "Hello" of Namespace default
}
console.log([...describeReport(changed)].at(-1)?.endsWith('1 sync differs')); // prints: true
