import type { Transport } from './transport/transport.ts';
import { undiciTransport } from './transport/transport.ts';
import type { WatchLaneOptions } from './transport/watch-lane.ts';
import { WatchLane } from './transport/watch-lane.ts';

export interface ClusterTransportOptions extends WatchLaneOptions {
  /** As in `TransportOptions`; of what is not endless. */
  readonly headersTimeoutMs?: number;
}

/**
 * What is endless goes over HTTP/2 connections that are asked for signs of life, everything else over
 * HTTP/1.1; where the server does not speak HTTP/2, all of it does.
 */
export function clusterTransport({ clock, ...options }: ClusterTransportOptions): Transport {
  const lane = new WatchLane({ ...options, clock });
  const ordinary = undiciTransport({ ...options, ...(clock === undefined ? {} : { clock }) });
  return {
    server: ordinary.server,
    handle: async (request) =>
      (request.longRunning ? await lane.send(request) : undefined) ?? ordinary.handle(request),
    async retire() {
      lane.retire();
      await ordinary.retire();
    },
    async close() {
      lane.close();
      await ordinary.close();
    },
  };
}
