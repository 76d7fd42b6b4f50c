import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiServer, issueServingCertificate } from '../../apiserver/api-server.ts';
import { VERSION } from '../../apiserver/objects/kubernetes-version.ts';
import { untilAborted } from '../../util/abort.ts';
import { textLogger } from '../../util/text-logger.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';
import type { Certificate } from '../../util/x509.ts';
import { parseGoFlags, flagNames } from './go-flags.ts';
import type { EnvtestProgram } from './program.ts';

/** The flags of kube-apiserver 1.37. */
const FLAGS = {
  names: flagNames(`
    admission-control admission-control-config-file advertise-address aggregator-reject-forwarding-redirect
    allow-metric-labels allow-metric-labels-manifest allow-privileged anonymous-auth api-audiences
    audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
    audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-compress audit-log-format
    audit-log-maxage audit-log-maxbackup audit-log-maxsize audit-log-mode audit-log-path
    audit-log-truncate-enabled audit-log-truncate-max-batch-size audit-log-truncate-max-event-size
    audit-log-version audit-policy-file audit-webhook-batch-buffer-size audit-webhook-batch-max-size
    audit-webhook-batch-max-wait audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-enable
    audit-webhook-batch-throttle-qps audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode
    audit-webhook-truncate-enabled audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size
    audit-webhook-version authentication-config authentication-token-webhook-cache-ttl
    authentication-token-webhook-config-file authentication-token-webhook-version authorization-config
    authorization-mode authorization-policy-file authorization-webhook-cache-authorized-ttl
    authorization-webhook-cache-unauthorized-ttl authorization-webhook-config-file authorization-webhook-version
    bind-address cert-dir client-ca-file contention-profiling coordinated-leadership-lease-duration
    coordinated-leadership-renew-deadline coordinated-leadership-retry-period cors-allowed-origins
    debug-socket-path default-not-ready-toleration-seconds default-unreachable-toleration-seconds
    delete-collection-workers disable-admission-plugins disable-http2-serving disabled-metrics
    egress-selector-config-file emulated-version emulation-forward-compatible enable-admission-plugins
    enable-aggregator-routing enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler
    enable-priority-and-fairness encryption-provider-config encryption-provider-config-automatic-reload
    endpoint-reconciler-type etcd-cafile etcd-certfile etcd-compaction-interval etcd-count-metric-poll-period
    etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix etcd-readycheck-timeout
    etcd-servers etcd-servers-overrides event-ttl external-hostname feature-gates goaway-chance h help
    http2-max-streams-per-connection kubelet-certificate-authority kubelet-client-certificate kubelet-client-key
    kubelet-preferred-address-types kubelet-timeout kubernetes-service-node-port lease-reuse-duration-seconds
    livez-grace-period log-flush-frequency log-json-info-buffer-size log-json-split-stream
    log-text-info-buffer-size log-text-split-stream logging-format max-connection-bytes-per-sec
    max-mutating-requests-inflight max-requests-inflight min-compatibility-version min-request-timeout
    oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim
    oidc-signing-algs oidc-username-claim oidc-username-prefix peer-advertise-ip peer-advertise-port
    peer-ca-file permit-address-sharing permit-port-sharing profiling proxy-client-cert-file
    proxy-client-key-file request-timeout requestheader-allowed-names requestheader-client-ca-file
    requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
    requestheader-username-headers runtime-config runtime-config-emulation-forward-compatible secure-port
    service-account-extend-token-expiration service-account-issuer service-account-jwks-uri
    service-account-key-file service-account-lookup service-account-max-token-expiration
    service-account-signing-endpoint service-account-signing-key-file service-cluster-ip-range
    service-node-port-range show-hidden-metrics-for-version shutdown-delay-duration shutdown-send-retry-after
    shutdown-watch-termination-grace-period storage-backend storage-initialization-timeout storage-media-type
    strict-transport-security-directives tls-cert-file tls-cipher-suites tls-curve-preferences tls-min-version
    tls-private-key-file tls-sni-cert-key token-auth-file tracing-config-file v version vmodule watch-cache
    watch-cache-sizes`),
  booleans: flagNames(`
    aggregator-reject-forwarding-redirect allow-privileged anonymous-auth audit-log-batch-throttle-enable
    audit-log-compress audit-log-truncate-enabled audit-webhook-batch-throttle-enable
    audit-webhook-truncate-enabled contention-profiling disable-http2-serving emulation-forward-compatible
    enable-aggregator-routing enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler
    enable-priority-and-fairness encryption-provider-config-automatic-reload h help log-json-split-stream
    log-text-split-stream permit-address-sharing permit-port-sharing profiling
    runtime-config-emulation-forward-compatible service-account-extend-token-expiration service-account-lookup
    shutdown-send-retry-after version watch-cache`),
};

/** Flags that have the effect that they have upstream. */
const EFFECTIVE = flagNames(`
  bind-address cert-dir client-ca-file disable-admission-plugins enable-admission-plugins secure-port tls-cert-file
  tls-private-key-file v`);

/** Flags that test environments always give, with values that describe this server. */
const USUAL = flagNames(`
  allow-privileged etcd-servers service-account-issuer service-account-key-file service-account-signing-key-file
  service-cluster-ip-range`);

/** Admission plugins that are on by default, and can be disabled here. */
const PLUGINS = ['ServiceAccount', 'StorageObjectInUseProtection'] as const;

/**
 * Stands in for kube-apiserver in a test environment: the embedded API server without controllers, with the
 * certificates that the flags name. Its objects are in memory.
 */
export const kubeApiserver: EnvtestProgram = async (args, { signal, print, warn }) => {
  const flags = parseGoFlags(args, FLAGS);
  if (flags.kind === 'wrong') {
    warn(`Error: ${flags.problem}`);
    return 1;
  }
  const { values } = flags;
  if (values.has('help') || values.has('h')) {
    print([...FLAGS.names].map((name) => `      --${name}`).join('\n'));
    return 0;
  }
  if (values.has('version')) {
    print(`Kubernetes ${VERSION.gitVersion}`);
    return 0;
  }
  const ignored = ignoredFlags(values);
  if (ignored.length > 0) warn(`kube-apiserver: flags without effect here: ${ignored.join(' ')}`);
  const has = (plugin: (typeof PLUGINS)[number]) =>
    !listOf(values, 'disable-admission-plugins').includes(plugin);
  const server = new ApiServer({
    serviceAccounts: has('ServiceAccount'),
    storageProtection: has('StorageObjectInUseProtection'),
    log: textLogger({ verbosity: Number(values.get('v') ?? 0) - 2, write: warn }),
  });
  try {
    const host = values.get('bind-address') ?? '0.0.0.0';
    const port = Number(values.get('secure-port') ?? 6443);
    const certificates = await certificateOptions(values, host, server);
    const { url } = await server.listen({ host, port, ...certificates });
    warn(`kube-apiserver: serving at ${url}`);
    await untilAborted(signal);
    return 0;
  } catch (error) {
    warn(`Error: ${messageOf(error)}`);
    return 1;
  } finally {
    await server.close();
  }
};

function listOf(values: ReadonlyMap<string, string>, name: string): string[] {
  return (values.get(name) ?? '').split(',').filter(Boolean);
}

/** Returns the flags, with their values, that another server would obey. */
function ignoredFlags(values: ReadonlyMap<string, string>): string[] {
  const plugins: readonly string[] = PLUGINS;
  return [...values].flatMap(([name, value]) => {
    const flag = [`--${name}=${value}`];
    if (USUAL.has(name) || (name === 'authorization-mode' && value === 'RBAC')) return [];
    if (name.endsWith('able-admission-plugins')) {
      return listOf(values, name).every((plugin) => plugins.includes(plugin)) ? [] : flag;
    }
    return EFFECTIVE.has(name) ? [] : flag;
  });
}

/** The certificate of the flags, and the authorities of clients. */
async function certificateOptions(
  values: ReadonlyMap<string, string>,
  host: string,
  server: ApiServer,
): Promise<{ certificate?: Certificate; clientAuthoritiesPem?: string }> {
  const authorities = values.get('client-ca-file');
  const certificateFile = values.get('tls-cert-file');
  const keyFile = values.get('tls-private-key-file');
  const folder = values.get('cert-dir');
  return {
    ...(authorities !== undefined && { clientAuthoritiesPem: await readFile(authorities, 'utf8') }),
    ...(certificateFile !== undefined && keyFile !== undefined
      ? { certificate: await readCertificate(certificateFile, keyFile) }
      : folder !== undefined && { certificate: await certificateIn(folder, host, server) }),
  };
}

/** Returns the certificate in a folder. As upstream, it is created if it does not exist. */
async function certificateIn(
  folder: string,
  host: string,
  server: ApiServer,
): Promise<Certificate> {
  const files = [join(folder, 'apiserver.crt'), join(folder, 'apiserver.key')] as const;
  try {
    return await readCertificate(...files);
  } catch (error) {
    if (!hasErrorCode(error, 'ENOENT')) throw error;
  }
  const authority = await server.authority();
  const { certificatePem, privateKeyPem } = await issueServingCertificate(authority, host);
  const chain = { certificatePem: certificatePem + authority.certificatePem, privateKeyPem };
  await mkdir(folder, { recursive: true });
  await writeFile(files[0], chain.certificatePem);
  await writeFile(files[1], chain.privateKeyPem, { mode: 0o600 });
  return chain;
}

async function readCertificate(certificateFile: string, keyFile: string): Promise<Certificate> {
  return {
    certificatePem: await readFile(certificateFile, 'utf8'),
    privateKeyPem: await readFile(keyFile, 'utf8'),
  };
}
