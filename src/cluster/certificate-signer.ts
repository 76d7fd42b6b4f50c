import { X509Certificate } from 'node:crypto';
import type { CertificateSigningRequest } from '../api/builtin.ts';
import { CERTIFICATE_SIGNING_REQUESTS } from '../api/builtin.ts';
import { timestamp } from '../api/conditions.ts';
import type { DeepReadonly } from '../api/object.ts';
import { Controller } from '../manager/controller.ts';
import { done } from '../workqueue/outcome.ts';
import type { CertificateSigningRequest as Pkcs10 } from '../util/certificate-request.ts';
import { parseCertificateRequest } from '../util/certificate-request.ts';
import { messageOf } from '../util/values.ts';
import type { CertificateAuthority, CertificateOrder } from '../util/x509.ts';
import { subjectNamesOf } from '../util/x509.ts';
import { FIELD_MANAGER } from './support/field-manager.ts';
import type { ClusterDeps } from './support/resource-monitors.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Times of kube-controller-manager: the maximum validity, and how far before the present it starts. The API has a minimum. */
const MAX_VALIDITY_MS = 365 * DAY_MS;
const BACKDATED_MS = 5 * 60 * 1000;
/** From this validity, the backdated time is part of it. */
const LONG_MS = 8 * 60 * 60 * 1000;

/** The signers of the control plane, with what they refuse. */
const SIGNERS: ReadonlyMap<
  string,
  (request: Pkcs10, usages: readonly string[]) => string | undefined
> = new Map([
  ['kubernetes.io/kube-apiserver-client', (_request, usages) => clientProblem(usages)],
  ['kubernetes.io/kube-apiserver-client-kubelet', kubeletClientProblem],
  ['kubernetes.io/kubelet-serving', kubeletServingProblem],
]);

/** Signs approved CertificateSigningRequests of the signers of Kubernetes. */
export function certificateSigner(deps: ClusterDeps, authority: CertificateAuthority): Controller {
  const requests = deps.informers.for(CERTIFICATE_SIGNING_REQUESTS);
  return new Controller(deps, {
    name: 'certificatesigningrequest-signing',
    kind: CERTIFICATE_SIGNING_REQUESTS.kind,
    sync: async (key, { client, signal }) => {
      const request = requests.lister.get(key);
      const problemOf = SIGNERS.get(request?.spec.signerName ?? '');
      if (!request || !problemOf || !isSignable(request)) return done();
      const status = signed(request, problemOf, authority, deps.clock.now());
      const { name, resourceVersion } = request.metadata;
      const body = { metadata: { resourceVersion }, status };
      const options = { subresource: 'status', fieldManager: FIELD_MANAGER, signal };
      await client.patch(CERTIFICATE_SIGNING_REQUESTS, { name }, { type: 'merge', body }, options);
      return done();
    },
  }).for(requests);
}

type Request = DeepReadonly<CertificateSigningRequest>;

/** Whether a request is approved and has neither a certificate nor failed. */
function isSignable({ status }: Request): boolean {
  const has = (type: string) =>
    status?.conditions?.some((each) => each.type === type && each.status === 'True') ?? false;
  return has('Approved') && !has('Denied') && !has('Failed') && !status?.certificate;
}

/** Returns the fields of the status that change: the certificate, or the conditions with the reason why there is none. */
function signed(
  { spec, status }: Request,
  problemOf: (request: Pkcs10, usages: readonly string[]) => string | undefined,
  authority: CertificateAuthority,
  now: number,
): object {
  const { usages = [], expirationSeconds } = spec;
  let problem: string | undefined;
  try {
    const request = parseCertificateRequest(Buffer.from(spec.request, 'base64').toString());
    problem = problemOf(request, usages);
    if (problem === undefined) {
      const validity = Math.min(MAX_VALIDITY_MS, (expirationSeconds ?? Infinity) * 1000);
      const certificate = authority.sign({
        ...request,
        keyUsages: KEY_USAGES.filter((usage) => usages.includes(usage)),
        usages: usages.includes('server auth') ? 'server' : 'client',
        notBefore: now - BACKDATED_MS,
        notAfter: now + validity - (validity < LONG_MS ? 0 : BACKDATED_MS),
      });
      problem = subjectProblem(request, new X509Certificate(certificate));
      if (problem === undefined) {
        return { certificate: Buffer.from(certificate).toString('base64') };
      }
    }
  } catch (error) {
    problem = messageOf(error);
  }
  const time = timestamp(now);
  const failed = {
    type: 'Failed',
    status: 'True',
    reason: 'SignerValidationFailure',
    message: problem,
    lastUpdateTime: time,
    lastTransitionTime: time,
  } as const;
  return { conditions: [...(status?.conditions ?? []), failed] };
}

/** Requires that the certificate identifies the user whom the request was checked for, and no administrator. */
function subjectProblem(request: Pkcs10, certificate: X509Certificate): string | undefined {
  const { commonName, organizations } = subjectNamesOf(certificate);
  const isSame =
    commonName === request.commonName &&
    organizations.join('\n') === request.organizations.join('\n');
  if (isSame && !organizations.includes('system:masters')) return undefined;
  return 'the subject of the certificate is not that of the request';
}

const KEY_USAGES: CertificateOrder['keyUsages'] = ['digital signature', 'key encipherment'];

const CLIENT_USAGES: ReadonlySet<string> = new Set([...KEY_USAGES, 'client auth']);

function clientProblem(usages: readonly string[]): string | undefined {
  const wrong = usages.find((usage) => !CLIENT_USAGES.has(usage));
  if (wrong !== undefined) return `invalid usage for client certificate: ${wrong}`;
  if (usages.includes('client auth')) return undefined;
  return 'missing required usage for client certificate: client auth';
}

function kubeletClientProblem(request: Pkcs10, usages: readonly string[]): string | undefined {
  if (!isOfNodes(request)) return 'subject organization is not system:nodes';
  for (const [kind, name] of ALT_NAMES) {
    if (request.nameKinds.has(kind)) return `${name} subjectAltNames are not allowed`;
  }
  return usagesProblem(usages, 'client auth') ?? nameProblem(request);
}

function kubeletServingProblem(request: Pkcs10, usages: readonly string[]): string | undefined {
  const { nameKinds } = request;
  if (!isOfNodes(request)) return 'subject organization is not system:nodes';
  if (!nameKinds.has('dns') && !nameKinds.has('ip')) return 'DNS or IP subjectAltName is required';
  if (nameKinds.has('email')) return 'Email subjectAltNames are not allowed';
  if (nameKinds.has('uri')) return 'URI subjectAltNames are not allowed';
  return usagesProblem(usages, 'server auth') ?? nameProblem(request);
}

const ALT_NAMES = [
  ['dns', 'DNS'],
  ['email', 'Email'],
  ['ip', 'IP'],
  ['uri', 'URI'],
] as const;

function isOfNodes({ organizations }: Pkcs10): boolean {
  return organizations.length === 1 && organizations[0] === 'system:nodes';
}

/** A kubelet's certificate has exactly these usages; a key that is not RSA cannot encipher keys. */
function usagesProblem(
  usages: readonly string[],
  purpose: 'client auth' | 'server auth',
): string | undefined {
  const all: readonly string[] = [purpose, ...KEY_USAGES];
  const isExact =
    usages.every((usage) => all.includes(usage)) &&
    usages.includes(purpose) &&
    usages.includes('digital signature');
  return isExact ? undefined : `usages did not match [${all.toSorted().join(' ')}]`;
}

function nameProblem({ commonName }: Pkcs10): string | undefined {
  if (commonName.startsWith('system:node:')) return undefined;
  return 'subject common name does not begin with system:node:'; // words-ok
}
