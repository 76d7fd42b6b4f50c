import assert from 'node:assert/strict';
import { test } from 'node:test';
import { permissionToGrant } from '../../../src/cache/failure-log.ts';

const refusal = (user: string, verb: string, plural: string, group: string, where: string) =>
  `${plural} is forbidden: User "${user}" cannot ${verb} resource "${plural}" in API group "${group}" ${where}`;

test('names a Role and its binding in a namespace', () => {
  const words = refusal('system:serviceaccount:ops:it', 'list', 'pods', '', 'in the namespace "a"');
  assert.equal(
    permissionToGrant(words),
    'allow system:serviceaccount:ops:it to list and watch pods in the namespace a, for example with: ' +
      'kubectl create role --namespace=a read-pods --verb=list,watch --resource=pods && ' +
      'kubectl create rolebinding --namespace=a read-pods --role=read-pods --user=system:serviceaccount:ops:it; ' +
      'see: kubectl auth can-i list pods --namespace=a --as=system:serviceaccount:ops:it',
  );
});

test('names a ClusterRole for all namespaces, and single namespaces as an alternative', () => {
  const words = refusal('jane', 'watch', 'counts', 'demo.mark8s.io', 'at the cluster scope');
  assert.equal(
    permissionToGrant(`${words}: RBAC: clusterrole.rbac.authorization.k8s.io "x" not found`),
    'allow jane to list and watch counts.demo.mark8s.io in all namespaces, for example with: ' +
      'kubectl create clusterrole read-counts --verb=list,watch --resource=counts.demo.mark8s.io && ' +
      'kubectl create clusterrolebinding read-counts --clusterrole=read-counts --user=jane; ' +
      'see: kubectl auth can-i watch counts.demo.mark8s.io --all-namespaces --as=jane; ' +
      'or watch single namespaces only',
  );
});

test('names no permission for an anonymous user', () => {
  const words = refusal('system:anonymous', 'list', 'pods', '', 'at the cluster scope');
  assert.match(permissionToGrant(words), /^the request had no credentials/);
});

test('puts no names into commands that a shell would interpret', () => {
  const general = /^allow the user of the kubeconfig, or the service account, to list and watch/;
  for (const words of [
    'Forbidden',
    refusal('a; rm -rf ~', 'list', 'pods', '', 'at the cluster scope'),
    refusal('jane', 'list', '$(pods)', '', 'at the cluster scope'),
    refusal('jane', 'list', 'pods', '`x`', 'at the cluster scope'),
    refusal('jane', 'list', 'pods', '', 'in the namespace "&& reboot"'),
  ]) {
    assert.match(permissionToGrant(words), general, words);
  }
});
