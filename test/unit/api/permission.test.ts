import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canICommand, missingRule, parseForbidden } from '../../../src/api/permission.ts';

const forbidden = (resource: string, user: string = 'jane') =>
  `counts.demo.mark8s.io "a" is forbidden: User "${user}" cannot patch resource "${resource}" in API group "demo.mark8s.io" in the namespace "b"`;

test('a subresource is part of the rule and a flag of the command', () => {
  const request = parseForbidden(forbidden('counts/status'));
  assert.ok(request);
  assert.equal(
    missingRule(request),
    '{apiGroups: ["demo.mark8s.io"], resources: ["counts/status"], verbs: ["patch"]}',
  );
  assert.equal(
    canICommand(request),
    'kubectl auth can-i patch counts.demo.mark8s.io --subresource=status --namespace=b --as=jane',
  );
});

test('ignores other messages, and names with characters that a shell interprets', () => {
  assert.equal(parseForbidden('exceeded quota: pods'), undefined);
  assert.equal(parseForbidden(forbidden('counts/$(status)')), undefined);
  assert.equal(parseForbidden(forbidden('counts', 'jane; rm -rf ~')), undefined);
});
