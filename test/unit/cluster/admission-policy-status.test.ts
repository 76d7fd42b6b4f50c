import assert from 'node:assert/strict';
import { it } from 'node:test';
import { VALIDATING_ADMISSION_POLICIES } from '../../../src/api/builtin.ts';
import { ClusterBench } from './cluster-bench.ts';

it('warns of types in ValidatingAdmissionPolicies that do not fit the kinds of their rules', async (context) => {
  const bench = new ClusterBench();
  context.after(() => bench.end());
  await bench.start({
    controllers: ['validatingadmissionpolicy-status'],
    checkPolicyTypes: (policy) => bench.server.checkPolicyTypes(policy),
  });
  const warnings = async (rule: object, spec: object, ...expressions: string[]) => {
    const name = `policy-${expressions.length}-${Object.keys(rule).length}`;
    await bench.create(VALIDATING_ADMISSION_POLICIES, name, {
      spec: {
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ['apps', ''],
              apiVersions: ['v1'],
              operations: ['*'],
              resources: ['deployments', 'pods'],
              ...rule,
            },
          ],
        },
        validations: expressions.map((expression) => ({ expression })),
        ...spec,
      },
    });
    await bench.pass(1000);
    const { status } = await bench.get(VALIDATING_ADMISSION_POLICIES, name);
    assert.equal(status?.observedGeneration, 1);
    return status?.typeChecking?.expressionWarnings?.map(({ fieldRef, warning }) => [
      fieldRef,
      warning.match(/\S*, Kind=.*|^ERROR.*/gm)?.join('; '),
    ]);
  };
  const variables = [{ name: 'replicas', expression: 'object.spec.replicas' }];
  const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' };
  assert.deepEqual(
    await warnings(
      {},
      { variables, paramKind },
      "object.spec.replicas > '1'",
      "object.metadata.name == 'x' && request.name == 'x'",
      "variables.replicas > 'x'",
      'params.data.x == 1',
    ),
    [
      [
        'spec.validations[0].expression',
        "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'; apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'",
      ],
      [
        'spec.validations[2].expression',
        "apps/v1, Kind=Deployment: ERROR: <input>:1:20: found no matching overload for '_>_' applied to '(int, string)'",
      ],
      [
        'spec.validations[3].expression',
        "/v1, Kind=Pod: ERROR: <input>:1:15: found no matching overload for '_==_' applied to '(string, int)'; apps/v1, Kind=Deployment: ERROR: <input>:1:15: found no matching overload for '_==_' applied to '(string, int)'",
      ],
    ],
  );
  assert.equal(await warnings({ apiGroups: ['*'] }, {}, 'object.nope == 1'), undefined);
});
