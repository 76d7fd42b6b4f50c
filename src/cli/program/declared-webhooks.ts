import { HttpClient } from '../../client/http-client.ts';
import { controllerManager } from '../../manager/run-controllers.ts';
import type { WebhookEntries } from '../../webhook/declaration.ts';
import type { ProgramOptions } from './program.ts';

/**
 * Returns the webhooks that a program declares, for commands that do not run it; undefined if it has none. A function
 * that declares them gets the defaults of the flags, and a client that sends no requests.
 */
export function declaredWebhooks(
  { webhooks, flags = {} }: Pick<ProgramOptions, 'webhooks' | 'flags'>,
  namespaces: readonly string[] = [],
): WebhookEntries | undefined {
  if (typeof webhooks !== 'function') return webhooks?.entries();
  const handler = () =>
    Promise.reject(new Error('webhooks must send no request before they are served'));
  const defaults = Object.entries(flags).map(([name, flag]) => [name, flag.parse(flag.default)]);
  const values: Readonly<Record<string, unknown>> = Object.fromEntries(defaults);
  let entries: WebhookEntries | undefined;
  controllerManager({
    client: new HttpClient({ handler, server: 'none' }),
    informers: { namespaces },
    controllers: (kit) => {
      entries = webhooks(kit, values).entries();
      return [];
    },
  });
  return entries;
}
