import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { goQuote } from '../../util/go-quote.ts';
import { messageOf } from '../../util/values.ts';
import { isLoopback, parseBindAddress } from '../../serving/bind-address.ts';
import type { CommandContext } from '../program/program.ts';
import { EXIT_FAILURE, EXIT_OK, UsageError } from '../common/errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { TOP_OPTIONS } from '../flags/options.ts';
import { fetchMonitorSnapshot } from '../top/snapshot.ts';
import { renderView } from '../top/render.ts';
import { ProgramMonitor } from '../top/program-monitor.ts';
import { showLive } from '../top/live.ts';

/** Width of the output if standard output is not a terminal, or one without a known size. */
const WIDTH = 160;

/**
 * Shows what a program does and refreshes the view until the user quits. If standard output is not a
 * terminal, prints once.
 *
 * @returns 1 if a single print received no response
 * @throws {UsageError} on an invalid address
 */
export async function top(
  flags: Pick<OptionValues<typeof TOP_OPTIONS>, 'address' | 'interval' | 'once'>,
  context: Pick<CommandContext, 'print' | 'warn' | 'signal' | 'colour'>,
): Promise<number> {
  const address = loopbackAddress(flags.address);
  const clock = systemClock;
  if (flags.once || !process.stdout.isTTY) return once(address, clock, context);
  await showLive({ address, intervalMs: flags.interval, clock, ...context });
  return EXIT_OK;
}

async function once(
  address: string,
  clock: Clock,
  { print, warn, signal, colour }: Pick<CommandContext, 'print' | 'warn' | 'signal' | 'colour'>,
): Promise<number> {
  const monitor = new ProgramMonitor(address);
  try {
    monitor.record(await fetchMonitorSnapshot(address, () => clock.monotonic(), signal));
  } catch (error) {
    warn(
      `Error: Cannot show ${address}: ${messageOf(error)}. Set --address to the program's --debug-bind-address.`,
    );
    return EXIT_FAILURE;
  }
  const size = { width: process.stdout.columns || WIDTH, height: Infinity };
  for (const line of renderView(monitor.view(clock.monotonic()), size, colour)) print(line);
  return EXIT_OK;
}

/** The pages contain object names and messages, which must not be sent unencrypted over a network. */
function loopbackAddress(address: string): string {
  const refused = () =>
    new UsageError(
      `invalid value ${goQuote(address)} for --address: must be a loopback address HOST:PORT, as in 127.0.0.1:6060. For a Pod, use kubectl port-forward`,
    );
  let parsed: ReturnType<typeof parseBindAddress>;
  try {
    parsed = parseBindAddress(address);
  } catch {
    throw refused();
  }
  const { host = '127.0.0.1', port } = parsed;
  const name = host.includes(':') ? `[${host}]` : host;
  if (!isLoopback(name)) throw refused();
  return `${name}:${port}`;
}
