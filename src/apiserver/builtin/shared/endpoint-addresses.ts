import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { canonicalIp } from './addresses.ts';

export const PORT_PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

/** Special addresses in their canonical form, which no endpoint can have. */
const UNUSABLE: readonly (readonly [RegExp, string])[] = [
  [/^(?:127\.|::1$)/, 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  [
    /^(?:169\.254\.|fe[89ab][0-9a-f]:)/,
    'may not be in the link-local range (169.254.0.0/16, fe80::/10)',
  ],
  [
    /^(?:224\.0\.0\.|ff[0-9a-f]2:)/,
    'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
  ],
];

/** Reports an address that is none, in whichever form, or that no endpoint can have. */
export function requireUsableIp(endpoint: CheckedObject, field: string, address: string): void {
  const canonical = canonicalIp(address);
  if (canonical === undefined) {
    endpoint.invalid(field, 'must be a valid IP address', address);
    return;
  }
  if (/^(?:0\.0\.0\.0|::)$/.test(canonical)) {
    endpoint.invalid(field, `may not be unspecified (${address})`, address);
  }
  for (const [range, why] of UNUSABLE) {
    if (range.test(canonical)) endpoint.invalid(field, why, address);
  }
}

/** Reports a malformed name of the node of an endpoint; also an empty one. */
export function requireNodeName(endpoint: CheckedObject): void {
  if (!endpoint.has('nodeName')) return;
  endpoint.problems('nodeName', nameProblems(endpoint.text('nodeName'), 'dns1123Subdomain'));
}
