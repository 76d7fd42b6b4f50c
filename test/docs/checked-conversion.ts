import * as fc from 'fast-check';
import * as s from 'crd-controller/schema';
import { checkConversion } from 'crd-controller/testing';
import { Webhooks } from 'crd-controller/webhook';

const kind = { group: 'example.com', kind: 'Probe', plural: 'probes' };
const V1 = s.customResource({
  ...kind,
  version: 'v1',
  spec: s.object({ timeoutSeconds: s.integer({ minimum: 1, maximum: 60 }) }),
});
const V2 = s.customResource({
  ...kind,
  version: 'v2',
  spec: s.object({ timeout: s.string({ pattern: '^([1-9]|[1-5][0-9]|60)s$' }) }),
  otherVersions: [V1],
});

const webhooks = new Webhooks().converts(V1, V2, {
  up: ({ spec: { timeoutSeconds } = {} }) => ({
    spec: { ...(timeoutSeconds !== undefined && { timeout: `${timeoutSeconds}s` }) },
  }),
  down: ({ spec: { timeout } = {} }) => ({
    spec: { ...(timeout !== undefined && { timeoutSeconds: Number(timeout[0]) }) },
  }),
});

try {
  checkConversion(fc, { crd: V2.definition, webhooks, seed: 1 });
} catch (error) {
  const [title, difference] = String(error).split('\n');
  console.log(title); // prints: Error: down(up(object)) differs from the object (Probe example.com/v1)
  console.log(difference?.trim()); // prints: .spec.timeoutSeconds: 10 became 1
}
