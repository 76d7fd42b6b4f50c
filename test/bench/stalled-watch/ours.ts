/** Our informer, as in a daemon. */
import { Informer } from '../../../src/cache/informer.ts';
import { listerWatcher } from '../../../src/cache/lister-watcher.ts';
import { connectCluster } from '../../../src/client/cluster-connection.ts';
import { loadClusterConfig } from '../../../src/client/kube-config/kube-config.ts';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import { printReceived } from './print-received.ts';

const { client } = connectCluster(await loadClusterConfig());
const source = listerWatcher(client, CONFIG_MAPS, { namespace: 'default' });
const informer = new Informer(CONFIG_MAPS, source);
informer.addHandler({ onAdd: printReceived, onUpdate: (_, object) => printReceived(object) });
await informer.run(new AbortController().signal);
