import { X509Certificate } from 'node:crypto';
import type { ClusterConfig } from '../../client/kube-config/cluster-config.ts';
import { readTextFile } from '../../client/kube-config/read-file.ts';
import type { WebhookServingOptions } from '../../manager/webhook-serving.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/values.ts';
import { onPath, UsageError } from '../common/errors.ts';
import { certificateFiles } from './endpoints.ts';
import type { RunConfig, WebhooksConfig } from './run-config.ts';

/**
 * Returns certificates and namespace of the webhooks' server; undefined if the program does not serve them.
 *
 * @throws {UsageError} if a certificate cannot be loaded, and if there is neither certificate nor namespace
 */
export async function webhookServerOptions(
  { webhooks, isDryRun, isOnce }: Pick<RunConfig, 'webhooks' | 'isDryRun' | 'isOnce'>,
  { namespace, namespaceIsAssumed, source }: ClusterConfig,
  deps: { readonly clock: Clock; readonly log: Logger },
): Promise<Pick<WebhookServingOptions, 'certificate' | 'namespace' | 'clientCa'> | undefined> {
  if (!webhooks || isDryRun || isOnce) return undefined;
  const clientCa = await clientAuthorities(webhooks, deps.log);
  const { certificate } = webhooks;
  if (certificate) {
    const files = await certificateFiles(certificate, deps, '--webhook-cert-path');
    return { clientCa, certificate: files };
  }
  if (!namespaceIsAssumed) return { clientCa, namespace };
  throw new UsageError(
    `the webhooks need a namespace for the Secret of their certificate, and ${source} has none: set --webhook-cert-path, or disable them with --webhook-bind-address=0`,
  );
}

/**
 * Returns the certificates of the authorities of clients, if they are configured.
 *
 * @throws {UsageError} if the file cannot be read or has none
 */
async function clientAuthorities(
  { clientCaFile: file }: WebhooksConfig,
  log: Logger,
): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const what = `--webhook-client-ca-file: unable to load the authorities in ${file}`;
  const pem = await onPath(what, () => readTextFile(file));
  try {
    const { fingerprint256: fingerprint, subject } = new X509Certificate(pem);
    log.info('Requiring client certificates for webhooks', { file, subject, fingerprint });
    return pem;
  } catch (cause) {
    throw new UsageError(`${what}: ${messageOf(cause)}`, { cause });
  }
}
