import type { ContainerProcess, PodPorts } from '../../../api/kubelet.ts';
import { messageOf } from '../../../util/values.ts';
import type { ProcessConnection, PortConnection } from '../../operations/connection.ts';
import type { ByteTransport } from './byte-transport.ts';
import { servePort } from './port-socket.ts';
import { runProcess } from './run-process.ts';
import { SpdyConnection } from './spdy-connection.ts';
import type { SpdyStream } from './spdy-connection.ts';

/** Time in which a client opens all of its streams, as upstream, in milliseconds. */
const STREAMS_MS = 30_000;

/** Runs a process with the streams that the client opens. */
export async function serveSpdyProcess(
  process: ContainerProcess,
  { streams: wanted }: ProcessConnection,
  {
    transport,
    protocol,
    signal,
  }: { transport: ByteTransport; protocol: string; signal: AbortSignal },
): Promise<void> {
  const version = /^v(\d)/.exec(protocol)?.[1] ?? '1';
  const hasResize = wanted.tty && version >= '3';
  const types = [
    'error',
    ...(['stdin', 'stdout', 'stderr'] as const).filter((name) => wanted[name]),
  ];
  if (hasResize) types.push('resize');
  const streams = new Map<string, SpdyStream>();
  const complete = Promise.withResolvers<boolean>();
  const connection = new SpdyConnection(transport);
  const served = connection.serve((stream) => {
    streams.set(stream.headers.get('streamtype') ?? '', stream);
    if (types.every((type) => streams.has(type))) complete.resolve(true);
    return true;
  });
  const over = () => complete.resolve(false);
  served.then(over, over);
  const timer = setTimeout(over, STREAMS_MS);
  const isComplete = await complete.promise;
  clearTimeout(timer);
  const result = streams.get('error');
  if (isComplete && result) {
    const gone = new AbortController();
    const end = () => gone.abort();
    served.then(end, end);
    await runProcess(
      process,
      {
        stdin: streams.get('stdin')?.received,
        stdout: streams.get('stdout')?.write,
        stderr: streams.get('stderr')?.write,
        result: (bytes) => result.write(bytes),
        signal: AbortSignal.any([signal, gone.signal]),
      },
      version >= '4',
    );
    for (const stream of streams.values()) await stream.close();
  }
  await connection.close();
}

/** Serves the ports of a Pod: two streams for each connection of the client. */
export async function serveSpdyPorts(
  ports: PodPorts,
  forwarded: PortConnection,
  transport: ByteTransport,
): Promise<void> {
  const pairs = new Map<string, Map<string, SpdyStream>>();
  const connection = new SpdyConnection(transport);
  await connection.serve((stream) => {
    const type = stream.headers.get('streamtype') ?? '';
    const port = Number(stream.headers.get('port'));
    if (!['data', 'error'].includes(type) || !(port >= 1 && port <= 65_535)) return false;
    // Old clients send no identifier, and open the stream of errors first.
    const id =
      stream.headers.get('requestid') ?? String(type === 'data' ? stream.id - 2 : stream.id);
    const pair = pairs.get(id) ?? new Map<string, SpdyStream>();
    pairs.set(id, pair.set(type, stream));
    const [data, error] = [pair.get('data'), pair.get('error')];
    if (!data || !error) return true;
    pairs.delete(id);
    forward(ports, forwarded, { port, data, error }).catch(() => undefined);
    return true;
  });
}

async function forward(
  ports: PodPorts,
  { pod, uid }: PortConnection,
  { port, data, error }: { port: number; data: SpdyStream; error: SpdyStream },
): Promise<void> {
  try {
    await servePort(ports(port), data);
    await error.close();
    await data.close();
  } catch (problem) {
    const text = `error forwarding port ${port} to pod ${pod}, uid ${uid}: ${messageOf(problem)}`;
    await error.write(Buffer.from(text));
    await error.close();
    await data.reset();
  }
}
