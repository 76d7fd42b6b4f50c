/** What stands where a secret stood. */
export const MASK = '[redacted]';

/**
 * Member names whose values nobody should read in a log. Plain `secret` is not among them: by
 * convention it holds the key of a Secret, not its content.
 */
const SECRET_NAME =
  /^(?:proxy-?)?authorization$|password$|passwd$|passphrase$|secret(?:s|key)$|[^/]secret$|token$|api-?key$|private-?key(?:-?data)?$|client-?key(?:-?data)?$|credentials?$|cookie$|^kubeconfig-?data$|last-applied-configuration$/i;

/** Names that end like a secret's but are none. */
const HARMLESS_NAME = /^(?:continueToken|continue-token)$/;

const SECRETS_IN_TEXT: readonly (readonly [RegExp, string])[] = [
  // Credentials of the Authorization header.
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${MASK}`],
  // A JSON web token, wherever it stands.
  [/\beyJ[\w-]{8,1024}\.[\w-]{8,4096}\.[\w-]*/g, MASK],
  // The user part of a URL.
  [/(:\/\/)[^\s/:@]{1,256}:[^\s/@]{1,256}@/g, `$1${MASK}@`],
  [/-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,32}PRIVATE KEY-----)?/g, MASK],
];

/** True if the value of a member called `name` must not be shown. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) && !HARMLESS_NAME.test(name);
}

/** `text` without the credentials that can be recognised by their form. */
export function redactText(text: string): string {
  return SECRETS_IN_TEXT.reduce((masked, [form, mask]) => masked.replaceAll(form, mask), text);
}
