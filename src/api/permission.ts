/** The attributes of a request that an authorizer decides on. */
export interface Permission {
  readonly verb: string;
  /** Plural name, without the subresource. */
  readonly resource: string;
  readonly subresource?: string | undefined;
  /** Empty for the core group. */
  readonly group: string;
  /** Absent for all namespaces and for cluster-scoped resources. */
  readonly namespace?: string | undefined;
  /** Name of the object, absent for all objects. */
  readonly name?: string | undefined;
}

/** A request that was rejected as forbidden. Its names are safe in a shell command. */
export interface ForbiddenRequest extends Permission {
  readonly user: string;
}

/** The message of an API server for a request that no authorizer allows. */
const FORBIDDEN =
  /User "([^"]*)" cannot ([a-z]+) resource "([^"/]*)(?:\/([^"]*))?" in API group "([^"]*)" (?:in the namespace "([^"]*)"|at the cluster scope)/;

/** Names without characters that a shell interprets. */
const PLAIN = /^[\w.:@-]+$/;

/** Parses the message of a forbidden request. Returns undefined for others, and for names that are unsafe in a shell. */
export function parseForbidden(message: string): ForbiddenRequest | undefined {
  const [, user, verb, resource, subresource, group, namespace] = FORBIDDEN.exec(message) ?? [];
  if (!user || !verb || !resource || group === undefined) return undefined;
  const names = [user, resource, subresource, group || undefined, namespace];
  if (!names.every((name) => name === undefined || PLAIN.test(name))) return undefined;
  return { user, verb, resource, subresource, group, namespace };
}

/** Returns the name of a resource in kubectl: `counts.demo.mark8s.io`. */
export function qualifiedResource({ resource, group }: Permission): string {
  return group ? `${resource}.${group}` : resource;
}

/**
 * Returns the kubectl command that checks whether a request is allowed.
 *
 * @param request its `user` is absent for the user who runs the command
 */
export function canICommand(request: Permission & { readonly user?: string | undefined }): string {
  const { user, verb, subresource, namespace, name } = request;
  const object = name === undefined ? '' : `/${name}`;
  return [
    `kubectl auth can-i ${verb} ${qualifiedResource(request)}${object}`,
    ...(subresource === undefined ? [] : [`--subresource=${subresource}`]),
    namespace === undefined ? '--all-namespaces' : `--namespace=${namespace}`,
    ...(user !== undefined && PLAIN.test(user) ? [`--as=${user}`] : []),
  ].join(' ');
}

/**
 * Returns the RBAC rule that allows the request.
 *
 * @param verbs the verbs of the rule, if several are missing
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
