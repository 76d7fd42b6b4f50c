import type { ByteSink, ContainerProcess, ProcessStreams } from '../../../api/kubelet.ts';
import { messageOf } from '../../../util/values.ts';
import type { ByteQueue } from './byte-queue.ts';
import { internalError } from '../../objects/status-error.ts';

/** Streams of a process, and the stream of its result. */
export interface ResultStreams extends ProcessStreams {
  readonly stdin: ByteQueue | undefined;
  readonly result: ByteSink;
}

/** Runs a process, and sends its result as a Status. Before version 4 of the protocol, only failures are sent, as text. */
export async function runProcess(
  process: ContainerProcess,
  streams: ResultStreams,
  isStatus: boolean = true,
): Promise<void> {
  const status = await statusOf(process, streams);
  streams.stdin?.end();
  const text = isStatus ? JSON.stringify(status) : 'message' in status ? status.message : '';
  await streams.result(Buffer.from(text));
}

/** Returns the Status of an error before the process started. */
export function startError(message: string): object {
  return internalError(`unable to upgrade connection: ${message}`).status;
}

async function statusOf(process: ContainerProcess, streams: ProcessStreams) {
  try {
    const code = await process(streams);
    if (code === 0) return { metadata: {}, status: 'Success' };
    return {
      metadata: {},
      status: 'Failure',
      message: `command terminated with non-zero exit code: command terminated with exit code ${code}`,
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
    };
  } catch (error) {
    if (streams.signal.aborted) throw error;
    return internalError(`error executing command in container: ${messageOf(error)}`).status;
  }
}
