import type { ApiServer } from '../../../src/apiserver/api-server.ts';
import type { TcpProxy } from '../../support/chaos/tcp-proxy.ts';

export interface Place {
  readonly server: ApiServer;
  readonly proxy: TcpProxy;
}

/** What happens, and what ends it after a while if it ends. */
export interface Fault {
  readonly name: string;
  begin(place: Place): void;
  end?(place: Place): void;
}

const refused = (name: string, code: number): Fault => {
  const hooks = new WeakMap<ApiServer, () => void>();
  return {
    name,
    begin: ({ server }) => {
      hooks.set(
        server,
        server.faults.beforeRequest(({ info }) =>
          info?.resource === 'configmaps' && (info.verb === 'watch' || info.verb === 'list')
            ? code
            : undefined,
        ),
      );
      server.faults.dropWatches();
    },
    end: ({ server }) => hooks.get(server)?.(),
  };
};

/** In the order of the table. */
export const FAULTS: readonly Fault[] = [
  { name: 'connection swallowed, acknowledged', begin: ({ proxy }) => proxy.befall('blackhole') },
  { name: 'connection half open', begin: ({ proxy }) => proxy.befall('halfOpen') },
  { name: 'connection reset', begin: ({ proxy }) => proxy.reset() },
  { name: 'cut in the middle of a line', begin: ({ proxy }) => proxy.cutAfter(150) },
  {
    name: 'no server for 10 s',
    begin: ({ proxy }) => proxy.shut(),
    end: ({ proxy }) => proxy.open(),
  },
  refused('429 for 10 s', 429),
  refused('500 for 10 s', 500),
  refused('503 for 10 s', 503),
  {
    name: '410: history gone',
    begin: ({ server }) => {
      server.faults.expireHistory();
      server.faults.dropWatches();
    },
  },
];
