import { HttpClient, silentLogger, systemClock } from 'crd-controller';
import { EventBroadcaster } from 'crd-controller/events';
import { EVENTS, NAMESPACES } from 'crd-controller/kinds';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const broadcaster = new EventBroadcaster({ client, clock: systemClock, log: silentLogger });
const recorder = broadcaster.recorder('example-controller');
const stop = new AbortController();
const running = broadcaster.run(stop.signal);

const namespace = await client.get(NAMESPACES, { name: 'default' });
await recorder.normal(namespace, 'Greeted', 'Hello').attempted();
const { items } = await client.list(EVENTS, { namespace: 'default' });
console.log(items[0]?.reason, items[0]?.count); // prints: Greeted 1
stop.abort();
await running;
