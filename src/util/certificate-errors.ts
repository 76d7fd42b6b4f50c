const UNKNOWN_AUTHORITY = 'x509: certificate signed by unknown authority';
const EXPIRED = 'x509: certificate has expired or is not yet valid';

/** Go's texts for the codes of certificates that OpenSSL rejects. */
export const REJECTED_CERTIFICATES: ReadonlyMap<string, string> = new Map([
  ['SELF_SIGNED_CERT_IN_CHAIN', UNKNOWN_AUTHORITY],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNKNOWN_AUTHORITY],
  // The certificate was signed by another CA of the same name.
  ['CERT_SIGNATURE_FAILURE', UNKNOWN_AUTHORITY],
  ['CERT_UNTRUSTED', UNKNOWN_AUTHORITY],
  ['INVALID_CA', UNKNOWN_AUTHORITY],
  // Anything else that is wrong with an authority, for example its key usage.
  ['UNSPECIFIED', UNKNOWN_AUTHORITY],
  ['CERT_HAS_EXPIRED', EXPIRED],
  ['CERT_NOT_YET_VALID', EXPIRED],
  ['INVALID_PURPOSE', 'x509: certificate specifies an incompatible key usage'],
  ['PATH_LENGTH_EXCEEDED', 'x509: too many intermediates for path length constraint'],
]);
