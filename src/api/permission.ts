/** What an authorizer allows, or does not. */
export interface Permission {
  readonly verb: string;
  /** Plural name, without the subresource. */
  readonly resource: string;
  readonly subresource?: string | undefined;
  /** Empty for the core group. */
  readonly group: string;
  /** Absent: all of them, or the resource has none. */
  readonly namespace?: string | undefined;
  /** Of the one object it is about. */
  readonly name?: string | undefined;
}

/** A request that no authorizer allowed, as far as names in it mean nothing to a shell. */
export interface Refusal extends Permission {
  readonly user: string;
}

/** What an API server says when no authorizer allows a request, whichever it asks. */
const WORDS =
  /User "([^"]*)" cannot ([a-z]+) resource "([^"/]*)(?:\/([^"]*))?" in API group "([^"]*)" (?:in the namespace "([^"]*)"|at the cluster scope)/;

/** Names that mean nothing to a shell. Others are not repeated in a command. */
const PLAIN = /^[\w.:@-]+$/;

/** Reads the words of a refusal; undefined if it is none, or has names that a shell might act on. */
export function parseRefusal(message: string): Refusal | undefined {
  const [, user, verb, resource, subresource, group, namespace] = WORDS.exec(message) ?? [];
  if (!user || !verb || !resource || group === undefined) return undefined;
  const names = [user, resource, subresource, group || undefined, namespace];
  if (!names.every((name) => name === undefined || PLAIN.test(name))) return undefined;
  return { user, verb, resource, subresource, group, namespace };
}

/** `counts.demo.mark8s.io`, as kubectl takes it. */
export function qualifiedResource({ resource, group }: Permission): string {
  return group ? `${resource}.${group}` : resource;
}

/**
 * The command that asks whether the request would be allowed by now.
 *
 * @param asked of whom; absent: of who runs the command
 */
export function canI(asked: Permission & { readonly user?: string | undefined }): string {
  const { user, verb, subresource, namespace, name } = asked;
  const object = name === undefined ? '' : `/${name}`;
  return [
    `kubectl auth can-i ${verb} ${qualifiedResource(asked)}${object}`,
    ...(subresource === undefined ? [] : [`--subresource=${subresource}`]),
    namespace === undefined ? '--all-namespaces' : `--namespace=${namespace}`,
    ...(user !== undefined && PLAIN.test(user) ? [`--as=${user}`] : []),
  ].join(' ');
}

/**
 * The rule of a role that would allow the request.
 *
 * @param verbs more than the one, where several are missing
 */
export function missingRule(
  { verb, resource, subresource, group, name }: Permission,
  verbs: readonly string[] = [verb],
): string {
  const plural = subresource === undefined ? resource : `${resource}/${subresource}`;
  const names = name === undefined ? '' : `resourceNames: ["${name}"], `;
  const list = verbs.map((each) => `"${each}"`).join(', ');
  return `{apiGroups: ["${group}"], resources: ["${plural}"], ${names}verbs: [${list}]}`;
}
