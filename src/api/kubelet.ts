import type { HttpHandler } from '../util/http.ts';

/** Streams of a process in a container. The ones that the client did not ask for are absent. */
export interface ProcessStreams {
  readonly stdin?: AsyncIterable<Uint8Array> | undefined;
  readonly stdout?: ByteSink | undefined;
  readonly stderr?: ByteSink | undefined;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
}

/** Resolves when more bytes may be written. */
export type ByteSink = (bytes: Uint8Array) => Promise<void>;

/** Runs until the process ends, and resolves to its exit code. */
export type ContainerProcess = (streams: ProcessStreams) => Promise<number>;

/** Request to run a command in a container, or to attach to its program. */
export interface ProcessRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Undefined: attach. */
  readonly command: readonly string[] | undefined;
  readonly tty: boolean;
}

/** Returns the HTTP server at a port of a Pod. Throws an error with the reason if there is none. */
export type PodPorts = (port: number) => HttpHandler;

/** Response of a kubelet to a connection. */
export type KubeletAnswer<T> =
  | { readonly kind: 'connected'; readonly target: T }
  | { readonly kind: 'error'; readonly status: 400 | 404 | 500; readonly message: string };

/** A kubelet as API servers use it: an HTTP handler that serves logs, and connections to the containers of Pods. */
export interface Kubelet extends HttpHandler {
  /** @default none: `kubectl exec` and `kubectl attach` get an error */
  readonly exec?: (request: ProcessRequest) => KubeletAnswer<ContainerProcess>;
  /** @default none: `kubectl port-forward` gets an error */
  readonly ports?: (namespace: string, pod: string) => KubeletAnswer<PodPorts>;
}
