/** What a kind is called in all the places where its name stands. */
export interface KindNames {
  /** `StaticSite` */
  readonly kind: string;
  /** `staticSite`: beginnings of identifiers. */
  readonly camel: string;
  /** `static-site`: files and components. */
  readonly kebab: string;
  /** `STATIC_SITES`: the descriptor. */
  readonly constant: string;
  /** `staticsite` */
  readonly singular: string;
  /** `staticsites` */
  readonly plural: string;
  /** `example.com` */
  readonly group: string;
}

/** Groups that belong to the Kubernetes project: servers refuse CRDs in them that nobody approved. */
const RESERVED_GROUPS = /(?:^|\.)(?:k8s|kubernetes)\.io$/;

/** Words that are no text where YAML has no quotes around them. */
const YAML_VALUES = /^(?:y|n|yes|no|on|off|true|false|null)$/;

const LONGEST_LABEL = 63;
const LONGEST_DOMAIN = 253;

/**
 * @param plural default: the English plural of the kind
 * @throws {RangeError} naming what is wrong with a name, and what would be right
 */
export function kindNames(
  kind: string,
  group: string,
  plural: string = pluralOf(kind.toLowerCase()),
): KindNames {
  if (!/^[A-Z][A-Za-z0-9]*$/.test(kind)) {
    throw new RangeError(
      `KIND must be in PascalCase, letters and digits, as in StaticSite: got ${JSON.stringify(kind)}`,
    );
  }
  const singular = kind.toLowerCase();
  if (YAML_VALUES.test(singular)) {
    throw new RangeError(`KIND must not be ${kind}: in YAML the word is no text`);
  }
  if (plural.length > LONGEST_LABEL) {
    throw new RangeError(`KIND is too long: ${plural} may have ${LONGEST_LABEL} characters`);
  }
  if (!/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(plural)) {
    throw new RangeError(
      `--plural must be in lower case, letters, digits and dashes, as in staticsites: got ${JSON.stringify(plural)}`,
    );
  }
  const isDomain =
    group.length <= LONGEST_DOMAIN - plural.length - 1 &&
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/.test(group) &&
    group.split('.').every((label) => label.length <= LONGEST_LABEL);
  if (!isDomain) {
    throw new RangeError(
      `--group must be a DNS name in lower case, as in example.com: got ${JSON.stringify(group)}`,
    );
  }
  if (RESERVED_GROUPS.test(group)) {
    throw new RangeError(
      `--group must be a domain of yours: ${group} belongs to the Kubernetes project`,
    );
  }
  const words = wordsOf(kind);
  return {
    kind,
    camel: kind.charAt(0).toLowerCase() + kind.slice(1),
    kebab: words.join('-').toLowerCase(),
    constant: constantOf(kind, plural),
    singular,
    plural,
    group,
  };
}

/** Returns the regular English plural: gateways, policies, proxies, switches, analyses. */
function pluralOf(singular: string): string {
  if (/[^aeiou]y$/.test(singular)) return `${singular.slice(0, -1)}ies`;
  if (/[sx]is$/.test(singular)) return `${singular.slice(0, -2)}es`;
  return /(?:s|x|z|ch|sh)$/.test(singular) ? `${singular}es` : `${singular}s`;
}

/** WebApp with plural webapps → WEB_APPS; NetworkPolicy, networkpolicies → NETWORK_POLICIES. */
export function constantOf(kind: string, plural: string): string {
  let common = 0;
  while (common < plural.length && kind[common]?.toLowerCase() === plural[common]) common++;
  const stem = wordsOf(kind.slice(0, common)).join('_');
  const name = `${stem}${plural.slice(common)}`.replaceAll('-', '_').toUpperCase();
  return /^[0-9]/.test(name) ? `_${name}` : name;
}

/** `HTTPRoute` → `HTTP`, `Route` */
export function wordsOf(kind: string): string[] {
  return kind.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+/g) ?? [];
}
