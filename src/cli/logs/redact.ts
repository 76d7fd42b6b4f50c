/** What stands where a secret stood. */
export const MASK = '[redacted]';

/**
 * Member names whose values nobody should read in a log. Plain `secret` is not among them: by
 * convention it holds the key of a Secret, not its content.
 */
const SECRET_NAME =
  /^(?:proxy-?)?authorization$|password$|passwd$|passphrase$|secret(?:s|key)$|[^/]secret$|token$|api-?key$|private-?key(?:-?data)?$|client-?key(?:-?data)?$|credentials?$|cookie$|^string-?data$|^kubeconfig-?data$|last-applied-configuration$/i;

/** Names that end like a secret's but are none. */
const HARMLESS_NAME = /^(?:continueToken|continue-token)$/;

const SECRETS_IN_TEXT: readonly (readonly [RegExp, string])[] = [
  // Credentials of the Authorization header.
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${MASK}`],
  // A JSON web token, wherever it stands.
  [/\beyJ[\w-]{8,1024}\.[\w-]{8,4096}\.[\w-]*/g, MASK],
  // The user part of a URL: up to the last @ before its path, as a password may have one in it.
  [/(:\/\/)[^\s/?#]{1,512}@/g, `$1${MASK}@`],
  // The same without a scheme, where it is all there is: the value of a flag.
  [
    /(^|")[^\s/:@"]{1,256}:(?!\/\/)[^\s@"]{1,512}@(?=[\w.-]{1,253}(?::\d{1,5})?\/?(?:"|$))/g,
    `$1${MASK}@`,
  ],
  [/-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,32}PRIVATE KEY-----)?/g, MASK],
  // PEM in base64, as a kubeconfig has it.
  [/\bLS0tLS1CRUdJTi[\w+/]{16,}={0,2}/g, MASK],
  // As YAML, JSON, a query and a command line have them.
  [
    /((?:password|passwd|client-key-data|client-?secret|(?:id|access|refresh|bearer)[-_]?token|api-?key)["']?(?:\s{0,4}:\s{0,4}|=)["']?)(?!\[redacted\])[^\s"',;&}]{1,4096}/gi,
    `$1${MASK}`,
  ],
  [
    /((?:\btoken=|"token":\s{0,4}"|^\s{0,16}(?:- )?token: ["']?))(?!\[redacted\])[^\s"',;&}]{1,4096}/gim,
    `$1${MASK}`,
  ],
];

/** True if the value of a member called `name` must not be shown. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) && !HARMLESS_NAME.test(name);
}

/** `text` without the credentials that can be recognised by their form. */
export function redactText(text: string): string {
  return SECRETS_IN_TEXT.reduce((masked, [form, mask]) => masked.replaceAll(form, mask), text);
}
