/** What an API server says when no authorizer allows a request, whichever it asks. */
const REFUSAL =
  /User "([^"]*)" cannot [a-z]+ resource "([^"]*)" in API group "([^"]*)" (?:in the namespace "([^"]*)"|at the cluster scope)/;

/** Names that mean nothing to a shell. Others are not repeated in a command. */
const PLAIN = /^[\w.:@-]+$/;

/**
 * What to grant so that a cache can be filled, in words and as commands, from the words of the
 * refusal: both requests of a reflector, whichever of them was refused.
 */
export function permissionToGrant(refusal: string): string {
  const [, user, plural, group, namespace] = REFUSAL.exec(refusal) ?? [];
  if (user === 'system:anonymous') {
    return 'the server was not told who asks: give credentials in the kubeconfig, and see: kubectl auth whoami';
  }
  const where = namespace === undefined ? 'in all namespaces' : `in the namespace ${namespace}`;
  const resource = group ? `${plural}.${group}` : plural;
  const names = [user, resource, ...(namespace === undefined ? [] : [namespace])];
  if (!user || !plural || !names.every((name) => name !== undefined && PLAIN.test(name))) {
    return 'allow the user of the kubeconfig, or the service account, to list and watch this resource';
  }
  const [role, scope] =
    namespace === undefined ? ['clusterrole', ''] : ['role', ` --namespace=${namespace}`];
  const name = `read-${plural}`;
  return [
    `allow ${user} to list and watch ${resource} ${where}, for example with: `,
    `kubectl create ${role}${scope} ${name} --verb=list,watch --resource=${resource}`,
    ` && kubectl create ${role}binding${scope} ${name} --${role}=${name} --user=${user}`,
    ...(namespace === undefined ? ['; or look after single namespaces only'] : []),
  ].join('');
}
