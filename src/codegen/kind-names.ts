/** The names of a kind in all its forms. */
export interface KindNames {
  /** `StaticSite` */
  readonly kind: string;
  /** `staticSite`: prefix of identifiers. */
  readonly camel: string;
  /** `static-site`: names of files and components. */
  readonly kebab: string;
  /** `STATIC_SITES`: the resource descriptor. */
  readonly constant: string;
  /** `staticsite` */
  readonly singular: string;
  /** `staticsites` */
  readonly plural: string;
  /** `example.com` */
  readonly group: string;
}

/** Groups of the Kubernetes project. Servers reject CRDs in them without an approval annotation. */
const RESERVED_GROUPS = /(?:^|\.)(?:k8s|kubernetes)\.io$/;

/** Words that YAML does not parse as strings without quotes. */
const YAML_VALUES = /^(?:y|n|yes|no|on|off|true|false|null)$/;

const LONGEST_LABEL = 63;
const LONGEST_DOMAIN = 253;

/**
 * Derives all forms of the names of a kind.
 *
 * @param plural by default the English plural of the kind
 * @throws {RangeError} if a name is invalid
 */
export function kindNames(
  kind: string,
  group: string,
  plural: string = pluralOf(kind.toLowerCase()),
): KindNames {
  if (!/^[A-Z][A-Za-z0-9]*$/.test(kind)) {
    throw new RangeError(
      `KIND must be in PascalCase with letters and digits, for example StaticSite: got ${JSON.stringify(kind)}`,
    );
  }
  const singular = kind.toLowerCase();
  if (YAML_VALUES.test(singular)) {
    throw new RangeError(`KIND must not be ${kind}: YAML does not parse this word as a string`);
  }
  if (plural.length > LONGEST_LABEL) {
    throw new RangeError(
      `KIND is too long: its plural ${plural} exceeds ${LONGEST_LABEL} characters`,
    );
  }
  if (!/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(plural)) {
    throw new RangeError(
      `--plural must have lower-case letters, digits and dashes, for example staticsites: got ${JSON.stringify(plural)}`,
    );
  }
  const isDomain =
    group.length <= LONGEST_DOMAIN - plural.length - 1 &&
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/.test(group) &&
    group.split('.').every((label) => label.length <= LONGEST_LABEL);
  if (!isDomain) {
    throw new RangeError(
      `--group must be a lower-case DNS name with a dot, for example example.com: got ${JSON.stringify(group)}`,
    );
  }
  if (RESERVED_GROUPS.test(group)) {
    throw new RangeError(
      `--group must be your own domain: ${group} belongs to the Kubernetes project`,
    );
  }
  const words = wordsOf(kind);
  const [first = ''] = words;
  return {
    kind,
    camel: first.toLowerCase() + kind.slice(first.length),
    kebab: words.join('-').toLowerCase(),
    constant: constantOf(kind, plural),
    singular,
    plural,
    group,
  };
}

/** Returns the regular English plural: gateways, policies, proxies, switches, analyses. */
function pluralOf(singular: string): string {
  if (/(?:[^aeiou]|qu)y$/.test(singular)) return `${singular.slice(0, -1)}ies`;
  if (/[sx]is$/.test(singular)) return `${singular.slice(0, -2)}es`;
  return /(?:s|x|z|ch|sh)$/.test(singular) ? `${singular}es` : `${singular}s`;
}

/** Returns the name of the descriptor: WEB_APPS for WebApp, NETWORK_POLICIES for NetworkPolicy. */
export function constantOf(kind: string, plural: string): string {
  let common = 0;
  while (common < plural.length && kind[common]?.toLowerCase() === plural[common]) common++;
  const stem = wordsOf(kind.slice(0, common)).join('_');
  const name = `${stem}${plural.slice(common)}`.replaceAll('-', '_').toUpperCase();
  return /^[0-9]/.test(name) ? `_${name}` : name;
}

/** Splits a kind into words: `HTTPRoute` into `HTTP` and `Route`. */
export function wordsOf(kind: string): string[] {
  return kind.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+/g) ?? [];
}
