/** Replaces a secret. */
export const MASK = '[redacted]';

/**
 * Names of members with secret values. Plain `secret` is not among them: by convention it is the key of a
 * Secret.
 */
const SECRET_NAME =
  /^(?:proxy-?)?authorization$|password$|passwd$|passphrase$|secret(?:s|key)$|[^/]secret$|token$|api-?key$|private-?key(?:-?data)?$|client-?key(?:-?data)?$|credentials?$|cookie$|^string-?data$|^kubeconfig-?data$|last-applied-configuration$/i;

/** Names that match the pattern but are not secret. */
const HARMLESS_NAME = /^(?:continueToken|continue-token)$/;

const SECRETS_IN_TEXT: readonly (readonly [RegExp, string])[] = [
  // Credentials in the Authorization header.
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${MASK}`],
  // JSON web tokens.
  [/\beyJ[\w-]{8,1024}\.[\w-]{8,4096}\.[\w-]*/g, MASK],
  // Credentials in a URL: up to the last @ before the path, because a password can contain one.
  [/(:\/\/)[^\s/?#]{1,512}@/g, `$1${MASK}@`],
  // Credentials in a URL without a scheme, as the value of a flag.
  [
    /(^|")[^\s/:@"]{1,256}:(?!\/\/)[^\s@"]{1,512}@(?=[\w.-]{1,253}(?::\d{1,5})?\/?(?:"|$))/g,
    `$1${MASK}@`,
  ],
  [/-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,32}PRIVATE KEY-----)?/g, MASK],
  // PEM in base64, as in a kubeconfig.
  [/\bLS0tLS1CRUdJTi[\w+/]{16,}={0,2}/g, MASK],
  // Secrets in YAML, JSON, queries and command lines.
  [
    /((?:password|passwd|client-key-data|client-?secret|(?:id|access|refresh|bearer)[-_]?token|api-?key)["']?(?:\s{0,4}:\s{0,4}|=)["']?)(?!\[redacted\])[^\s"',;&}]{1,4096}/gi,
    `$1${MASK}`,
  ],
  [
    /((?:\btoken=|"token":\s{0,4}"|^\s{0,16}(?:- )?token: ["']?))(?!\[redacted\])[^\s"',;&}]{1,4096}/gim,
    `$1${MASK}`,
  ],
];

/** Each of these forms contains one of these. Few texts do, and the masks take longer. */
const SUSPICIOUS = /bearer|basic|eyJ|:\/\/|@|-----|LS0t|pass|token|secret|key/i;

/** Returns whether the value of a member called `name` is masked. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) && !HARMLESS_NAME.test(name);
}

/** Masks the credentials that can be recognised by their form. */
export function redactText(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  return SECRETS_IN_TEXT.reduce((masked, [form, mask]) => masked.replaceAll(form, mask), text);
}
