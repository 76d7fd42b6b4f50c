import { goQuote } from '../../../util/go-quote.ts';
import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';

const MAX_DOMAIN = 253;
const MAX_NAME = MAX_DOMAIN + 1 + 253 + 63 + 1;

/** Reports a name of a signer of certificates, `example.com/name`, that is missing or malformed. */
export function requireSigner(holder: CheckedObject): void {
  const field = 'signerName';
  const name = holder.text(field);
  const [domain = '', path = '', ...others] = name.split('/');
  if (name === '') {
    holder.required(field);
    return;
  }
  if (!name.includes('/') || others.length > 0) {
    const why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    holder.invalid(field, why);
    return;
  }
  if (domain.length > MAX_DOMAIN) holder.tooLong(field, MAX_DOMAIN);
  validateSegments(holder, domain, 'dns1123Label');
  if (!domain.includes('.')) {
    const why = 'should be a domain with at least two segments separated by dots';
    holder.invalid(field, why, domain);
  }
  validateSegments(holder, path, 'dns1123Subdomain');
  if (name.length > MAX_NAME) holder.tooLong(field, MAX_NAME);
}

/** Reports the first malformed segment. */
function validateSegments(
  holder: CheckedObject,
  text: string,
  format: 'dns1123Label' | 'dns1123Subdomain',
): void {
  for (const segment of text.split('.')) {
    const problems = nameProblems(segment, format);
    for (const problem of problems) {
      holder.invalid('signerName', `validating label ${goQuote(segment)}: ${problem}`, text);
    }
    if (problems.length > 0) return;
  }
}

/** Returns why a text is no name of a ClusterTrustBundle. That of a signer starts with the signer's name. */
export function trustBundleNameProblems(name: string): string[] {
  return nameProblems(name.slice(name.lastIndexOf(':') + 1), 'dns1123Subdomain');
}
