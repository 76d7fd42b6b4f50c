import type { ContainerProcess, KubeletAnswer, PodPorts } from '../../../api/kubelet.ts';
import { messageOf } from '../../../util/values.ts';
import type { ProcessConnection, PortConnection } from '../../operations/connection.ts';
import type { Handshake } from '../websocket.ts';
import { servePort } from './port-socket.ts';
import { runProcess, startError } from './run-process.ts';
import { WebSocketChannels } from './web-socket-channels.ts';
import type { WebSocketMessages } from './web-socket-messages.ts';

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const RESULT = 3;

/** Version of the protocol in which errors of the kubelet are sent after the handshake, and channels can be closed. */
export const V5 = 'v5.channel.k8s.io';

/** Runs a process with the channels of a WebSocket. */
export async function serveWebSocketProcess(
  answer: KubeletAnswer<ContainerProcess>,
  { streams }: ProcessConnection,
  messages: WebSocketMessages,
  { handshake, signal }: { handshake: Handshake; signal: AbortSignal },
): Promise<void> {
  const { protocol, isBase64 } = handshake;
  const channels = new WebSocketChannels(messages, {
    isBase64,
    hasClose: protocol === V5,
    read: streams.stdin ? [STDIN] : [],
  });
  const sink = (channel: number) => (bytes: Uint8Array) => channels.write(channel, bytes);
  // As upstream, an empty message shows the client that it is connected.
  await channels.write(
    streams.stdout ? STDOUT : streams.stderr ? STDERR : RESULT,
    new Uint8Array(),
  );
  const gone = new AbortController();
  const end = () => gone.abort();
  channels.serve().then(end, end);
  if (answer.kind === 'error') {
    await channels.write(RESULT, Buffer.from(JSON.stringify(startError(answer.message))));
    return;
  }
  const isStatus = protocol === V5 || protocol.startsWith('v4.');
  await runProcess(
    answer.target,
    {
      stdin: channels.received(STDIN),
      stdout: streams.stdout ? sink(STDOUT) : undefined,
      stderr: streams.stderr ? sink(STDERR) : undefined,
      result: sink(RESULT),
      signal: AbortSignal.any([signal, gone.signal]),
    },
    isStatus,
  );
}

/** Serves the ports of a Pod: two channels for each port, which start with its number. */
export async function serveWebSocketPorts(
  ports: PodPorts,
  { numbers, pod, uid }: PortConnection,
  messages: WebSocketMessages,
  { isBase64 }: Handshake,
): Promise<void> {
  const read = numbers.map((_, index) => 2 * index);
  const channels = new WebSocketChannels(messages, { isBase64, hasClose: false, read });
  channels.serve().catch(() => undefined);
  await Promise.all(
    numbers.map(async (port, index) => {
      const [data, error] = [2 * index, 2 * index + 1];
      const number = Uint8Array.of(port & 0xff, port >> 8);
      await channels.write(data, number);
      await channels.write(error, number);
      const received = channels.received(data);
      try {
        if (received) {
          await servePort(ports(port), { received, write: (bytes) => channels.write(data, bytes) });
        }
      } catch (problem) {
        const text = `error forwarding port ${port} to pod ${pod}, uid ${uid}: ${messageOf(problem)}`;
        await channels.write(error, Buffer.from(text));
      }
    }),
  );
}
