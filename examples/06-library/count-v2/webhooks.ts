import { Webhooks } from 'crd-controller/webhook';
import { COUNTS as COUNTS_V2 } from './generated/count-v2.ts';
import { COUNTS } from './generated/count.ts';

/** Version v2 has names that say what the fields are. The stored version stays v1, which the controller uses. */
export const webhooks = new Webhooks().converts(COUNTS_V2, COUNTS, {
  up: ({ spec, status }) => ({ spec: spec && { name: spec.image, count: spec.replicas }, status }),
  down: ({ spec, status }) => ({
    spec: spec && { image: spec.name, replicas: spec.count },
    status,
  }),
});
