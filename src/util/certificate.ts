import { fromBase64, toHex } from './bytes.ts';
import type { DerElement } from './der-reader.ts';
import { derElement, derMembers } from './der-reader.ts';

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const VERSION = 0xa0;

/** Whether a PEM block has the structure of an X.509 certificate (RFC 5280). Does not check the values of its fields. */
export function isCertificate(pem: string): boolean {
  const [, base64 = ''] =
    /^-----BEGIN CERTIFICATE-----([\w+/\s]+={0,2}\s*)-----END CERTIFICATE-----$/.exec(pem) ?? [];
  return decodes(() => {
    const [toBeSigned, algorithm, signature, ...rest] = derMembers(derElement(fromBase64(base64)));
    derMembers(algorithm);
    return rest.length === 0 && signature?.tag === BIT_STRING && isBody(derMembers(toBeSigned));
  });
}

/** The result of a check; false if it meets malformed elements. */
function decodes(check: () => boolean): boolean {
  try {
    return check();
  } catch (error) {
    if (error instanceof TypeError) return false;
    throw error;
  }
}

/** @throws {TypeError} if a field is missing or has another type */
function isBody(members: readonly DerElement[]): boolean {
  const [serial, ...others] = members[0]?.tag === VERSION ? members.slice(1) : members;
  const [signature, issuer, validity, subject, publicKey] = others;
  for (const field of [signature, issuer, subject]) derMembers(field);
  return (
    serial?.tag === INTEGER &&
    derMembers(validity).length === 2 &&
    derMembers(publicKey)[1]?.tag === BIT_STRING
  );
}

const BOOLEAN = 0x01;
const EXTENSIONS = 0xa3;
/** The identifier of the extension with basic constraints, 2.5.29.19. */
const BASIC_CONSTRAINTS = '551d13';

/** Whether a certificate in PEM is one of an authority, by its basic constraints. */
export function isAuthority(pem: string): boolean {
  return decodes(() => {
    const [body] = derMembers(derElement(fromBase64(pem.replace(/-----[^-]*-----/g, ''))));
    const extensions = derMembers(body).find(({ tag }) => tag === EXTENSIONS);
    if (!extensions) return false;
    return derMembers(derElement(extensions.content)).some((extension) => {
      const [id, ...values] = derMembers(extension);
      const value = values.at(-1);
      if (!id || !value || toHex(id.content) !== BASIC_CONSTRAINTS) return false;
      const [isCa] = derMembers(derElement(value.content));
      return isCa?.tag === BOOLEAN && isCa.content[0] === 0xff;
    });
  });
}
