import { HttpClient, InformerSet } from 'crd-controller';
import { NAMESPACES } from 'crd-controller/kinds';
import type { EventHandler } from 'crd-controller/cache';
import type { Namespace } from 'crd-controller/kinds';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const informers = new InformerSet(client);
const namespaces = informers.for(NAMESPACES);
namespaces.addIndexers({ phase: ({ status }) => (status?.phase ? [status.phase] : []) });
const names: string[] = [];
const handler: EventHandler<Namespace> = { onAdd: ({ metadata }) => names.push(metadata.name) };
const registration = namespaces.addHandler(handler);

const stop = new AbortController();
const running = informers.run(stop.signal);
await registration.synced;
console.log(names.includes('default')); // prints: true
console.log(namespaces.lister.byIndex('phase', 'Active').length === names.length); // prints: true
stop.abort();
await running;
