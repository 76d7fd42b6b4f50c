import { objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { nameProblems } from '../../../api/object-names.ts';
import { OMITTED } from '../../../api/field-error.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { checkAnnotations } from '../../objects/object-metadata.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { NAME_COLUMN, column, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';
import { requireSigner } from '../shared/signer-names.ts';

export const POD_CERTIFICATE_REQUEST: BuiltinKind = {
  resource: 'certificates.k8s.io/podcertificaterequests',
  ...STATUS_ONLY,
  unconditionalUpdate: false,
  defaults: { 'spec.stubPKCS10Request': null },
  validate,
  columns: [
    NAME_COLUMN,
    field('PodName', 'spec.podName'),
    field('ServiceAccountName', 'spec.serviceAccountName'),
    field('NodeName', 'spec.nodeName'),
    field('SignerName', 'spec.signerName'),
    column('State', 'State of the request.', (request) => {
      const conditions = objectsIn(objectIn(request, 'status'), 'conditions');
      const types = conditions.map((one) => textIn(one, 'type'));
      return types.findLast((type) => ['Issued', 'Denied', 'Failed'].includes(type)) ?? 'Pending';
    }),
  ],
};

const MIN_SECONDS = 3600;
const DAY_SECONDS = 86_400;

function validate(request: CheckedObject, previous: StoredObject | undefined): void {
  if (previous) return;
  const spec = request.in('spec');
  requireSigner(spec);
  const annotations = 'unverifiedUserAnnotations';
  checkAnnotations(spec, spec.in(annotations).value, annotations);
  for (const part of ['pod', 'serviceAccount', 'node']) {
    const name = spec.text(`${part}Name`);
    spec.problems(`${part}Name`, nameProblems(name, 'dns1123Subdomain'), name);
    const uid = spec.text(`${part}UID`);
    if (uid === '') spec.invalid(`${part}UID`, 'must not be empty', '');
    if (uid.length > 128) spec.tooLong(`${part}UID`, 128);
  }
  const isOwn = spec.text('signerName').startsWith('kubernetes.io/');
  const max = (isOwn ? 1 : 91) * DAY_SECONDS;
  const seconds = spec.number('maxExpirationSeconds');
  if (seconds === undefined) {
    spec.required('maxExpirationSeconds', 'must be set');
    return;
  }
  if (seconds < MIN_SECONDS || seconds > max) {
    spec.invalid('maxExpirationSeconds', `must be in the range [${MIN_SECONDS}, ${max}]`);
  }
  const isSet = (field: string) => spec.text(field) !== '';
  const [stub, key, proof] = ['stubPKCS10Request', 'pkixPublicKey', 'proofOfPossession'].map(isSet);
  if (key === proof && stub !== key) return;
  const why =
    'exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set';
  request.invalid('spec', why, OMITTED);
}
