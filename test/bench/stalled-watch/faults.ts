import type { ApiServer } from '../../../src/apiserver/api-server.ts';
import type { TcpProxy } from '../../support/chaos/tcp-proxy.ts';

export interface FaultTarget {
  readonly server: ApiServer;
  readonly proxy: TcpProxy;
}

/** A fault, and what ends it after some time, if it ends. */
export interface Fault {
  readonly name: string;
  start(target: FaultTarget): void;
  end?(target: FaultTarget): void;
}

const respondWith = (name: string, code: number): Fault => {
  const hooks = new WeakMap<ApiServer, () => void>();
  return {
    name,
    start: ({ server }) => {
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
  { name: 'data dropped but acknowledged', start: ({ proxy }) => proxy.setBehaviour('blackhole') },
  { name: 'connection half open', start: ({ proxy }) => proxy.setBehaviour('halfOpen') },
  { name: 'connection reset', start: ({ proxy }) => proxy.reset() },
  { name: 'closed in the middle of a line', start: ({ proxy }) => proxy.cutAfter(150) },
  {
    name: 'no server for 10 s',
    start: ({ proxy }) => proxy.shut(),
    end: ({ proxy }) => proxy.open(),
  },
  respondWith('429 for 10 s', 429),
  respondWith('500 for 10 s', 500),
  respondWith('503 for 10 s', 503),
  {
    name: '410: history gone',
    start: ({ server }) => {
      server.faults.expireHistory();
      server.faults.dropWatches();
    },
  },
];
