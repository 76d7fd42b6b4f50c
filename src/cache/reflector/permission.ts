import { canI, parseRefusal, qualifiedResource } from '../../api/permission.ts';

/**
 * What to grant so that a cache can be filled, in words and as commands, from the words of the
 * refusal: both requests of a reflector, whichever of them was refused.
 */
export function permissionToGrant(message: string): string {
  const refusal = parseRefusal(message);
  if (refusal?.user === 'system:anonymous') {
    return 'the server was not told who asks: give credentials in the kubeconfig, and see: kubectl auth whoami';
  }
  if (!refusal) {
    return 'allow the user of the kubeconfig, or the service account, to list and watch this resource';
  }
  const { user, namespace, resource: plural } = refusal;
  const where = namespace === undefined ? 'in all namespaces' : `in the namespace ${namespace}`;
  const resource = qualifiedResource(refusal);
  const [role, scope] =
    namespace === undefined ? ['clusterrole', ''] : ['role', ` --namespace=${namespace}`];
  const name = `read-${plural}`;
  return [
    `allow ${user} to list and watch ${resource} ${where}, for example with: `,
    `kubectl create ${role}${scope} ${name} --verb=list,watch --resource=${resource}`,
    ` && kubectl create ${role}binding${scope} ${name} --${role}=${name} --user=${user}`,
    `; see: ${canI(refusal)}`,
    ...(namespace === undefined ? ['; or look after single namespaces only'] : []),
  ].join('');
}
