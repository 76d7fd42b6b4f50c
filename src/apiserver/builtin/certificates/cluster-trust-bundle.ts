import { isAuthority, isCertificate } from '../../../util/certificate.ts';
import { objectIn } from '../../../util/json-value.ts';
import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { NAME_COLUMN, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { requireSigner } from '../shared/signer-names.ts';

export const CLUSTER_TRUST_BUNDLE: BuiltinKind = {
  resource: 'certificates.k8s.io/clustertrustbundles',
  nameFormat: 'pathSegment',
  unconditionalUpdate: false,
  immutable: ['spec.signerName'],
  validate,
  columns: [NAME_COLUMN, field('SignerName', 'spec.signerName', '<none>')],
};

const MAX_BYTES = 1024 * 1024;

/** A bundle of a signer has its name as a prefix; a bundle is parsed when it changes. */
function validate(bundle: CheckedObject<StoredObject>, previous: StoredObject | undefined): void {
  const spec = bundle.in('spec');
  const signer = spec.text('signerName');
  const { name } = bundle.value.metadata;
  const wrong = (why: string) => bundle.invalid('metadata.name', why, name);
  const prefix = signer === '' ? '' : `${signer.replaceAll('/', ':')}:`;
  if (signer === '' && name.includes(':')) {
    wrong('ClusterTrustBundle without signer name must not have ":" in its name');
  } else if (!name.startsWith(prefix)) {
    wrong(`ClusterTrustBundle for signerName ${signer} must be named with prefix ${prefix}`);
  } else nameProblems(name.slice(prefix.length), 'dns1123Subdomain').forEach(wrong);
  if (signer !== '') requireSigner(spec);
  const former = objectIn(previous, 'spec')?.['trustBundle'];
  if (former !== spec.value['trustBundle']) validateAnchors(spec, spec.text('trustBundle'));
}

/** The blocks of a text in PEM, with their type and headers. */
const PEM_BLOCK =
  /^-----BEGIN ([^\n]*?)-----[ \t\r]*\n((?:[^\n:]*:[^\n]*\n)*)([\w+/=\s]*)-----END \1-----[ \t\r]*$/gm;

function validateAnchors(spec: CheckedObject, text: string): void {
  if (text.length > MAX_BYTES) {
    spec.tooLong('trustBundle', MAX_BYTES);
    return;
  }
  const count = spec.errors.length;
  const wrong = (why: string) => spec.invalid('trustBundle', why, '<value omitted>');
  const places = new Map<string, number[]>();
  for (const [index, [, type = '', headers = '', base64 = '']] of [
    ...text.matchAll(PEM_BLOCK),
  ].entries()) {
    const block = base64.replace(/\s/g, '');
    const pem = `-----BEGIN CERTIFICATE-----\n${block}\n-----END CERTIFICATE-----`;
    if (type !== 'CERTIFICATE') wrong(`entry ${index} has bad block type: ${type}`);
    else if (headers !== '') wrong(`entry ${index} has PEM block headers`);
    else if (!isCertificate(pem)) wrong(`entry ${index} does not parse as X.509`);
    else if (!isAuthority(pem)) wrong(`entry ${index} does not have the CA bit set`);
    else places.set(block, [...(places.get(block) ?? []), index]);
  }
  if (spec.errors.length > count) return;
  if (places.size === 0) wrong('at least one trust anchor must be provided');
  for (const indices of places.values()) {
    if (indices.length > 1) wrong(`duplicate trust anchor (indices [${indices.join(' ')}])`);
  }
}
