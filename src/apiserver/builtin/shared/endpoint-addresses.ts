import type { CheckedObject } from '../../objects/checked-object.ts';
import { ipProblem } from './addresses.ts';

export const PORT_PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

/** Special addresses, which no endpoint can have. */
const UNUSABLE: readonly (readonly [RegExp, string])[] = [
  [/^(?:127\.|::1$)/, 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  [/^(?:169\.254\.|fe[89ab])/i, 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'],
  [
    /^(?:224\.0\.0\.|ff.2:)/i,
    'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
  ],
];

/** Reports an address that is none, or that no endpoint can have. */
export function validateEndpointAddress(
  endpoint: CheckedObject,
  field: string,
  address: string,
  problem: string | undefined = ipProblem(address),
): void {
  if (problem !== undefined) endpoint.invalid(field, problem, address);
  else if (/^(?:0\.0\.0\.0|::)$/.test(address)) {
    endpoint.invalid(field, `may not be unspecified (${address})`, address);
  }
  for (const [range, why] of UNUSABLE) {
    if (range.test(address)) endpoint.invalid(field, why, address);
  }
}

/** Reports a malformed host name or node name of an endpoint. */
export function validateEndpointNames(endpoint: CheckedObject): void {
  endpoint.requireFormat('hostname', 'dns1123Label');
  endpoint.requireFormat('nodeName', 'dns1123Subdomain');
}
