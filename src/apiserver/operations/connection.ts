import type { ContainerProcess, KubeletAnswer, PodPorts } from '../../api/kubelet.ts';

/** Connection to a process in a container. */
export interface ProcessConnection {
  readonly kind: 'process';
  readonly open: () => KubeletAnswer<ContainerProcess>;
  /** The streams that the client asked for. */
  readonly streams: Readonly<Record<'stdin' | 'stdout' | 'stderr' | 'tty', boolean>>;
}

/** Connection to the ports of a Pod. */
export interface PortConnection {
  readonly kind: 'ports';
  readonly open: () => KubeletAnswer<PodPorts>;
  /** Ports in the query, which only WebSockets need. */
  readonly numbers: readonly number[];
  /** Why the ports in the query are not valid. */
  readonly problem: string | undefined;
  readonly pod: string;
  readonly uid: string;
}

/** A connection that the kubelet of a Pod serves, after the protocol was changed. */
export type Connection = ProcessConnection | PortConnection;
