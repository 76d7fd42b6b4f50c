/** A request that no authorizer allowed, as far as names in it mean nothing to a shell. */
export interface Refusal {
  readonly user: string;
  readonly verb: string;
  /** Plural name, without the subresource. */
  readonly resource: string;
  readonly subresource: string | undefined;
  /** Empty for the core group. */
  readonly group: string;
  /** Absent: all of them, or the resource has none. */
  readonly namespace: string | undefined;
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
export function qualifiedResource({ resource, group }: Refusal): string {
  return group ? `${resource}.${group}` : resource;
}

/** The command that asks whether the request would be allowed by now. */
export function canI(refusal: Refusal): string {
  const { user, verb, subresource, namespace } = refusal;
  return [
    `kubectl auth can-i ${verb} ${qualifiedResource(refusal)}`,
    ...(subresource === undefined ? [] : [`--subresource=${subresource}`]),
    namespace === undefined ? '--all-namespaces' : `--namespace=${namespace}`,
    `--as=${user}`,
  ].join(' ');
}

/** The rule of a role that would allow the request. */
export function missingRule({ verb, resource, subresource, group }: Refusal): string {
  const name = subresource === undefined ? resource : `${resource}/${subresource}`;
  return `{apiGroups: ["${group}"], resources: ["${name}"], verbs: ["${verb}"]}`;
}
