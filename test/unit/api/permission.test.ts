import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canI, missingRule, parseRefusal } from '../../../src/api/permission.ts';

const words = (resource: string, user: string = 'jane') =>
  `counts.demo.mark8s.io "a" is forbidden: User "${user}" cannot patch resource "${resource}" in API group "demo.mark8s.io" in the namespace "b"`;

test('a subresource is part of the rule and a flag of the command', () => {
  const refusal = parseRefusal(words('counts/status'));
  assert.ok(refusal);
  assert.equal(
    missingRule(refusal),
    '{apiGroups: ["demo.mark8s.io"], resources: ["counts/status"], verbs: ["patch"]}',
  );
  assert.equal(
    canI(refusal),
    'kubectl auth can-i patch counts.demo.mark8s.io --subresource=status --namespace=b --as=jane',
  );
});

test('ignores other messages, and names with characters that a shell interprets', () => {
  assert.equal(parseRefusal('exceeded quota: pods'), undefined);
  assert.equal(parseRefusal(words('counts/$(status)')), undefined);
  assert.equal(parseRefusal(words('counts', 'jane; rm -rf ~')), undefined);
});
